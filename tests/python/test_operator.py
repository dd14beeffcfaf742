"""The operator: values and gradients against NumPy, no copies, errors."""

import ctypes
import subprocess
import threading

import attend
import numpy as np
import pytest
from attend import _abi

draw = np.random.default_rng(7)


def normal(*shape):
    return draw.standard_normal(shape, dtype=np.float32)


def reference(q, k, v, heads=1, causal=False):
    """softmax(q kᵀ / √D) v in double, [B,Q,H·D]; and the weights [B,H,Q,K]."""
    split = lambda x: x.astype(np.float64).reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
    q, k, v = split(q), split(k), split(v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ v).swapaxes(1, 2)
    return out.reshape(*out.shape[:2], -1), weights


@pytest.mark.parametrize("causal", [False, True])
def test_values(causal):
    q, k, v = normal(2, 5, 8), normal(2, 5, 8), normal(2, 5, 12)
    out, weights = reference(q, k, v, 4, causal)
    done = attend.attention(q, k, v, heads=4, window="causal" if causal else "global", weights=True, want=["entropy", "argmax", "key_sums", "scores"])
    np.testing.assert_allclose(done.out, out, atol=1e-6)
    np.testing.assert_allclose(done.weights, weights, atol=1e-6)
    np.testing.assert_allclose(done.key_sums, weights.sum(2), atol=1e-5)
    np.testing.assert_array_equal(done.argmax, weights.argmax(-1))
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(-1)
    np.testing.assert_allclose(done.entropy, entropy, atol=1e-5)
    assert np.isneginf(done.scores).any() == causal
    assert done.memory_used > 0


def test_chosen_rows_are_rows_of_all():
    x = normal(9, 6)
    every = attend.attention(x, heads=2, weights=True).weights
    some = attend.attention(x, heads=2, weights=[7, 0]).weights
    assert some.shape == (2, 2, 9)
    assert some.tobytes() == every[:, [7, 0]].tobytes()


def test_gradients():
    """Against differences of the reference in double, for every element of query, key and value."""
    arrays = {"query": normal(1, 3, 4), "key": normal(1, 5, 4), "value": normal(1, 5, 6)}
    arriving = normal(1, 3, 6)
    grads = attend.attention(*arrays.values(), heads=2, grad_out=arriving).grads
    assert list(grads) == ["query", "key", "value"]
    for name, array in arrays.items():
        measured = np.zeros(array.shape)
        for at in np.ndindex(array.shape):
            loss = []
            for step in (1e-5, -1e-5):
                moved = {n: a.astype(np.float64) for n, a in arrays.items()}
                moved[name][at] += step
                loss.append((reference(*moved.values(), 2)[0] * arriving).sum())
            measured[at] = (loss[0] - loss[1]) / 2e-5
        np.testing.assert_allclose(grads[name], measured, atol=2e-6)


def test_parameters_and_their_gradients():
    x, w, arriving = normal(4, 6), normal(6, 6), normal(4, 6)
    done = attend.attention(x, score="general", parameters={"W": w}, grad_out=arriving)
    moved = attend.attention(x @ w, x, x, score="dot", grad_out=arriving)
    np.testing.assert_allclose(done.out, moved.out, atol=1e-5)
    np.testing.assert_allclose(done.grads["W"], x.T @ moved.grads["query"], atol=1e-4)


def test_projections_set_the_width():
    x = normal(4, 6)
    made = {"WQ": normal(8, 6), "WK": normal(4, 6), "WV": normal(10, 6), "WO": normal(3, 20)}
    assert attend.attention(x, heads=2, kv_heads=1, parameters=made).out.shape == (4, 3)
    del made["WO"]
    assert attend.attention(x, heads=2, kv_heads=1, parameters=made).out.shape == (4, 20)


def test_ranks_follow_the_query():
    x = normal(3, 5, 4)
    batched = attend.attention(x, weights=True, grad_out=x)
    assert batched.out.shape == (3, 5, 4) and batched.weights.shape == (3, 1, 5, 5)
    single = attend.attention(x[1], weights=True, grad_out=x[1])
    assert single.weights.shape == (1, 5, 5) and single.grads["key"].shape == (5, 4)
    assert single.out.tobytes() == batched.out[1].tobytes()
    assert single.grads["key"].tobytes() == batched.grads["key"][1].tobytes()


def test_lengths():
    x = normal(2, 5, 4)
    done = attend.attention(x, lengths=[5, 2], weights=True)
    assert not done.weights[1, :, :, 2:].any()
    assert attend.attention(x[1], x[1, :2]).out.tobytes() == done.out[1].tobytes()


def test_hard_sampling():
    x = normal(6, 4)
    settings = dict(normaliser="hard", sample=True, want=["log_prob"], grad_out=x, grad_log_prob=np.ones((1, 6)))
    first, again, other = (attend.attention(x, seed=seed, **settings) for seed in (1, 1, 2))
    assert first.out.tobytes() == again.out.tobytes()
    assert first.log_prob.shape == (1, 6) and (first.log_prob <= 0).all()
    assert first.grads["query"].any() and first.out.tobytes() != other.out.tobytes()


@pytest.fixture
def seen(monkeypatch):
    """The at_call of each call, as numbers."""
    calls = []
    original = _abi.library.at_attend

    class Recorder:
        def __getattr__(self, name):
            return getattr(_library, name)

        @staticmethod
        def at_attend(settings, c, error):
            struct = c._obj
            calls.append({name: getattr(struct, name) for name, _ in struct._fields_})
            if struct.parameter_count:
                calls[-1]["W"] = struct.parameters[0].value
            return original(settings, c, error)

    _library = _abi.library
    monkeypatch.setattr(_abi, "library", Recorder())
    return calls


def test_contiguous_float32_is_not_copied(seen):
    q, k, v, w, g = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6), normal(4, 4), normal(2, 3, 6)
    out = np.empty_like(g)
    done = attend.attention(q, k, v, score="general", parameters={"W": w}, grad_out=g, out=out)
    (call,) = seen
    for name, array in (("query", q), ("key", k), ("value", v), ("grad_out", g), ("out", out), ("W", w)):
        assert call[name] == array.ctypes.data, name
    assert done.out is out
    for name in ("query", "key", "value"):
        assert call["grad_" + name] == done.grads[name].ctypes.data


def test_slices_of_a_batch_are_not_copied(seen):
    x = normal(3, 5, 4)
    attend.attention(x[1])
    assert seen[0]["query"] == x.ctypes.data + 5 * 4 * 4


def test_others_are_converted():
    x = normal(4, 6)
    expected = attend.attention(x).out
    for other in (x.astype(np.float64), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x.tolist()):
        assert attend.attention(other).out.tobytes() == expected.tobytes()
    with pytest.raises(TypeError, match="real numbers"):
        attend.attention(x.astype(complex))


@pytest.mark.parametrize("out", [np.empty((4, 6)), np.empty((6, 4), np.float32).T, [[0.0] * 6] * 4])
def test_an_out_that_cannot_be_written_is_refused(out):
    with pytest.raises(TypeError, match="contiguous, writeable"):
        attend.attention(normal(4, 6), out=out)


@pytest.mark.parametrize(
    "settings, kind, message",
    [
        (dict(score="scalled"), attend.UsageError, "no score 'scalled'; did you mean 'scaled'?"),
        (dict(heads=5), attend.ShapeError, "`heads`"),
        (dict(heads=0, kv_heads=-1), attend.Error, "heads"),
        (dict(score="general"), attend.Error, "W"),
        (dict(score="general", parameters={"W": np.zeros((2, 2))}), attend.ShapeError, "W"),
        (dict(key=np.zeros((2, 3, 6))), attend.ShapeError, "3 dimensions|as the query"),
        (dict(value=np.zeros((3, 6))), attend.ShapeError, "as many rows"),
        (dict(lengths=[1, 2]), attend.ShapeError, "lengths needs 1"),
        (dict(lengths=[9]), attend.Error, "9"),
        (dict(weights=[4]), attend.Error, "4"),
        (dict(weights=[0.5]), attend.ShapeError, "whole numbers"),
        (dict(want=["weight"]), attend.UsageError, "entropy"),
        (dict(want="entropy"), attend.UsageError, "names some of"),
        (dict(grad_out=np.zeros((4, 5))), attend.ShapeError, "grad_out"),
        (dict(grad_log_prob=np.zeros((1, 4))), attend.UsageError, "grad_out"),
        (dict(out=np.zeros((4, 5), np.float32)), attend.ShapeError, r"\[4, 5\].*\[4, 6\]"),
    ],
)
def test_refusals(settings, kind, message):
    with pytest.raises(kind, match=message.replace("?", r"\?")):
        attend.attention(normal(4, 6), **settings)


def test_same_numbers_as_the_command(command, tmp_path):
    x = normal(7, 8)
    np.save(tmp_path / "x.npy", x)
    subprocess.run([command, "attention", "--query", "x.npy", "--heads", "2", "--window", "sliding:3", "--position", "alibi",
                    "--out", "out.npy", "--weights", "w.npy"], cwd=tmp_path, check=True)  # fmt: skip
    done = attend.attention(x, heads=2, window="sliding:3", position="alibi", weights=True)
    assert np.load(tmp_path / "out.npy").tobytes() == done.out.tobytes()
    assert np.load(tmp_path / "w.npy").tobytes() == done.weights.tobytes()


def test_same_bits_in_threads():
    x = normal(4, 64, 32)
    expected = attend.attention(x, heads=4, grad_out=x)
    before = attend.threads()
    found = [None] * 6
    try:
        attend.set_threads(2)
        assert attend.threads() == 2

        def work(i):
            found[i] = attend.attention(x, heads=4, grad_out=x)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
        [w.start() for w in workers]
        [w.join() for w in workers]
    finally:
        attend.set_threads(before)
    for done in found:
        assert done.out.tobytes() == expected.out.tobytes()
        assert done.grads["query"].tobytes() == expected.grads["query"].tobytes()


def test_catalogue_is_complete():
    names = {entry.axis for entry in attend.catalogue()}
    assert names == {"score", "normaliser", "window", "position"}
    assert all(entry.formula for entry in attend.catalogue() + attend.models())
    assert attend.kernels() in ("plain", "avx2", "avx512", "neon")
    assert ctypes.sizeof(_abi.at_call) > 200
