"""The examples of the documentation, run: those of every docstring, those of doc/python.md, and examples/*.py."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys

import attend
import pytest
from conftest import TOP

MODULES = ["attend"] + [f"attend.{found.name}" for found in pkgutil.iter_modules(attend.__path__)]
CASES = [
    test
    for name in MODULES
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name)
    if test.examples
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_docstring(case, model, tmp_path):
    case.globs.update(model=model, folder=tmp_path)
    failed, tried = doctest.DocTestRunner().run(case, clear_globs=False)
    assert tried and not failed


def test_public_names_are_documented():
    for name in attend.__all__:
        entry = getattr(attend, name)
        assert entry.__doc__, f"{name} has no docstring"
        for part, member in vars(entry).items() if isinstance(entry, type) else ():
            if not part.startswith("_") and (callable(member) or isinstance(member, property)):
                assert member.__doc__, f"{name}.{part} has no docstring"


def test_python_md(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(TOP / "doc/python.md"), module_relative=False, encoding="utf-8")
    assert tried > 10 and not failed


def test_torch_example():
    environment = {**os.environ, "PYTHONPATH": str(TOP / "python"), "ATTEND_LIBRARY": attend._abi.library._name}
    ran = subprocess.run([sys.executable, TOP / "examples/torch_attention.py"], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    if ran.stdout.startswith("SKIPPED"):
        pytest.skip(ran.stdout.strip())
    assert "the gradients agree" in ran.stdout
