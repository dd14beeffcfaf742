#!/usr/bin/env python3
"""Writes the small models of other programs in this folder: random weights, a few words, the files of each format.

Only the standard library is used. The pickles of PyTorch are written with stand-ins for its classes."""
import argparse, collections, io, json, os, pickle, struct, sys, types, zipfile

here = os.path.dirname(os.path.abspath(__file__))
state = 1


def uniform():
    """A number in -0.5 to 0.5, the same in every run."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 40) / 2**24 - 0.5


class Array:
    def __init__(self, *dims):
        self.dims = dims
        count = 1
        for d in dims:
            count *= d
        self.values = [uniform() for _ in range(count)]

    def bytes(self):
        return struct.pack("<%df" % len(self.values), *self.values)


def npy(descr, dims, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d, " % d for d in dims))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def write(folder, name, data):
    os.makedirs(os.path.join(here, folder), exist_ok=True)
    with open(os.path.join(here, folder, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def archive(folder, name, entries, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for entry, data in entries:
            z.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), data, method)
    write(folder, name, out.getvalue())


def npz(folder, name, arrays, settings=None, method=zipfile.ZIP_STORED):
    entries = [(n + ".npy", npy("<f4", a.dims, a.bytes())) for n, a in arrays.items()]
    if settings:
        text = settings.encode() + b"\0" * 8
        entries.append(("special:model.yml.npy", npy("<i1", (len(text),), text)))
    archive(folder, name, entries, method)


# ---- Marian: 8 words, d 4, 2 heads, 1 + 1 layers -------------------------------------------------------------------
d, V, F = 4, 8, 6
words = ["</s>", "<unk>", "a", "b", "c", "d", "e"]  # one row more than words


def transformer():
    w = {"Wemb": Array(V, d), "decoder_ff_logit_out_b": Array(1, V)}
    for side, parts in (("encoder", ["self"]), ("decoder", ["self", "context"])):
        for part in parts:
            for m in "qkvo":
                w["%s_l1_%s_W%s" % (side, part, m)] = Array(d, d)
                w["%s_l1_%s_b%s" % (side, part, m)] = Array(1, d)
            for m in ("scale", "bias"):
                w["%s_l1_%s_Wo_ln_%s" % (side, part, m)] = Array(1, d)
        w[side + "_l1_ffn_W1"], w[side + "_l1_ffn_b1"] = Array(d, F), Array(1, F)
        w[side + "_l1_ffn_W2"], w[side + "_l1_ffn_b2"] = Array(F, d), Array(1, d)
        for m in ("scale", "bias"):
            w["%s_l1_ffn_ffn_ln_%s" % (side, m)] = Array(1, d)
    return w


def recurrent():
    H, A = 3, 5
    w = {"encoder_Wemb": Array(7, d), "decoder_Wemb": Array(7, d)}
    cells = (("encoder_bi", d), ("encoder_bi_r", d), ("decoder_cell1", d), ("decoder_cell2", 2 * H))
    for cell, size in cells:
        w[cell + "_W"], w[cell + "_Wx"] = Array(size, 2 * H), Array(size, H)
        w[cell + "_U"], w[cell + "_Ux"] = Array(H, 2 * H), Array(H, H)
        w[cell + "_b"], w[cell + "_bx"] = Array(1, 2 * H), Array(1, H)
    w["decoder_ff_state_W"], w["decoder_ff_state_b"] = Array(2 * H, H), Array(1, H)
    w["decoder_Wc_att"], w["decoder_W_comb_att"] = Array(2 * H, A), Array(H, A)
    w["decoder_b_att"], w["decoder_U_att"] = Array(1, A), Array(A, 1)
    for i, size in enumerate((d, H, 2 * H)):
        w["decoder_ff_logit_l1_W%d" % i], w["decoder_ff_logit_l1_b%d" % i] = Array(size, d), Array(1, d)
    w["decoder_ff_logit_l2_Wt"], w["decoder_ff_logit_l2_b"] = Array(7, d), Array(1, 7)
    return w


vocabulary = "".join("%s: %d\n" % (w, i) for i, w in enumerate(words))
decoder = "models:\n  - model.npz\nvocabs:\n  - vocab.yml\n  - vocab.yml\n"
common = "dec-depth: 1\nenc-depth: 1\ndim-emb: 4\ninput-types:\n  []\nversion: v1.12.0\n"
for folder in ("marian", "s2s"):
    write(folder, "vocab.yml", vocabulary)
    write(folder, "decoder.yml", decoder)
npz("marian", "model.npz", transformer(),
    common + "type: transformer\ntransformer-heads: 2\ntransformer-postprocess: dan\ntransformer-preprocess: \"\"\n"
    "transformer-postprocess-top: \"\"\ntransformer-ffn-activation: swish\n", zipfile.ZIP_DEFLATED)
# Kinds that are refused by their settings, before any array is looked at.
for name, settings in (("ssru", "type: transformer\ntransformer-decoder-autoreg: rnn\n"), ("amun", "type: amun\n"),
                       ("tied", "type: transformer\ntransformer-tied-layers:\n  - 1\n  - 1\n"),
                       ("factors", "type: transformer\nlemma-dim-emb: 8\n"),
                       ("multi-source", "type: multi-transformer\n"), ("cells", "type: s2s\nenc-cell: lstm\n")):
    npz("refused", name + ".npz", {}, common + settings)
npz("s2s", "model.npz", recurrent(), common + "type: s2s\nenc-type: bidirectional\nskip: false\n")

# ---- Argos Translate: a package with a model of CTranslate2 and the pieces of tests/ref/rules.spm -----------------------
def pieces_of(model):
    """The texts of the pieces in a SentencePiece model: field 1 of the message, and field 1 of that."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = model[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(model):
        key = varint()
        size = varint()
        if key == 10 and model[at] == 10:
            found.append(model[at + 2:at + 2 + model[at + 1]].decode())
        at += size
    return found


def ct2_model(rows):
    w = {"encoder/embeddings/weight": Array(rows, d), "decoder/embeddings/weight": Array(rows, d),
         "decoder/projection/weight": Array(rows, d), "decoder/projection/bias": Array(rows)}
    for side, parts in (("encoder", [("self_attention", (3, 1))]),
                        ("decoder", [("self_attention", (3, 1)), ("attention", (1, 2, 1))])):
        layer = side + "/layer_0/"
        for part, sizes in parts + [("ffn", None)]:
            shapes = [(F, d), (d, F)] if sizes is None else [(n * d, d) for n in sizes]
            for i, (out, inside) in enumerate(shapes):
                w["%s%s/linear_%d/weight" % (layer, part, i)] = Array(out, inside)
                w["%s%s/linear_%d/bias" % (layer, part, i)] = Array(out)
            for n in ("gamma", "beta"):
                w["%s%s/layer_norm/%s" % (layer, part, n)] = Array(d)

    def text(t):
        return struct.pack("<H", len(t) + 1) + t.encode() + b"\0"

    out = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(w) + 2)
    for name, a in w.items():
        out += text(name) + struct.pack("<B%dI" % len(a.dims), len(a.dims), *a.dims)
        out += struct.pack("<BI", 0, 4 * len(a.values)) + a.bytes()
    for name, value in (("encoder/num_heads", 2), ("encoder/pre_norm", 0)):
        out += text(name) + struct.pack("<BBIB", 0, 1, 1, value)
    return out + struct.pack("<I", 0)


with open(os.path.join(here, "../ref/rules.spm"), "rb") as f:
    spm = f.read()
argos_words = ["<unk>", "<s>", "</s>"] + [p for p in pieces_of(spm) if p not in ("<unk>", "<s>", "</s>")][:12]
top = "translate-aa_bb-1_9/"
archive("argos", "aa_bb.argosmodel", [
    (top + "metadata.json", json.dumps({"package_version": "1.9", "from_code": "aa", "to_code": "bb"})),
    (top + "model/model.bin", ct2_model(len(argos_words))),
    (top + "model/shared_vocabulary.json", json.dumps(argos_words)),
    (top + "model/vmap.txt", ""),
    (top + "sentencepiece.model", spm)], zipfile.ZIP_DEFLATED)

# ---- g2p_en ----------------------------------------------------------------------------------------------------------
letters, phones, H = ["<pad>", "<unk>", "</s>", "a", "b", "c"], ["<pad>", "<unk>", "<s>", "</s>", "A", "B", "K"], 3
g2p = {"enc_emb": Array(len(letters), 2), "dec_emb": Array(len(phones), 2)}
for side in ("enc", "dec"):
    g2p[side + "_w_ih"], g2p[side + "_w_hh"] = Array(3 * H, 2), Array(3 * H, H)
    g2p[side + "_b_ih"], g2p[side + "_b_hh"] = Array(3 * H), Array(3 * H)
g2p["fc_w"], g2p["fc_b"] = Array(len(phones), H), Array(len(phones))
npz("g2p", "checkpoint.npz", g2p)
write("g2p", "vocabulary.json", json.dumps({"graphemes": letters, "phonemes": phones}))

# ---- PyTorch: stand-ins that a pickle names ----------------------------------------------------------------------------
torch, utils, vocab_module = types.ModuleType("torch"), types.ModuleType("torch._utils"), types.ModuleType("torchtext.vocab")
torch._utils = utils
torchtext = types.ModuleType("torchtext")
for name, module in (("torch", torch), ("torch._utils", utils), ("torchtext", torchtext), ("torchtext.vocab", vocab_module)):
    sys.modules[name] = module


class FloatStorage:
    pass


class Vocab:
    pass


def _rebuild_tensor_v2(*arguments):
    return arguments


FloatStorage.__module__, FloatStorage.__qualname__ = "torch", "FloatStorage"
Vocab.__module__, Vocab.__qualname__ = "torchtext.vocab", "Vocab"
_rebuild_tensor_v2.__module__ = "torch._utils"
torch.FloatStorage, utils._rebuild_tensor_v2, vocab_module.Vocab = FloatStorage, _rebuild_tensor_v2, Vocab


class Storage:
    def __init__(self, array):
        self.array = array


class Tensor:
    def __init__(self, array):
        self.array, self.storage = array, Storage(array)

    def __reduce__(self):
        strides, step = [], 1
        for n in reversed(self.array.dims):
            strides.insert(0, step)
            step *= n
        return (_rebuild_tensor_v2, (self.storage, 0, self.array.dims, tuple(strides), False, collections.OrderedDict()))


class Pickler(pickle.Pickler):
    def __init__(self, out):
        super().__init__(out, 2)
        self.storages = []

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        if value not in self.storages:
            self.storages.append(value)
        key = str(self.storages.index(value))
        return ("storage", FloatStorage, key, "cpu", len(value.array.values))


def torch_zip(folder, name, value):
    out = io.BytesIO()
    p = Pickler(out)
    p.dump(value)
    entries = [("archive/data.pkl", out.getvalue()), ("archive/byteorder", b"little"), ("archive/version", b"3\n")]
    entries += [("archive/data/%d" % i, s.array.bytes()) for i, s in enumerate(p.storages)]
    archive(folder, name, entries)


def torch_old(folder, name, value):
    out = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
        pickle.dump(part, out, 2)
    p = Pickler(out)
    p.dump(value)
    keys = [str(i) for i in range(len(p.storages))]
    pickle.dump(keys, out, 2)
    data = b"".join(struct.pack("<Q", len(s.array.values)) + s.array.bytes() for s in p.storages)
    write(folder, name, out.getvalue() + data)


def ordered(arrays):
    return collections.OrderedDict((n, Tensor(a)) for n, a in arrays.items())


def vocab(itos):
    v = Vocab()
    v.itos = itos
    return v


onmt_source, onmt_target = ["<unk>", "<blank>", "a", "b", "c"], ["<unk>", "<blank>", "<s>", "</s>", "x", "y"]
E, H = 3, 4


def luong():
    w = {"encoder.embeddings.emb_luts.0.weight": Array(5, E), "decoder.embeddings.emb_luts.0.weight": Array(6, E)}
    for end in ("", "_reverse"):
        w["encoder.rnn.weight_ih_l0" + end], w["encoder.rnn.weight_hh_l0" + end] = Array(2 * H, E), Array(2 * H, H // 2)
        w["encoder.rnn.bias_ih_l0" + end], w["encoder.rnn.bias_hh_l0" + end] = Array(2 * H), Array(2 * H)
    cell = "decoder.rnn.layers.0."
    w[cell + "weight_ih"], w[cell + "weight_hh"] = Array(4 * H, E + H), Array(4 * H, H)
    w[cell + "bias_ih"], w[cell + "bias_hh"] = Array(4 * H), Array(4 * H)
    w["decoder.attn.linear_in.weight"], w["decoder.attn.linear_out.weight"] = Array(H, H), Array(H, 2 * H)
    return w


def onmt_transformer():
    w = {"encoder.embeddings.make_embedding.emb_luts.0.weight": Array(5, d),
         "decoder.embeddings.make_embedding.emb_luts.0.weight": Array(6, d)}

    def linear(name, out, inside):
        w[name + ".weight"], w[name + ".bias"] = Array(out, inside), Array(out)

    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = Array(d), Array(d)

    for layer, attentions, norms in (("encoder.transformer.0", ["self_attn"], ["layer_norm"]),
                                     ("decoder.transformer_layers.0", ["self_attn", "context_attn"],
                                      ["layer_norm_1", "layer_norm_2"])):
        for a in attentions:
            for part in ("linear_keys", "linear_values", "linear_query", "final_linear"):
                linear("%s.%s.%s" % (layer, a, part), d, d)
        for n in norms + ["feed_forward.layer_norm"]:
            norm("%s.%s" % (layer, n))
        linear(layer + ".feed_forward.w_1", F, d)
        linear(layer + ".feed_forward.w_2", d, F)
    norm("encoder.layer_norm")
    norm("decoder.layer_norm")
    return w


def checkpoint(model, size, **options):
    pairs = [("src", vocab(onmt_source)), ("tgt", vocab(onmt_target))]
    return {"model": ordered(model), "generator": ordered({"0.weight": Array(6, size), "0.bias": Array(6)}),
            "vocab": pairs, "opt": argparse.Namespace(**options), "epoch": 1}


torch_old("onmt", "luong.pt", checkpoint(luong(), H, rnn_size=H))
torch_zip("onmt", "transformer.pt", checkpoint(onmt_transformer(), d, heads=2, position_encoding=True))

# ---- Hugging Face MarianMT: without the .spm files, which the test makes ------------------------------------------------
rows = 12
hf = {"model.shared.weight": Array(rows, d), "final_logits_bias": Array(1, rows)}
for side, parts in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
    base = "model.%s.layers.0." % side
    for part in parts:
        for m in ("q", "k", "v", "out"):
            hf["%s%s.%s_proj.weight" % (base, part, m)] = Array(d, d)
            hf["%s%s.%s_proj.bias" % (base, part, m)] = Array(d)
    for n in [p + "_layer_norm" for p in parts] + ["final_layer_norm"]:
        hf[base + n + ".weight"], hf[base + n + ".bias"] = Array(d), Array(d)
    hf[base + "fc1.weight"], hf[base + "fc1.bias"] = Array(F, d), Array(F)
    hf[base + "fc2.weight"], hf[base + "fc2.bias"] = Array(d, F), Array(d)
header, data = {}, b""
for name in sorted(hf):
    block = hf[name].bytes()
    header[name] = {"dtype": "F32", "shape": hf[name].dims, "data_offsets": [len(data), len(data) + len(block)]}
    data += block
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
write("hf", "model.safetensors", struct.pack("<Q", len(text)) + text + data)
torch_zip("hf", "pytorch_model.bin", ordered(hf))
write("hf", "vocab.json", json.dumps({"</s>": 0, "<unk>": 1, "▁": 2, "a": 3, "b": 4, "c": 5, "▁a": 6, ">>fra<<": 7,
                                      "▁b": 8, "▁c": 9, "ab": 10, "<pad>": 11}, ensure_ascii=False))
write("hf", "config.json", json.dumps({
    "model_type": "marian", "d_model": d, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": F, "decoder_ffn_dim": F, "activation_function": "swish",
    "scale_embedding": True, "pad_token_id": rows - 1, "eos_token_id": 0, "decoder_start_token_id": rows - 1,
    "static_position_embeddings": True, "share_encoder_decoder_embeddings": True}, indent=1))
