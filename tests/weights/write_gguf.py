#!/usr/bin/env python3
"""Writes the smallest GGUF file of a llama, laid out by hand, to standard output: for fuzzers, and for
the documents' commands. With the word gpt2 or llama, it has a tokenizer of that kind and no tensors; with
the word whole, a tokenizer and tensors; with gemma3 or smollm3, it is a model of this family."""
import struct
import sys

SIZES = dict(block_count=1, context_length=4, embedding_length=4, feed_forward_length=2)
TENSORS = [("token_embd", (4, 3)), ("blk.0.attn_norm", (4,)), ("blk.0.attn_q", (4, 4)), ("blk.0.attn_k", (4, 4)),
           ("blk.0.attn_v", (4, 4)), ("blk.0.attn_output", (4, 4)), ("blk.0.ffn_norm", (4,)),
           ("blk.0.ffn_gate", (4, 2)), ("blk.0.ffn_up", (4, 2)), ("blk.0.ffn_down", (2, 4)), ("output_norm", (4,))]


def text(x):
    return struct.pack("<Q", len(x.encode())) + x.encode()


def u32(key, value):
    return text(key) + struct.pack("<II", 4, value)


def pad(x):
    return x + bytes(-len(x) % 8)


def texts(key, values):
    return text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def array(key, kind, code, values):
    return text(key) + struct.pack(f"<IIQ{len(values)}{code}", 9, kind, len(values), *values)


def tokenizer(model):
    """The keys of a tokenizer with the letters of ASCII, and a few merges."""
    name = "tokenizer.ggml."
    letters = [chr(c) for c in range(33, 127)]
    if model == "gpt2":
        tokens = ["<s>", *letters, "\u0120", "\u010a", "lo", "low", "\u0120low"]
        more = [texts(name + "merges", ["l o", "lo w", "\u0120 low"]),
                text(name + "pre") + struct.pack("<I", 8) + text("smollm")]
        types = [3] + [1] * (len(tokens) - 1)
    else:
        tokens = ["<unk>", "<s>", "</s>", "\u2581", *letters, "lo", "\u2581lo", "low", "\u2581low"]
        more = [array(name + "scores", 6, "f", [-i for i in range(len(tokens))])]
        types = [2, 3, 3] + [1] * (len(tokens) - 3)
    return [text(name + "model") + struct.pack("<I", 8) + text(model), texts(name + "tokens", tokens),
            array(name + "token_type", 5, "i", types), *more]


WORD = sys.argv[1] if len(sys.argv) > 1 else ""
FAMILY = WORD if WORD in ("gemma3", "smollm3") else "llama"
more = []
if FAMILY == "gemma3":
    SIZES.update(block_count=2)
    TENSORS[1:1] = [("blk.0.attn_q_norm", (2,)), ("blk.0.attn_k_norm", (2,)), ("blk.0.post_attention_norm", (4,)),
                    ("blk.0.post_ffw_norm", (4,))]
    more = [u32("gemma3.attention.sliding_window", 3), u32("gemma3.attention.sliding_window_pattern", 2),
            text("gemma3.rope.freq_base_swa") + struct.pack("<If", 6, 100), array("lockstep.norms", 6, "f", [0.1] * 44)]
elif FAMILY == "smollm3":
    SIZES.update(block_count=4)
    more = [text("smollm3.rope.scaling.type") + struct.pack("<I", 8) + text("yarn"),
            text("smollm3.rope.scaling.factor") + struct.pack("<If", 6, 2)]
if FAMILY != "llama":
    blocks = [(n.replace("blk.0", f"blk.{i}"), d) for i in range(SIZES["block_count"]) for n, d in TENSORS if "blk" in n]
    TENSORS = [TENSORS[0], *blocks, TENSORS[-1]]
elif WORD == "whole":
    TENSORS[0] = ("token_embd", (4, 100))
    SIZES["context_length"] = 64
elif WORD:
    SIZES, TENSORS = {}, []
keys = [text("general.architecture") + struct.pack("<I", 8) + text(FAMILY), u32("general.alignment", 8)]
keys += [u32(f"{FAMILY}.{k}", v) for k, v in SIZES.items()]
keys += [u32(f"{FAMILY}.attention.head_count", 2)]
keys += [text(f"{FAMILY}.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5), *more]
if WORD == "whole":
    keys += [text("tokenizer.chat_template") + struct.pack("<I", 8) +
             text("{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}assistant "),
             u32("tokenizer.ggml.eos_token_id", 0)]
if WORD and FAMILY == "llama":
    keys += tokenizer("gpt2" if WORD == "whole" else WORD)
tensors, data = b"", b""
for name, dims in TENSORS:
    count = dims[0] * (dims[1] if len(dims) > 1 else 1)
    tensors += text(name + ".weight") + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
    tensors += struct.pack("<IQ", 1, len(data))
    data += pad(bytes(2 * count))
header = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), len(keys)) + b"".join(keys) + tensors
sys.stdout.buffer.write(pad(header) + data)
