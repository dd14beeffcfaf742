#!/usr/bin/python3
"""Makes attention.safetensors: what PyTorch says attention gives, forward and backward.

Run by hand with Debian's python3-torch (1.13); the tests read the file and need no Python:

    /usr/bin/python3 tests/ref/make_reference.py tests/ref/attention.safetensors

PyTorch works in double and is the judge; inputs are float32 numbers, so both sides start from the same values. Formulas are
written the long way (full masks, n x n x d tables for Shaw's positions, sorted thresholds), in no way as the library computes
them, and gradients are autograd's. The cases named mha-* go through torch.nn.functional.multi_head_attention_forward.
"""
import math
import sys

import torch
import torch.nn.functional as F

from reference_file import write

tensors, cases = {}, []


def numbers(generator, *shape, scale=1.0):
    """Normal numbers that float32 holds exactly, as a double leaf that wants a gradient."""
    return (torch.randn(*shape, generator=generator) * scale).double().requires_grad_()


# ---- The axes ----------------------------------------------------------------------------------------------------------

def score(kind, q, k, p):
    """e [B,H,Q,K] of q [B,H,Q,D] and k [B,H,K,D]."""
    name, _, act = kind.partition(":")
    if name == "dot":
        return q @ k.transpose(-1, -2)
    if name == "scaled":
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if name == "general":
        return (q @ p["W"]) @ k.transpose(-1, -2)
    # v . act(W q + U k + b) with the [Q,K,A] table in full; a set per head has a leading H dimension
    per_head = p["W"].dim() == 3
    x = torch.einsum("bhqd,had->bhqa" if per_head else "bhqd,ad->bhqa", q, p["W"]).unsqueeze(3)
    x = x + torch.einsum("bhkd,had->bhka" if per_head else "bhkd,ad->bhka", k, p["U"]).unsqueeze(2)
    if "b" in p:
        x = x + (p["b"][None, :, None, None, :] if per_head else p["b"])
    x = {"": torch.tanh, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu}[act](x)
    return torch.einsum("bhqka,ha->bhqk" if per_head else "bhqka,a->bhqk", x, p["v"])


def sorted_threshold(z, alpha15):
    """The threshold tau of sparsemax, or of 1.5-entmax on halved scores, for one row of scores."""
    s, _ = torch.sort(z, descending=True)
    best = None
    for n in range(1, len(s) + 1):  # the largest support whose own threshold lies below its smallest score
        head = s[:n]
        if alpha15:
            mean = head.mean()
            rest = (1 - ((head - mean) ** 2).sum()) / n
            if rest < 0:
                break
            tau = mean - torch.sqrt(rest)
        else:
            tau = (head.sum() - 1) / n
        if tau > s[n - 1]:
            break
        best = tau
    return best


def normalise(kind, e, mask):
    """Weights over the keys where mask is true; a row without any stays zero."""
    rows = []
    for z, m in zip(e.reshape(-1, e.shape[-1]), mask.expand_as(e).reshape(-1, e.shape[-1])):
        w = torch.zeros_like(z)
        if m.any():
            x = z[m]
            if kind == "softmax":
                y = torch.softmax(x, 0)
            elif kind == "sparsemax":
                y = torch.clamp(x - sorted_threshold(x, False), min=0)
            elif kind == "entmax15":
                y = torch.clamp(x / 2 - sorted_threshold(x / 2, True), min=0) ** 2
            elif kind == "sigmoid":
                y = torch.sigmoid(x)
            elif kind == "relu":
                y = torch.relu(x)
                y = y / y.sum() if y.sum() > 0 else y * 0
            else:  # hard: the argmax; nothing flows back through the choice
                y = F.one_hot(x.argmax(), len(x)).to(x.dtype)
            w = w.masked_scatter(m, y)
        rows.append(w)
    return torch.stack(rows).reshape(e.shape)


def t5_bucket(offset, buckets, farthest=128):
    """Half of the buckets for keys ahead; in each half the first half exact, the rest logarithmic up to `farthest`."""
    half = buckets // 2
    exact = half // 2
    distance = abs(offset)
    if distance < exact:
        bucket = distance
    else:  # exact + floor(log(distance/exact) / log(farthest/exact) * (half - exact)), in whole numbers
        bucket = exact
        while bucket + 1 < half and (distance ** (half - exact) * exact ** (bucket + 1 - exact)
                                     >= farthest ** (bucket + 1 - exact) * exact ** (half - exact)):
            bucket += 1
    return bucket + (half if offset > 0 else 0)


def rope(x, start):
    """Pairs (2i, 2i+1) turned by position * 10000^(-2i/D)."""
    n, size = x.shape[-2:]
    place = torch.arange(start, start + n, dtype=torch.double)
    angle = place[:, None] * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.double) / size)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1).flatten(-2)


# ---- The operator ------------------------------------------------------------------------------------------------------

def attend(s, q, k, v, p):
    """out [B,Q,H*Dv], weights and scores [B,H,Q,K], mask, of q [B,Q,H*D], k [B,K,G*D], v [B,K,G*Dv]."""
    heads, groups, start = s["heads"], s["kv_heads"], s["query_start"]
    split = lambda x, n: x.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2)
    q = split(q, heads)
    k, v = (split(x, groups).repeat_interleave(heads // groups, 1) for x in (k, v))
    batch, queries, keys = q.shape[0], q.shape[2], k.shape[2]
    i = torch.arange(start, start + queries)[:, None]
    j = torch.arange(keys)[None, :]
    lengths = torch.tensor(s["lengths"] or [keys] * batch)
    mask = (j < lengths[:, None, None, None]).expand(batch, heads, queries, keys)

    window, _, reach = s["window"].partition(":")
    prior = None
    if window == "causal":
        mask = mask & (j <= i)
    elif window in ("sliding", "local-m"):
        mask = mask & ((i - j).abs() <= int(reach))
    elif window == "local-p":
        hidden = torch.tanh(torch.einsum("bhqd,ad->bhqa", q, p["Wp"]))
        centre = lengths[:, None, None].double() * torch.sigmoid(hidden @ p["vp"])
        distance = j - centre[..., None]
        mask = mask & (distance.abs() <= int(reach))
        prior = torch.exp(-distance ** 2 / (2 * (int(reach) / 2) ** 2))

    position, _, number = s["position"].partition(":")
    offsets = j - i
    if position == "rope":
        q, k = rope(q, start), rope(k, 0)
    e = score(s["score"], q, k, p)
    if position == "shaw":
        reach = int(number)
        entry = offsets.clamp(-reach, reach) + reach
        if "wK" in p:
            table = p["wK"][entry]  # [Q,K,D]
            bias = torch.einsum("bhqd,qkd->bhqk", q, table)
            e = e + (bias / math.sqrt(q.shape[-1]) if s["score"] == "scaled" else bias)
    elif position == "alibi":
        slope = torch.tensor([2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)], dtype=torch.double)
        e = e - slope[:, None, None] * offsets.abs()
    elif position == "t5":
        buckets = int(number or 32)
        entry = torch.tensor([[t5_bucket(int(x), buckets) for x in row] for row in offsets])
        e = e + p["bias"][entry].permute(2, 0, 1)

    w = normalise(s["normaliser"], e, mask)
    if prior is not None:
        w = w * prior
    out = w @ v
    if position == "shaw" and "wV" in p:
        out = out + torch.einsum("bhqk,qkd->bhqd", w, p["wV"][entry])
    return out.transpose(1, 2).flatten(2), w, e, mask


# ---- Cases -------------------------------------------------------------------------------------------------------------

def store(name, s, inputs, p, out, w, generator, log_prob=None):
    grad_out = torch.randn(*out.shape, generator=generator).double()
    target = (out * grad_out).sum()
    if log_prob is not None:
        grad_log_prob = torch.randn(*log_prob.shape, generator=generator).double()
        target = target + (log_prob * grad_log_prob).sum()
        tensors[name + "/log_prob"], tensors[name + "/grad_log_prob"] = log_prob, grad_log_prob
    target.backward()
    for key, x in {**inputs, **p}.items():
        tensors[f"{name}/{key}"] = x
        tensors[f"{name}/grad_{key}"] = x.grad if x.grad is not None else torch.zeros_like(x)
    tensors[name + "/out"], tensors[name + "/grad_out"] = out, grad_out
    if w.numel() < 1000:
        tensors[name + "/weights"] = w
    cases.append({"name": name, **{axis: x for axis, x in s.items() if x is not None}, "parameters": list(p)})


def settings(score="scaled", normaliser="softmax", window="global", position="none", heads=2, kv_heads=None, lengths=None,
             query_start=0):
    return dict(score=score, normaliser=normaliser, window=window, position=position, heads=heads, kv_heads=kv_heads or heads,
                lengths=lengths, query_start=query_start)


def case(name, queries=4, keys=5, size=4, value_size=3, parameters={}, **axes):
    """parameters: name -> shape; WQ WK WV WO project, and then carry the widths of the arrays around them."""
    generator = torch.Generator().manual_seed(len(cases) + 1)
    s = settings(**axes)
    batch = len(s["lengths"] or [keys])
    p = {n: numbers(generator, *shape, scale=0.7) for n, shape in parameters.items()}
    width = lambda w, plain: p[w].shape[1] if w in p else plain
    inputs = {
        "query": numbers(generator, batch, queries, width("WQ", s["heads"] * size)),
        "key": numbers(generator, batch, keys, width("WK", s["kv_heads"] * size)),
        "value": numbers(generator, batch, keys, width("WV", s["kv_heads"] * value_size)),
    }
    projected = [x @ p[w].T if w in p else x for w, x in zip(("WQ", "WK", "WV"), inputs.values())]
    out, w, e, mask = attend(s, *projected, p)
    if "WO" in p:
        out = out @ p["WO"].T
    log_prob = None
    if s["normaliser"] == "hard":
        log_prob = (torch.log_softmax(e.masked_fill(~mask, -math.inf), -1).masked_fill(~mask, 0) * w).sum(-1)
    store(name, s, inputs, p, out, w, generator, log_prob)


def mha_case(name, heads=2, model=6, key_width=None, value_width=None, causal=False, lengths=None, keys=5, queries=4):
    """PyTorch's own multi-head attention, with its projections."""
    generator = torch.Generator().manual_seed(len(cases) + 1)
    key_width, value_width = key_width or model, value_width or model
    inputs = {"query": numbers(generator, 2, queries, model), "key": numbers(generator, 2, keys, key_width),
              "value": numbers(generator, 2, keys, value_width)}
    p = {"WQ": numbers(generator, model, model, scale=0.5), "WK": numbers(generator, model, key_width, scale=0.5),
         "WV": numbers(generator, model, value_width, scale=0.5), "WO": numbers(generator, model, model, scale=0.5)}
    padding = torch.arange(keys)[None, :] >= torch.tensor(lengths)[:, None] if lengths else None
    out, w = F.multi_head_attention_forward(
        *(x.transpose(0, 1) for x in inputs.values()), model, heads, None, torch.zeros(3 * model).double(), None, None, False, 0.0,
        p["WO"], None, key_padding_mask=padding, need_weights=True, use_separate_proj_weight=True, q_proj_weight=p["WQ"],
        k_proj_weight=p["WK"], v_proj_weight=p["WV"], average_attn_weights=False,
        attn_mask=torch.ones(queries, keys).triu(1).bool() if causal else None)
    s = settings(heads=heads, window="causal" if causal else "global", lengths=lengths)
    # Our own long form must say the same, which judges the judge of the other cases.
    own, own_w, _, _ = attend(s, *(x @ p[n].T for n, x in zip(p, inputs.values())), p)
    assert torch.allclose(own @ p["WO"].T, out.transpose(0, 1)) and torch.allclose(own_w, w)
    store(name, s, inputs, p, out.transpose(0, 1), w, generator)


mha_case("mha-full")
mha_case("mha-causal", causal=True)
mha_case("mha-cross-widths", key_width=5, value_width=3, lengths=[5, 4])

case("scaled-long", queries=66, keys=67, size=4, value_size=4, heads=1, window="causal")
case("scaled-causal", window="causal")
case("scaled-lengths", lengths=[4, 0])
case("scaled-step", queries=2, query_start=3, window="causal")
case("grouped", heads=4, kv_heads=2, lengths=[5, 4], window="causal")
case("multi-query", heads=3, kv_heads=1, lengths=[2, 5])
case("projected-odd", heads=2, kv_heads=1,
     parameters={"WQ": (8, 6), "WK": (4, 5), "WV": (3, 7), "WO": (5, 6)})

case("dot", score="dot")
case("general", score="general", parameters={"W": (4, 4)}, lengths=[5, 4])
case("general-per-head", score="general", parameters={"W": (2, 4, 4)}, window="causal")
case("additive", score="additive", parameters={"W": (5, 4), "U": (5, 4), "v": (5,), "b": (5,)}, lengths=[5, 3])
case("additive-sigmoid", score="additive:sigmoid", parameters={"W": (5, 4), "U": (5, 4), "v": (5,)}, window="causal")
case("additive-relu", score="additive:relu", parameters={"W": (5, 4), "U": (5, 4), "v": (5,), "b": (5,)})
case("additive-per-head", score="additive:tanh", parameters={"W": (2, 3, 4), "U": (2, 3, 4), "v": (2, 3), "b": (2, 3)}, kv_heads=1)

for normaliser in ("sparsemax", "entmax15", "sigmoid", "relu"):
    case(normaliser, normaliser=normaliser, score="dot", lengths=[5, 3])
    case(normaliser + "-causal", normaliser=normaliser, window="causal")
case("hard", normaliser="hard", score="dot", lengths=[5, 3])

case("sliding", window="sliding:1", queries=5)
case("local-m", window="local-m:2", score="general", parameters={"W": (4, 4)}, queries=5, lengths=[5, 4])
case("local-p", window="local-p:2", score="general", parameters={"W": (4, 4), "Wp": (3, 4), "vp": (3,)}, keys=9, lengths=[9, 5])
case("local-p-scaled", window="local-p:1", parameters={"Wp": (3, 4), "vp": (3,)}, keys=9)

case("shaw", position="shaw:2", parameters={"wK": (5, 4), "wV": (5, 3)}, queries=5)
case("shaw-keys", position="shaw:3", parameters={"wK": (7, 4)}, window="causal")
case("shaw-values", position="shaw:1", parameters={"wV": (3, 3)}, lengths=[5, 2])
case("shaw-step", position="shaw:2", parameters={"wK": (5, 4), "wV": (5, 3)}, queries=2, query_start=4, score="dot")
case("rope", position="rope", window="causal")
case("rope-step", position="rope", queries=2, query_start=7)
case("alibi", position="alibi", heads=3)
case("alibi-causal", position="alibi", heads=2, window="causal", kv_heads=1)
case("t5", position="t5", heads=1, keys=140, size=2, value_size=2, parameters={"bias": (32, 1)})
case("t5-back", position="t5:8", queries=2, keys=70, query_start=68, size=2, value_size=2, parameters={"bias": (8, 2)})

case("mixed-1", score="additive", normaliser="sparsemax", window="causal", position="t5:8",
     parameters={"W": (5, 4), "U": (5, 4), "v": (5,), "bias": (8, 2)})
case("mixed-2", score="general", normaliser="entmax15", window="sliding:2", position="alibi", lengths=[5, 3], queries=5,
     parameters={"W": (4, 4)})
case("mixed-3", normaliser="sigmoid", window="causal", position="shaw:2", heads=4, kv_heads=2,
     parameters={"wK": (5, 4), "wV": (5, 3)})
case("mixed-4", score="dot", normaliser="relu", window="local-m:1", position="rope", queries=5)

write(sys.argv[1], tensors, cases=cases)
