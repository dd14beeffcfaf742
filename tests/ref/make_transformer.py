#!/usr/bin/python3
"""Makes transformer.safetensors: what PyTorch says a tiny Transformer gives, forward and backward.

Run by hand with Debian's python3-torch (1.13); the tests read the file and need no Python:

    /usr/bin/python3 tests/ref/make_transformer.py tests/ref/transformer.safetensors

The file holds logits, losses and the gradient of every parameter. The parameters themselves are not in it: both sides draw them
from the small generator below, whose numbers float32 holds exactly. PyTorch works in double on one padded batch with full masks,
Shaw's positions as n x n x d tables, rotary ones as complex numbers, and gradients are autograd's. Where torch.nn has the same
layer (no relative positions, as many key heads as heads), it must give the same numbers as the long form here.
"""
import math
import sys

import torch
import torch.nn.functional as F

from reference_file import write

WORDS, SIZE, INNER, HEADS = 11, 16, 24, 2
PLACES = 8  # rows of a learned table
SMOOTHING = 0.1
SOURCE = [[3, 7, 10, 4, 9], [5, 2], [8, 6, 3, 3]]
TARGET_IN = [[0, 4, 9, 6], [0, 7, 2, 10, 5, 3], [0]]
TARGET = [[4, 9, 6, 1], [7, 2, 10, 5, 3, 1], [8]]

tensors, cases = {}, []


def drawn(name, *shape):
    """Numbers from -1/2 to below 1/2 in steps of 2^-15, from a linear congruence started at the name's bytes; gains are around 1."""
    state = 1
    for byte in name.encode():
        state = (state * 31 + byte) % 2 ** 31
    values = []
    for _ in range(math.prod(shape)):
        state = (state * 1103515245 + 12345) % 2 ** 31
        values.append((state // 2 ** 16 - 2 ** 14) / 2 ** 15)
    x = torch.tensor(values, dtype=torch.double).reshape(shape)
    return (x + 1 if name.endswith(".g") else x).requires_grad_()


class Model:
    def __init__(self, layers=2, decoder_layers=None, norm="post", final=None, activation="relu", kv_heads=HEADS, position="sinusoidal",
                 halves=False, denominator=SIZE // 2, first=0, scale=True, tie=True, bias=False, share=False,
                 cross_position="none"):
        self.layers, self.decoder_layers, self.pre, self.kv_heads, self.position = (
            layers, decoder_layers or layers, norm == "pre", kv_heads, position)
        self.final = self.pre if final is None else final
        self.activation = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}[activation]
        self.activation_name = activation
        self.halves, self.denominator, self.first, self.scale = halves, denominator, first, scale
        self.tie, self.bias, self.share, self.cross_position = tie, bias, share, cross_position
        self.p = {}

    def param(self, name, *shape):
        if name not in self.p:
            self.p[name] = drawn(name, *shape)
        return self.p[name]

    def dense(self, name, x, size_out):
        return F.linear(x, self.param(name + ".W", size_out, x.shape[-1]), self.param(name + ".b", size_out))

    def norm(self, name, x):
        return F.layer_norm(x, (SIZE,), self.param(name + ".g", SIZE), self.param(name + ".b", SIZE), 1e-5)

    def places(self, n):
        """P [n,d] of the first n places."""
        rows = []
        for place in range(self.first, self.first + n):
            row = [0.0] * SIZE
            for j in range(SIZE // 2):
                angle = place / 10000 ** (j / self.denominator)
                row[j if self.halves else 2 * j] = math.sin(angle)
                row[SIZE // 2 + j if self.halves else 2 * j + 1] = math.cos(angle)
            rows.append(row)
        return torch.tensor(rows, dtype=torch.double)

    def embed(self, side, ids):
        x = F.embedding(ids, self.param(("target" if self.share else side) + ".E", WORDS, SIZE))
        x = x * math.sqrt(SIZE) if self.scale else x
        if self.position == "learned":
            x = x + self.param(side + ".P", PLACES, SIZE)[self.first:self.first + ids.shape[1]]
        elif self.position == "sinusoidal":
            x = x + self.places(ids.shape[1])
        return x

    def attention(self, name, x, memory, mask):
        """MultiHead of x [B,n,d] over memory [B,m,d] (None: over itself); mask [B,n,m]: what may be seen."""
        size, groups = SIZE // HEADS, self.kv_heads
        if memory is None:
            q, k, v = self.dense(name + ".QKV", x, SIZE + 2 * groups * size).split([SIZE, groups * size, groups * size], -1)
        else:
            q = self.dense(name + ".Q", x, SIZE)
            k, v = self.dense(name + ".KV", memory, 2 * groups * size).split(groups * size, -1)
        heads = lambda y, count: y.reshape(y.shape[0], y.shape[1], count, size).transpose(1, 2)  # [B,count,n,D]
        if (self.position if memory is None else self.cross_position) == "rope":
            q, k = turned(q, size), turned(k, size)
        q = heads(q, HEADS)
        k, v = (heads(y, groups).repeat_interleave(HEADS // groups, 1) for y in (k, v))
        e = q @ k.transpose(-1, -2) / math.sqrt(size)
        shaw = memory is None and self.position.startswith("shaw")
        if shaw:
            reach = int(self.position.split(":")[1])
            entry = (torch.arange(k.shape[2])[None, :] - torch.arange(q.shape[2])[:, None]).clamp(-reach, reach) + reach
            e = e + torch.einsum("bhid,ijd->bhij", q, self.param(name + ".w_K", 2 * reach + 1, size)[entry]) / math.sqrt(size)
        w = torch.softmax(e.masked_fill(~mask[:, None], -math.inf), -1)
        c = w @ v
        if shaw:
            c = c + torch.einsum("bhij,ijd->bhid", w, self.param(name + ".w_V", 2 * reach + 1, size)[entry])
        return self.dense(name + ".O", c.transpose(1, 2).flatten(2), SIZE)

    def ffn(self, name, x):
        return self.dense(name + ".outer", self.activation(self.dense(name + ".inner", x, INNER)), SIZE)

    def layer(self, name, x, sublayers):
        for i, f in enumerate(sublayers):
            norm = f"{name}.norm{i + 1}"
            x = x + f(self.norm(norm, x)) if self.pre else self.norm(norm, x + f(x))
        return x

    def stack(self, side, x, layers, mask, memory=None, memory_mask=None):
        for l in range(1, layers + 1):
            name = f"{side}.{l}"
            sublayers = [lambda y: self.attention(name + ".self", y, None, mask)]
            if memory is not None:
                sublayers.append(lambda y: self.attention(name + ".cross", y, memory, memory_mask))
            sublayers.append(lambda y: self.ffn(name + ".ffn", y))
            before, x = x, self.layer(name, x, sublayers)
            self.judge(name, before, x, mask, memory, memory_mask)
        return self.norm(side + ".norm", x) if self.final else x

    def judge(self, name, x, said, mask, memory, memory_mask):
        """torch.nn's own layer says the same."""
        if self.position.startswith("shaw") or self.position == "rope" or self.kv_heads != HEADS or self.activation_name == "swish":
            return
        kind = torch.nn.TransformerEncoderLayer if memory is None else torch.nn.TransformerDecoderLayer
        layer = kind(SIZE, HEADS, INNER, 0.0, self.activation_name, 1e-5, True, self.pre).double()
        p, own = self.p, dict(layer.named_parameters())
        same = {"self_attn.in_proj_": ".self.QKV", "self_attn.out_proj.": ".self.O", "linear1.": ".ffn.inner", "linear2.": ".ffn.outer"}
        with torch.no_grad():
            for ours, theirs in (("W", "weight"), ("b", "bias")):
                for key, value in same.items():
                    own[key + theirs].copy_(p[f"{name}{value}.{ours}"])
                if memory is not None:
                    own["multihead_attn.in_proj_" + theirs].copy_(
                        torch.cat([p[f"{name}.cross.Q.{ours}"], p[f"{name}.cross.KV.{ours}"]]))
                    own["multihead_attn.out_proj." + theirs].copy_(p[f"{name}.cross.O.{ours}"])
                for i in range(1, 3 if memory is None else 4):
                    own[f"norm{i}.{theirs}"].copy_(p[f"{name}.norm{i}.{'g' if ours == 'W' else 'b'}"])
        hidden = ~mask[:, -1]  # keys that are padding: the last row of a mask sees all others
        if memory is None:
            theirs = layer(x, src_key_padding_mask=hidden)
        else:
            n = x.shape[1]
            theirs = layer(x, memory, tgt_mask=torch.ones(n, n).triu(1).bool(), memory_key_padding_mask=~memory_mask[:, -1])
        assert torch.allclose(theirs, said, atol=1e-12), name

    def run(self):
        """Logits [B,n,V]."""
        source, target = padded(SOURCE), padded(TARGET_IN)
        n, m = target.shape[1], source.shape[1]
        seen = torch.arange(m)[None, :] < torch.tensor([len(row) for row in SOURCE])[:, None]  # [B,m]
        memory = self.stack("encoder", self.embed("source", source), self.layers, seen[:, None].expand(-1, m, -1))
        causal = torch.ones(n, n).tril().bool().expand(len(SOURCE), -1, -1)
        x = self.stack("decoder", self.embed("target", target), self.decoder_layers, causal, memory, seen[:, None].expand(-1, n, -1))
        output = self.p["target.E"] if self.tie else self.param("output.W", WORDS, SIZE)
        return F.linear(x, output, self.param("output.b", WORDS) if self.bias else None)


def turned(x, size):
    """x [B,n,heads*size] by rotary positions: each pair as a complex number times e^(i angle)."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:2], -1, size // 2, 2))
    angles = torch.arange(x.shape[1])[:, None] * 10000.0 ** (-torch.arange(size // 2, dtype=torch.double) * 2 / size)  # [n,size/2]
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)[:, None]).reshape(x.shape)


def padded(rows):
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def case(name, settings, **how):
    model = Model(**how)
    logits = model.run()
    rows = torch.cat([logits[b, :len(row)] for b, row in enumerate(TARGET)])  # what counts, one sentence after another
    loss = F.cross_entropy(rows, torch.tensor([word for row in TARGET for word in row]), reduction="sum", label_smoothing=SMOOTHING)
    loss.backward()
    tensors[name + "/logits"], tensors[name + "/loss"] = rows, loss
    for key, value in model.p.items():
        tensors[f"{name}/{key}"] = value.grad
    cases.append({"name": name, "settings": f"hidden={SIZE} ffn={INNER} heads={HEADS} dropout=0 {settings}"})


case("post-norm", "layers=2")
case("pre-norm", "layers=2 norm=pre activation=gelu position-layout=halves position-denominator=half-1 first-position=1 tie=false "
     "output-bias=true", norm="pre", activation="gelu", halves=True, denominator=SIZE // 2 - 1, first=1, tie=False, bias=True)
case("shaw", "layers=1 position=shaw:2 activation=swish share-embeddings=true", layers=1, position="shaw:2", activation="swish",
     share=True)
case("grouped", f"layers=1 decoder-layers=2 kv-heads=1 norm=pre final-norm=false position=learned positions={PLACES} "
     "scale-embedding=false", layers=1, decoder_layers=2, kv_heads=1, norm="pre", final=False, position="learned", scale=False)
case("rope", "layers=1 kv-heads=1 position=rope cross-attention=rope", layers=1, kv_heads=1, position="rope", cross_position="rope")

batch = {"source": SOURCE, "input": TARGET_IN, "target": TARGET, "words": WORDS, "smoothing": SMOOTHING}
write(sys.argv[1], tensors, cases=cases, batch=batch)
