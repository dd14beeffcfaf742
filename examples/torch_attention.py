#!/usr/bin/env python3
"""attend's operator as a function of PyTorch with gradients, checked against PyTorch's own attention.

    PYTHONPATH=python python3 examples/torch_attention.py
"""

import sys

try:
    import torch
except ImportError:
    print("SKIPPED: PyTorch is not installed (Debian: python3-torch)")
    sys.exit(0)

import attend


class Attention(torch.autograd.Function):
    """softmax(q kᵀ / √D) v and every other setting of attend.attention, on the CPU."""

    @staticmethod
    def forward(ctx, query, key, value, settings):
        ctx.save_for_backward(query, key, value)
        ctx.settings = settings
        # .numpy() shares the memory of a tensor, and attend reads it where it is.
        return torch.from_numpy(attend.attention(query.numpy(), key.numpy(), value.numpy(), **settings).out)

    @staticmethod
    def backward(ctx, grad_out):
        arrays = [tensor.numpy() for tensor in ctx.saved_tensors]
        grads = attend.attention(*arrays, grad_out=grad_out.contiguous().numpy(), **ctx.settings).grads
        return *(torch.from_numpy(grads[name]) for name in ("query", "key", "value")), None


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)  # [B, H, n, D]


def torch_attention(query, key, value, heads):
    """The same with causal masking, of PyTorch's operations."""
    q, k, v = (heads_of(x, heads) for x in (query, key, value))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


torch.manual_seed(1)
inputs = [torch.randn(2, 10, 32, requires_grad=True) for _ in range(3)]
mine = Attention.apply(*inputs, {"heads": 4, "window": "causal"})
theirs = torch_attention(*inputs, 4)
print(f"largest difference of the outputs {(mine - theirs).abs().max().item():.1e}")
weight = torch.randn_like(mine)
for ours, other in zip(*(torch.autograd.grad((out * weight).sum(), inputs) for out in (mine, theirs))):
    assert torch.allclose(ours, other, atol=1e-5)
print("the gradients agree")
