"""dialect.py PORT FOLDER SOURCE EXPECTED: the LibreTranslate part of Debian's dialect, without its window, translates the line
SOURCE from de to en at localhost:PORT. FOLDER has the package's module dialect. Exits with 1 if it does not say EXPECTED."""
import sys
import types

import gi

gi.require_version("Soup", "3.0")
from gi.repository import GLib, Soup

port, folder, source, expected = sys.argv[1:]
for name, path in (("dialect", folder + "/dialect"), ("dialect.translators", folder + "/dialect/translators")):
    module = types.ModuleType(name)  # without their own __init__, which imports the window and other services
    module.__path__ = [path]
    sys.modules[name] = module
from dialect.session import Session
from dialect.translators.basetrans import InvalidLangCode
from dialect.translators.libretrans import Translator

loop = GLib.MainLoop()
GLib.timeout_add_seconds(50, lambda: sys.exit("dialect: no answer in 50 seconds"))
outcome = {}


def loaded(success, error, network_error):
    outcome["loaded"] = success, error, network_error
    loop.quit()


def ask(method, data, url):
    """What dialect's window does with a request."""
    outcome.pop("data", None)
    message = Session.create_message(method, url, data)

    def answered(session, result):
        outcome["data"] = Session.get_response(session, result)
        loop.quit()

    Session.get().send_and_read_async(message, 0, None, answered)
    loop.run()
    return outcome["data"]


translator = Translator(loaded, base_url=f"localhost:{port}")
loop.run()
if outcome["loaded"] != (True, "", False) or translator.languages != ["de", "en"] or translator.chars_limit != 5000:
    sys.exit(f"dialect: {outcome['loaded']}, {translator.languages}, {translator.chars_limit}")
spec = ask("GET", {}, Translator.format_url(translator.instance_url, Translator.validation_path))
if not Translator.validate_instance(spec):
    sys.exit(f"dialect does not take this for LibreTranslate: {spec}")
method, data, _, _ = translator.format_translation(source, "de", "en")
said = translator.get_translation(ask(method, data, translator.translate_url))[0].text
if said != expected:
    sys.exit(f"dialect says {said!r}")
_, data, _, _ = translator.format_translation(source, "zz", "en")
try:
    translator.get_translation(ask("POST", data, translator.translate_url))
    sys.exit("dialect takes a language that is not there")
except InvalidLangCode:
    pass
