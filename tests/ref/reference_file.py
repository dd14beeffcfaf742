"""Writes the small safetensors files beside the scripts that make them: float32 tensors by name, cases as metadata."""
import json
import struct

import torch


def write(path, tensors, **metadata):
    header = {"__metadata__": {name: json.dumps(value, separators=(",", ":")) for name, value in metadata.items()}}
    header["__metadata__"]["torch"] = torch.__version__.split("a")[0]
    data = b""
    for name in sorted(tensors):
        values = tensors[name].detach().float().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
