#!/usr/bin/env python3
"""Writes the smallest GGUF file of a llama, laid out by hand, to standard output: for fuzzers, and for
the documents' commands."""
import struct
import sys

SIZES = dict(block_count=1, context_length=4, embedding_length=4, feed_forward_length=2)
TENSORS = [("token_embd", (4, 3)), ("blk.0.attn_norm", (4,)), ("blk.0.attn_q", (4, 4)), ("blk.0.attn_k", (4, 4)),
           ("blk.0.attn_v", (4, 4)), ("blk.0.attn_output", (4, 4)), ("blk.0.ffn_norm", (4,)),
           ("blk.0.ffn_gate", (4, 2)), ("blk.0.ffn_up", (4, 2)), ("blk.0.ffn_down", (2, 4)), ("output_norm", (4,))]


def text(x):
    return struct.pack("<Q", len(x)) + x.encode()


def u32(key, value):
    return text(key) + struct.pack("<II", 4, value)


def pad(x):
    return x + bytes(-len(x) % 8)


keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama"), u32("general.alignment", 8)]
keys += [u32(f"llama.{k}", v) for k, v in SIZES.items()]
keys += [u32("llama.attention.head_count", 2)]
keys += [text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5)]
tensors, data = b"", b""
for name, dims in TENSORS:
    count = dims[0] * (dims[1] if len(dims) > 1 else 1)
    tensors += text(name + ".weight") + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
    tensors += struct.pack("<IQ", 1, len(data))
    data += pad(bytes(2 * count))
header = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), len(keys)) + b"".join(keys) + tensors
sys.stdout.buffer.write(pad(header) + data)
