"""Writes a model of Llama's shape with a billion parameters, random and stored as bf16: PyTorch and
Lockstep train what no one needs to fetch.

    random_llama.py MODEL OUT

MODEL is a directory with a tokenizer of 49,152 tokens (SmolLM2's), which OUT gets too. A weight is
drawn from a normal distribution with standard deviation 0.02, the norms' are 1. OUT appears when it
is whole.
"""
import json
import os
import shutil
import sys

import torch
from safetensors.torch import save_file

WIDTH, INNER, LAYERS, HEADS, KV_HEADS, VOCAB = 2048, 8192, 16, 32, 8, 49152
KV_WIDTH = WIDTH // HEADS * KV_HEADS
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_act": "silu",
          "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "max_position_embeddings": 2048,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
LINEAR = {"self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (KV_WIDTH, WIDTH), "self_attn.v_proj": (KV_WIDTH, WIDTH),
          "self_attn.o_proj": (WIDTH, WIDTH), "mlp.gate_proj": (INNER, WIDTH), "mlp.up_proj": (INNER, WIDTH),
          "mlp.down_proj": (WIDTH, INNER)}


def weights():
    draw = torch.Generator().manual_seed(1)
    drawn = lambda *shape: torch.normal(0, 0.02, shape, generator=draw).bfloat16()
    ones = lambda: torch.ones(WIDTH, dtype=torch.bfloat16)
    tensors = {"model.embed_tokens.weight": drawn(VOCAB, WIDTH), "model.norm.weight": ones()}
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        tensors |= {f"{layer}.{name}.weight": drawn(*shape) for name, shape in LINEAR.items()}
        tensors |= {f"{layer}.{name}.weight": ones() for name in ["input_layernorm", "post_attention_layernorm"]}
    return tensors


def main():
    source, out = sys.argv[1:]
    partial = f"{out}.partial"
    os.makedirs(partial, exist_ok=True)
    for name in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]:
        shutil.copy(f"{source}/{name}", partial)
    with open(f"{partial}/config.json", "w") as f:
        json.dump(CONFIG, f, indent=2)
    save_file(weights(), f"{partial}/model.safetensors", metadata={"format": "pt"})
    os.rename(partial, out)


if __name__ == "__main__":
    main()
