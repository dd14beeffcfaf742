"""Training, translating, aligning, weights, metrics."""

import json
import os
import signal
import subprocess
import threading

import attend
import numpy as np
import pytest
from conftest import reversed_letters

LINES = ["a b c", "d", "", "f e a", "b b"]
SMALL = dict(embedding=4, hidden=6, attention=4, maxout=4)
TINY = (["a b", "b c", "c a b"], ["a b", "b c", "c a b"])


@pytest.fixture(scope="module")
def translator(model):
    return attend.Translator(model)


@pytest.fixture(scope="module")
def layers(tmp_path_factory):
    path = tmp_path_factory.mktemp("layers") / "layers.safetensors"
    attend.train(path, *TINY, model="transformer", hidden=8, ffn=8, layers=2, heads=2, updates=2)
    return attend.Translator(path)


def run(command, *arguments, given=""):
    return subprocess.run([command, *map(str, arguments)], input=given, capture_output=True, text=True, check=True).stdout.splitlines()


def test_translates_as_the_command(translator, model, command):
    given = "".join(line + "\n" for line in LINES)
    assert translator.translate(LINES) == run(command, "translate", "-m", model, given=given)
    assert translator.translate(LINES, beam=4, length_penalty=0.6) == run(
        command, "translate", "-m", model, "--beam", 4, "--length-penalty", 0.6, given=given
    )
    assert translator.translate("a b c") == "C B A"


def test_results(translator):
    results = translator.search(LINES, beam=3, n_best=2, wants_weights=True)
    assert [r.text for r in results] == translator.translate(LINES, beam=3)
    best = results[0].best
    assert len(results[0].hypotheses) == 2 and best.penalised >= results[0].hypotheses[1].penalised
    assert results[0].source_units == ("a", "b", "c") and best.units == ("C", "B", "A", "</s>")
    np.testing.assert_allclose(best.weights.sum(axis=1), 1, atol=1e-5)
    assert best.links.tolist() == best.weights.argmax(axis=1).tolist()
    assert best.ids.dtype == np.int32 and len(best.ids) == 3
    assert results[2].text == "" and results[2].best.ids.shape == (0,)
    for batch in (1, 3):
        for a, b in zip(results, translator.search(LINES, beam=3, n_best=2, wants_weights=True, batch=batch)):
            assert a.best.score == b.best.score
            assert a.best.weights is b.best.weights is None or a.best.weights.tobytes() == b.best.weights.tobytes()


def test_aligns_as_the_command(translator, model, command, tmp_path):
    sources, targets = reversed_letters(30, 9)
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    printed = run(command, "align", "-m", model, "--source", tmp_path / "s", "--target", tmp_path / "t")
    aligned = translator.align(sources, targets)
    assert [str(a) for a in aligned] == printed
    assert aligned[0].weights.shape == (len(aligned[0].target_units), len(aligned[0].source_units))
    assert translator.score(targets, sources).tolist() == [a.score for a in aligned]


def test_aligns_words_of_characters(tmp_path, command):
    """Words of several units: the columns of a word are added, its rows averaged, as the command does."""
    sources, targets = ["ab cd", "c d", "dab b", ""], ["ba dc", "c d", "bad b", "a"]
    model = tmp_path / "characters"
    attend.train(model, sources[:3], targets[:3], source_vocab="char", target_vocab="char", updates=5, **SMALL)
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    printed = run(command, "align", "-m", model, "--source", tmp_path / "s", "--target", tmp_path / "t")
    assert [str(a) for a in attend.Translator(model).align(sources, targets)] == printed


def test_maps(layers):
    maps = layers.maps("a b", "b c")
    assert [(m.kind, m.layer) for m in maps.maps] == [(k, n) for k in ("encoder", "decoder", "cross") for n in (1, 2)]
    assert maps.target == "b c" and maps.score == layers.score(["b c"], ["a b"])[0]
    cross = maps.of("cross", 2)
    assert cross.weights.shape == (2, 3, 2) and cross.rows == ("b", "c", "</s>") and cross.columns == ("a", "b")
    np.testing.assert_allclose(cross.weights.sum(-1), 1, atol=1e-5)
    mean = np.mean([m.weights for m in maps.maps if m.kind == "cross"], axis=(0, 1))
    np.testing.assert_allclose(mean, layers.align(["a b"], ["b c"])[0].weights, atol=1e-6)
    assert layers.maps("a b", words=True).maps
    assert layers.heads == (2, 2) and layers.has_source
    with pytest.raises(KeyError, match="no cross attention in layer 3"):
        maps.of("cross", 3)


def test_a_model_from_memory_and_its_clones(translator, model):
    copy = attend.Translator.from_bytes(model.read_bytes())
    expected = translator.translate(LINES)
    assert copy.translate(LINES) == expected
    clones = [copy.clone() for _ in range(3)]
    copy.close()
    found = {}
    workers = [threading.Thread(target=lambda i=i, c=c: found.update({i: c.translate(LINES)})) for i, c in enumerate(clones)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert all(found[i] == expected for i in range(3))
    with pytest.raises(attend.UsageError, match="closed"):
        copy.translate("a")


def test_an_ensemble_and_the_description(model, translator):
    with attend.Translator(model, model) as both:
        assert both.translate(LINES) == translator.translate(LINES)
    assert translator.info["settings"]["model"] == "bahdanau"
    assert translator.longest >= 4
    assert [f.shape for f in translator.encode(["a b", ""])][0][0] == 2


def test_refusals(translator, tmp_path):
    (tmp_path / "text").write_text("no model\n" * 99)
    for wrong, kind, message in (
        (lambda: attend.Translator(tmp_path / "text"), attend.Error, "text"),
        (lambda: attend.Translator(tmp_path / "none"), FileNotFoundError.__base__, "No such file"),
        (lambda: attend.Translator.from_bytes(b"x"), attend.Error, ""),
        (lambda: translator.translate(["a\nb"]), ValueError, "line 0 .*newline"),
        (lambda: translator.translate("a", beams=3), attend.UsageError, "no search setting 'beams'"),
        (lambda: translator.translate("a", beam=-1), attend.UsageError, "beam"),
        (lambda: translator.search("a b"), TypeError, "list of lines"),
        (lambda: translator.translate([3]), TypeError, "str or bytes, not int"),
        (lambda: translator.align(["a"], ["A", "B"]), ValueError, "1 sources and 2 targets"),
        (lambda: translator.search(["a"], layer=9, head=1, wants_weights=True), attend.Error, "layer"),
    ):
        with pytest.raises(kind, match=message):
            wrong()
    assert issubclass(attend.FileError, OSError) and attend.FileError.code == 4


def test_bytes_that_are_not_utf8(translator):
    assert translator.search([b"a \xff"])[0].replaced == 1
    assert translator.search([b"a \xff".decode("utf-8", "surrogateescape")])[0].replaced == 1


def test_training_tells_its_news(tmp_path):
    heard = []
    done = attend.train(tmp_path / "m", *TINY, valid_sources=["a b"], valid_targets=["a b"], callback=heard.append,
                        updates=4, report_every=2, valid_every=2, valid_metric=["accuracy", "wer"], **SMALL)  # fmt: skip
    kinds = [news.what for news in heard]
    assert kinds[0] == "start" and kinds.count("tick") == 4 and kinds.count("update") == 2 and "saved" in kinds
    start = heard[0].start
    assert start.training.pairs == 3 and start.validation.pairs == 1 and start.model == "bahdanau"
    assert start.files[0] == str(tmp_path / "m") and start.parameters == done.parameters
    valid = next(news for news in heard if news.what == "valid")
    assert valid.metric == "accuracy" and {"accuracy", "wer"} <= set(valid.scores) and valid.samples[0][0] == "a b"
    assert done.updates == 4 and not done.interrupted and done.saved == 4
    assert all(np.isfinite(news.cost) for news in heard if news.what == "update")


def test_a_callback_stops_a_run_and_it_resumes_to_the_same_bits(tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    attend.train(straight, *TINY, updates=6, **SMALL)
    done = attend.train(broken, *TINY, updates=6, callback=lambda news: news.update < 3, **SMALL)
    assert done.interrupted and done.updates == 3
    with pytest.raises(attend.FileError, match="resume"):
        attend.train(broken, *TINY, updates=6, **SMALL)
    attend.train(broken, *TINY, updates=6, resume=True, **SMALL)
    assert straight.read_bytes() == broken.read_bytes()


def test_an_exception_of_the_callback_is_raised(tmp_path):
    def fail(news):
        if news.update == 2:
            raise RuntimeError("seen")

    with pytest.raises(RuntimeError, match="seen"):
        attend.train(tmp_path / "m", *TINY, updates=1000, callback=fail, **SMALL)
    assert attend.Translator(tmp_path / "m").translate("a b") is not None  # it was saved


def test_ctrl_c_saves_and_is_raised(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start tests that ignore it
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            attend.train(tmp_path / "m", *TINY, minutes=0.5, **SMALL)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "m").exists()


def test_lines_and_files_train_the_same(tmp_path, command):
    (tmp_path / "s").write_text("a b\nb c\nc a b\n")
    attend.train(tmp_path / "lines", *TINY, updates=3, **SMALL)
    attend.train(tmp_path / "files", source=tmp_path / "s", target=tmp_path / "s", updates=3, **SMALL)
    first, second = (attend.Translator(tmp_path / name) for name in ("lines", "files"))
    assert first.score(["a b"], ["c a"]) == second.score(["a b"], ["c a"])


@pytest.mark.parametrize(
    "settings, kind, message",
    [
        (dict(epochss=3), attend.UsageError, "no setting 'epochss'; did you mean 'epochs'"),
        (dict(updates="many"), attend.UsageError, "updates"),
        (dict(model="transfomer"), attend.UsageError, "did you mean 'transformer'"),
        (dict(targets=["a"]), ValueError, "3 sources and 1 targets"),
        (dict(targets=None), ValueError, "sources need their targets"),
    ],
)
def test_training_refuses(tmp_path, settings, kind, message):
    given = {"sources": TINY[0], "targets": TINY[1], **settings}
    with pytest.raises(kind, match=message):
        attend.train(tmp_path / "m", **given)


def test_scores(command, tmp_path):
    hypotheses, references = ["the cat sat on the mat", "a dog"], ["the cat sat on a mat", "the dog"]
    (tmp_path / "r").write_text("\n".join(references) + "\n")
    for metric in ("bleu", "chrf", "ter", "wer"):
        printed = run(command, "score", metric, "--json", "--reference", tmp_path / "r", given="\n".join(hypotheses) + "\n")
        assert attend.score(metric, hypotheses, references).total == pytest.approx(json.loads("".join(printed))[metric], abs=1e-4)
    first = attend.score("chrf", hypotheses, references, resamples=100)
    second = attend.score("chrf", references, references, resamples=100)
    assert float(second) == pytest.approx(100) and first.signature.startswith("nrefs:1|bs:100|")
    assert repr(second) == "<chrF2 100.00>" and len(first.lines) == 2
    compared = first.compare(second)
    assert compared.difference == first.total - second.total < 0
    assert compared.spread.resamples == 100 and first.spread().low <= first.spread().high
    assert attend.score("bleu", hypotheses, [references, hypotheses]).total == pytest.approx(100)
    assert "BP" in attend.score("bleu", hypotheses, references).details
    with pytest.raises(ValueError, match="2 hypotheses and 1 references"):
        attend.score("wer", hypotheses, ["a"])
    with pytest.raises(attend.ShapeError, match="3 names of rows for 2 rows"):
        attend.heatmap(np.eye(2), rows=["a", "b", "c"])


def test_links_between_words_by_hand():
    """Two units of a target word: their rows are averaged. Two units of a source word: their columns are added."""
    from attend.translator import _word_links

    rows = np.array([[1, 0, 0], [0, 0.4, 0.6], [0.3, 0.3, 0.4], [0, 0, 0], [1, 0, 0]], dtype=np.float32)
    numbers = lambda *words: np.array(words, dtype=np.int64)
    assert _word_links(rows, numbers(0, 1, 2), numbers(0, 0, 1, 2), 3) == [(0, 0), (2, 1)]
    assert _word_links(rows, numbers(0, 0, 1), numbers(0, 0, 1, 2), 2) == [(0, 0), (0, 1)]
    assert _word_links(rows, numbers(-1, 0, 1), numbers(0, -1, 1, 2), 2) == [(1, 1)]
