#!/usr/bin/python3
"""Makes relevance.json: gradient x attention (Chefer, Gur, Wolf 2021) of tiny Transformers, in NumPy.

Run by hand with Debian's python3-numpy; the tests read the file and need no Python:

    /usr/bin/python3 tests/ref/make_relevance.py > tests/ref/relevance.json

The gradient of a logit in every attention weight is a central difference: the weight itself is changed in the forward pass, which is
written down here again in double. The parameters are drawn as in make_transformer.py.
"""
import json
import math
import sys

import numpy as np

WORDS, SIZE, INNER, HEADS, LAYERS = 11, 16, 24, 2, 2
BEGIN = 2
SOURCE, TARGET = [4, 7, 10, 5, 9], [6, 4, 9, 3]
STEP = 1e-5


def drawn(name, *shape):
    state = 1
    for byte in name.encode():
        state = (state * 31 + byte) % 2 ** 31
    values = []
    for _ in range(math.prod(shape)):
        state = (state * 1103515245 + 12345) % 2 ** 31
        values.append((state // 2 ** 16 - 2 ** 14) / 2 ** 15 + (1 if name.endswith(".g") else 0))
    return np.array(values).reshape(shape)


class Model:
    def __init__(self, has_source, pre):
        self.has_source, self.pre, self.p = has_source, pre, {}
        self.weights, self.change = {}, None  # by (kind, layer): A [H,n,m]; ((kind, layer), index, step)

    def param(self, name, *shape):
        if name not in self.p:
            self.p[name] = drawn(name, *shape)
        return self.p[name]

    def dense(self, name, x, size):
        return x @ self.param(name + ".W", size, x.shape[1]).T + self.param(name + ".b", size)

    def norm(self, name, x):
        centred = x - x.mean(1, keepdims=True)
        return centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + 1e-5) * self.param(name + ".g", SIZE) + self.param(name + ".b", SIZE)

    def embed(self, side, ids):
        places = np.array([[f(i / 10000 ** (j / (SIZE // 2))) for j in range(SIZE // 2) for f in (math.sin, math.cos)] for i in range(len(ids))])
        return self.param(side + ".E", WORDS, SIZE)[ids] * math.sqrt(SIZE) + places

    def attention(self, key, name, x, memory):
        size = SIZE // HEADS
        if memory is None:
            q, k, v = np.split(self.dense(name + ".QKV", x, 3 * SIZE), 3, 1)
        else:
            q = self.dense(name + ".Q", x, SIZE)
            k, v = np.split(self.dense(name + ".KV", memory, 2 * SIZE), 2, 1)
        out, kept = [], []
        for h in range(HEADS):
            part = slice(h * size, (h + 1) * size)
            e = q[:, part] @ k[:, part].T / math.sqrt(size)
            if key[0] == "decoder":
                e = np.where(np.tril(np.ones_like(e)) > 0, e, -np.inf)
            w = np.exp(e - e.max(1, keepdims=True))
            w = w / w.sum(1, keepdims=True)
            if self.change and self.change[0] == key and self.change[1][0] == h:
                w[self.change[1][1:]] += self.change[2]
            kept.append(w)
            out.append(w @ v[:, part])
        self.weights[key] = np.array(kept)
        return self.dense(name + ".O", np.concatenate(out, 1), SIZE)

    def stack(self, side, x, memory=None):
        for l in range(1, LAYERS + 1):
            name = f"{side}.{l}"
            sublayers = [lambda y: self.attention((side, l), name + ".self", y, None)]
            if memory is not None:
                sublayers.append(lambda y: self.attention(("cross", l), name + ".cross", y, memory))
            sublayers.append(lambda y: self.dense(name + ".ffn.outer", np.maximum(0, self.dense(name + ".ffn.inner", y, INNER)), SIZE))
            for i, f in enumerate(sublayers):
                norm = f"{name}.norm{i + 1}"
                x = x + f(self.norm(norm, x)) if self.pre else self.norm(norm, x + f(x))
        return self.norm(side + ".norm", x) if self.pre else x

    def logits(self):
        """y [T]: the logit of each target unit."""
        memory = self.stack("encoder", self.embed("source", SOURCE)) if self.has_source else None
        x = self.stack("decoder", self.embed("target", [BEGIN] + TARGET[:-1]), memory)
        return (x @ self.param("target.E", WORDS, SIZE).T)[range(len(TARGET)), TARGET]


def normalised(R):
    hat = R - np.eye(len(R))
    sums = hat.sum(1, keepdims=True)
    return np.divide(hat, sums, out=np.zeros_like(hat), where=sums > 0) + np.eye(len(R))


def shares(row):
    return row / row.sum() if row.sum() > 0 else row


def relevance(has_source, pre):
    model = Model(has_source, pre)
    model.logits()
    weights = dict(model.weights)
    product = {}  # A dy/dA: [T,H,n,m]
    for key, A in weights.items():
        product[key] = np.zeros((len(TARGET),) + A.shape)
        for index in np.ndindex(*A.shape):
            if A[index] == 0:  # masked
                continue
            y = []
            for step in (STEP, -STEP):
                model.change = (key, index, step)
                y.append(model.logits())
            product[key][(slice(None),) + index] = A[index] * (y[0] - y[1]) / (2 * STEP)
        model.change = None
    S, T = len(SOURCE), len(TARGET)
    mean = lambda part: np.maximum(0, part).mean(0)
    cross, decoder, encoder = [], [], np.eye(S)
    for t in range(T):
        R_ii, R_qq, R_qi = np.eye(S), np.eye(T), np.zeros((T, S))
        for l in range(1, LAYERS + 1):
            if has_source:
                R_ii = R_ii + mean(product["encoder", l][t]) @ R_ii
        for l in range(1, LAYERS + 1):
            A = mean(product["decoder", l][t])
            R_qq, R_qi = R_qq + A @ R_qq, R_qi + A @ R_qi
            if has_source:
                R_qi = R_qi + normalised(R_qq).T @ mean(product["cross", l][t]) @ normalised(R_ii)
        cross.append(shares(R_qi[t]).tolist())
        decoder.append(shares((R_qq - np.eye(T))[t]).tolist())
    said = {"decoder": decoder}
    if has_source:
        for l in range(1, LAYERS + 1):
            encoder = encoder + mean(product["encoder", l].sum(0)) @ encoder
        said.update(cross=cross, encoder=[shares(row).tolist() for row in encoder - np.eye(S)])
    return said


json.dump({"source": SOURCE, "target": TARGET, "cases": [
    dict(relevance(True, False), model="transformer layers=2 heads=2 hidden=16 ffn=24 norm=post"),
    dict(relevance(True, True), model="transformer layers=2 heads=2 hidden=16 ffn=24 norm=pre"),
    dict(relevance(False, True), model="transformer-lm layers=2 heads=2 hidden=16 ffn=24 norm=pre"),
]}, sys.stdout, indent=1)
print()
