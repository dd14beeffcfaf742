"""hf_marian.py FOLDER SOURCE TARGET: the log-probability of each target line, from a MarianMT folder of Hugging Face.

Nothing but NumPy, and nothing of attend: the equations as Hugging Face's model has them, in float32. Lines are words that
vocab.json (target_vocab.json) numbers; </s> is added to both.

    x_t = s E[w_t] + P_t      s = sqrt(d) or 1;  P_t[j] = sin(t 10000^(-j / (d/2))), j < d/2, then the cosines; t from 0
    y = LN(x + F(x))          F: attention, in the decoder attention to the encoder, W2 act(W1 x + b1) + b2;  eps 1e-5
    logits = x E^T + final_logits_bias, or lm_head; the decoder begins with decoder_start_token_id
"""

import json
import math
import os
import struct
import sys

import numpy as np

folder, source_path, target_path = sys.argv[1:]


def load(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


config = load("config.json")
source_words = load("vocab.json")
target_words = source_words if config["share_encoder_decoder_embeddings"] else load("target_vocab.json")

with open(os.path.join(folder, "model.safetensors"), "rb") as file:
    length = struct.unpack("<Q", file.read(8))[0]
    header = json.loads(file.read(length))
    data = file.read()
arrays = {}
for name, about in header.items():
    if name != "__metadata__":
        begin, end = about["data_offsets"]
        kind = {"F32": "<f4", "F16": "<f2"}[about["dtype"]]
        arrays[name] = np.frombuffer(data[begin:end], kind).reshape(about["shape"]).astype(np.float32)
assert header["__metadata__"] == {"format": "pt"}

width, heads = config["d_model"], config["encoder_attention_heads"]
used = set()


def array(name):
    used.add(name)
    return arrays[name]


def linear(x, name):
    return x @ array(name + ".weight").T + array(name + ".bias")


def norm(x, name):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * array(name + ".weight") + array(name + ".bias")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x, memory, name, causal):
    size = width // heads
    q, k, v = (linear(rows, f"{name}.{part}_proj").reshape(len(rows), heads, size).transpose(1, 0, 2)
               for rows, part in ((x, "q"), (memory, "k"), (memory, "v")))
    scores = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(size))
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    return linear((softmax(scores) @ v).transpose(1, 0, 2).reshape(len(x), width), f"{name}.out_proj")


normal = np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2, otypes=[np.float32])  # Phi(x)
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * normal(x),
}


def feed_forward(x, name):
    return linear(ACTIVATIONS[config["activation_function"]](linear(x, name + ".fc1")), name + ".fc2")


def embed(ids, table):
    t, j = np.arange(len(ids))[:, None], np.arange(width // 2)
    angle = t * 10000.0 ** (-j / (width / 2))
    positions = np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)
    scale = np.float32(np.sqrt(width)) if config["scale_embedding"] else np.float32(1)
    return scale * array(table)[ids] + positions


shared = config["share_encoder_decoder_embeddings"]
source_table = "model.shared.weight" if shared else "model.encoder.embed_tokens.weight"
target_table = "model.shared.weight" if shared else "model.decoder.embed_tokens.weight"
output_table = target_table if config["tie_word_embeddings"] else "lm_head.weight"


def score(source, target):
    x = embed(source, source_table)
    for layer in range(config["encoder_layers"]):
        name = f"model.encoder.layers.{layer}"
        x = norm(x + attention(x, x, name + ".self_attn", False), name + ".self_attn_layer_norm")
        x = norm(x + feed_forward(x, name), name + ".final_layer_norm")
    y = embed([config["decoder_start_token_id"]] + target[:-1], target_table)
    for layer in range(config["decoder_layers"]):
        name = f"model.decoder.layers.{layer}"
        y = norm(y + attention(y, y, name + ".self_attn", True), name + ".self_attn_layer_norm")
        y = norm(y + attention(y, x, name + ".encoder_attn", False), name + ".encoder_attn_layer_norm")
        y = norm(y + feed_forward(y, name), name + ".final_layer_norm")
    logits = (y @ array(output_table).T + array("final_logits_bias")[0]).astype(np.float64)
    logits -= logits.max(-1, keepdims=True)
    return (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(len(target)), target].sum()


def ids(line, words):
    return [words.get(word, words["<unk>"]) for word in line.split()] + [config["eos_token_id"]]


with open(source_path, encoding="utf-8") as sources, open(target_path, encoding="utf-8") as targets:
    for source, target in zip(sources, targets):
        print(f"{score(ids(source, source_words), ids(target, target_words)):.6f}")
assert used == set(arrays), f"arrays that MarianMT does not have: {sorted(set(arrays) - used)}"
for name, size in (("vocab_size", len(source_words)), ("decoder_vocab_size", len(target_words))):
    assert config[name] == size, (name, config[name], size)
assert arrays["final_logits_bias"].shape == (1, config["decoder_vocab_size"])
