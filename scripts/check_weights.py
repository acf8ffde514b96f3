#!/usr/bin/env python3
"""Compares weight files with what others make of them: gguf, safetensors and transformers.

    check_weights.py LOCKSTEP CONVERT [LLAMA_SIMPLE]

CONVERT is the program of tests/weights/convert.c. Small random models of each family are made with
transformers, read here, written in every form and type, and read there again: configs, names, values
and logits must be the same, values bit for bit. With LLAMA_SIMPLE, llama.cpp's example of that
name, it must load the GGUF files. Needs the Python packages torch, transformers, accelerate, gguf,
safetensors and numpy (`make check-peers` installs them into a virtual environment).
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LOCKSTEP, CONVERT = sys.argv[1:3]
SIMPLE = sys.argv[3] if len(sys.argv) > 3 else None
TOP = Path(tempfile.mkdtemp(prefix="lockstep-weights-"))
SIZES = dict(vocab_size=96, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=3)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8192)
MODELS = {
    "llama": transformers.LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 12345.0}),
    "llama-biases": transformers.LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama3": transformers.LlamaConfig(**{**SIZES, "max_position_embeddings": 16384}, rope_parameters=LLAMA3, head_dim=32),
    "llama-linear": transformers.LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}),
    "mistral": transformers.MistralConfig(**SIZES, sliding_window=None),
    "mistral-window": transformers.MistralConfig(**SIZES, sliding_window=5),
    "qwen2": transformers.Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2-window": transformers.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=7, max_window_layers=0),
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=128),  # transformers reads no other from GGUF
    "mixtral": transformers.MixtralConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2, sliding_window=None),
    "qwen3-moe": transformers.Qwen3MoeConfig(**{**SIZES, "intermediate_size": 64}, head_dim=32, moe_intermediate_size=64, num_experts=6,
                                             num_experts_per_tok=3, norm_topk_prob=True),
    "gpt2": transformers.GPT2Config(vocab_size=96, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
                                    eos_token_id=2),
    "gpt2-inner": transformers.GPT2Config(vocab_size=96, n_embd=64, n_layer=1, n_head=2, n_positions=64, n_inner=96,
                                          bos_token_id=1, eos_token_id=2),
}
FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
passed = 0


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def done(what):
    global passed
    passed += 1
    print("passed:", what, flush=True)


def same_bits(a, b, what):
    a, b = np.ascontiguousarray(a, np.float32), np.ascontiguousarray(b, np.float32)
    assert a.shape == b.shape, (what, a.shape, b.shape)
    assert a.tobytes() == b.tobytes(), (what, np.abs(a - b).max())


def make_model(name):
    """Writes the model, with weights of all sizes; returns its directory, itself, and its tensors."""
    torch.manual_seed(len(name))
    config = MODELS[name]
    config.architectures = None
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.2 + (p.dim() == 1))
    folder = TOP / name
    return folder, model, saved(model, folder, "60KB" if "biases" in name else "1GB")


def saved(model, folder, most="1GB"):
    """Writes the model; returns the tensors of its files, of which experts have their own."""
    model.save_pretrained(folder, max_shard_size=most)
    tensors = {}
    for file in folder.glob("*.safetensors"):
        tensors.update(load_file(file))
    return {k.removeprefix("transformer."): v for k, v in tensors.items()}


def logits(model):
    with torch.no_grad():
        return model(torch.arange(24).reshape(2, 12) * 3 % 96).logits.float().numpy()


def load(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()


def check_safetensors(name, folder, model, tensors):
    for type_name, dtype in FLOATS.items():
        out = TOP / f"{name}-{type_name}"
        run(CONVERT, folder, out, type_name, *([50000] if type_name == "F16" else []))
        again = load(out)
        want = {k: torch.from_numpy(v).to(dtype).float().numpy() for k, v in tensors.items()}
        got = saved(again.float(), TOP / f"{name}-{type_name}-again")
        for k, v in want.items():
            same_bits(got[k], v, f"{name} {type_name} {k}")
        if type_name == "F32":
            assert np.array_equal(logits(again), logits(model)), name
            before, after = model.config.to_dict(), again.config.to_dict()
            skip = {"dtype", "transformers_version", "_name_or_path", "architectures", "n_inner", "n_ctx",
                    "max_window_layers", "head_dim"}
            differ = {k: (v, after.get(k)) for k, v in before.items() if k not in skip and after.get(k) != v}
            assert not differ, (name, differ)
    done(f"{name}: transformers reads the safetensors that are written, and has the same logits")


def permuted(name, x, config):
    """q and k of llama as llama.cpp's converter orders them (conversion/llama.py)."""
    heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def expected_gguf(tensors, config):
    """{name in GGUF: array}, by the package's table of names."""
    gpt2 = config.model_type == "gpt2"
    arch = {"llama": gguf.MODEL_ARCH.LLAMA, "mistral": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2,
            "qwen3": gguf.MODEL_ARCH.QWEN3, "gpt2": gguf.MODEL_ARCH.GPT2, "mixtral": gguf.MODEL_ARCH.LLAMA,
            "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE}[config.model_type]
    names = gguf.get_tensor_name_map(arch, 2)
    out, together = {}, {}
    for k, v in tensors.items():
        if m := re.fullmatch(r"(.*\.experts)\.(\d+)\.(.*)", k):
            together.setdefault(f"{m[1]}.{m[3]}", {})[int(m[2])] = v
        else:
            together[k] = v
    for k, v in together.items():
        if isinstance(v, dict):
            v = np.stack([v[i] for i in range(len(v))])
        new = names.get_name(k, try_suffixes=(".weight", ".bias"))
        assert new, k
        if arch == gguf.MODEL_ARCH.LLAMA and ("q_proj" in k or "k_proj" in k):
            v = permuted(k, v, config)
        if gpt2 and k.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            v = v.T
        out[new] = np.ascontiguousarray(v)
    return out


def check_gguf(name, folder, model, tensors):
    config = model.config
    want = expected_gguf(tensors, config)
    for type_name in "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1".split():
        path = TOP / f"{name}-{type_name}.gguf"
        run(CONVERT, folder, path, type_name)
        reader = gguf.GGUFReader(path)
        extra = {"rope_freqs.weight"} if name == "llama3" else set()
        assert {t.name for t in reader.tensors} == set(want) | extra, name
        for t in reader.tensors:
            if t.name in extra:
                continue
            x = want[t.name]
            same = x.ndim == 1 or t.name == "position_embd.weight" or t.name.endswith(".ffn_gate_inp.weight")
            kind = Type.F32 if same else Type[type_name]
            assert t.tensor_type == kind, (name, t.name, t.tensor_type)
            assert t.data.tobytes() == quantize(x, kind).tobytes(), (name, type_name, t.name)
        out = TOP / f"{name}-{type_name}-back"
        run(CONVERT, path, out, "F32")
        back = load_file(out / "model.safetensors")
        new = expected_gguf(back, config)
        for t in reader.tensors:
            if t.name not in extra:
                same_bits(new[t.name], dequantize(t.data, t.tensor_type).reshape(new[t.name].shape), (type_name, t.name))
        assert set(back) == set(tensors)
        if type_name == "F32":
            again = load(out)
            assert np.array_equal(logits(again), logits(model)), name
            if name == "llama3":
                assert again.config.rope_parameters == config.rope_parameters
        shutil.rmtree(out)
    done(f"{name}: gguf reads the files that are written, in eight types, and quantizes to the same bits")


def check_transformers_gguf(name, model):
    """Its own reader of GGUF files."""
    other = transformers.AutoModelForCausalLM.from_pretrained(TOP, gguf_file=f"{name}-F32.gguf", dtype=torch.float32)
    got = other.state_dict()
    for k, v in model.state_dict().items():
        if not k.endswith((".attn.bias", ".attn.masked_bias")):
            same_bits(got[k].numpy(), v.numpy(), (name, k))
    done(f"{name}: transformers reads the GGUF file")


def check_blocks():
    """Types that gguf can't write: random blocks."""
    rng = np.random.default_rng(3)
    config = transformers.LlamaConfig(**{**SIZES, "hidden_size": 256, "intermediate_size": 256, "head_dim": 64,
                                         "num_key_value_heads": 4}, tie_word_embeddings=True)
    shapes = {k: tuple(p.shape) for k, p in transformers.AutoModelForCausalLM.from_config(config).state_dict().items()
              if k != "lm_head.weight"}
    for type_name in "Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS Q8_0 Q4_0 Q4_1 Q5_0 Q5_1".split():
        path = TOP / f"blocks-{type_name}.gguf"
        w = gguf.GGUFWriter(path, "llama")
        for put, value in ((w.add_block_count, 2), (w.add_context_length, 512), (w.add_embedding_length, 256),
                           (w.add_feed_forward_length, 256), (w.add_head_count, 4), (w.add_head_count_kv, 4),
                           (w.add_layer_norm_rms_eps, 1e-6), (w.add_vocab_size, 96), (w.add_rope_freq_base, 5e5)):
            put(value)
        for k, v in expected_gguf({k: np.zeros(s, np.float32) for k, s in shapes.items()}, config).items():
            if v.ndim == 1:
                w.add_tensor(k, rng.normal(size=v.shape).astype(np.float32))
                continue
            elements, nbytes = gguf.GGML_QUANT_SIZES[Type[type_name]]
            data = rng.integers(0, 256, (v.size // elements, nbytes), np.uint8)
            at = {"Q6_K": 208, "Q3_K": 108, "Q2_K": 80}.get(type_name, 0)
            for half in range(2 if type_name in ("Q2_K", "Q4_K", "Q5_K", "Q4_1", "Q5_1") else 1):
                scales = rng.normal(size=len(data)).astype(np.float16)
                data[:, at + 2 * half:at + 2 * half + 2] = scales.view(np.uint8).reshape(-1, 2)
            w.add_tensor(k, data.reshape(v.shape[0], -1), raw_dtype=Type[type_name])
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        out = TOP / f"blocks-{type_name}"
        run(CONVERT, path, out, "F32")
        back = expected_gguf(load_file(out / "model.safetensors"), config)
        for t in gguf.GGUFReader(path).tensors:
            same_bits(back[t.name], dequantize(t.data, t.tensor_type).reshape(back[t.name].shape), (type_name, t.name))
    done("twelve types of blocks from gguf's writer, to its bits")


def check_config(name, folder, model):
    """What is printed as the config is what transformers has."""
    shown = json.loads(run(LOCKSTEP, "weights", folder, "--json"))
    config = type(model.config).from_dict(shown["config"])
    assert shown["parameters"] == sum(p.numel() for p in model.parameters()), name
    for key in ("hidden_size", "num_hidden_layers", "vocab_size", "tie_word_embeddings", "eos_token_id"):
        assert getattr(config, key) == getattr(model.config, key), (name, key)
    if "rope_parameters" in model.config.to_dict():
        assert config.rope_parameters == model.config.rope_parameters, name


def check_gguf_window(name, folder, model):
    """GGUF has no key for a window: within a context as long as it, a window changes nothing."""
    path = TOP / f"{name}.gguf"
    run(CONVERT, folder, path, "F32")
    reader = gguf.GGUFReader(path)
    family = reader.get_field("general.architecture").contents()
    context = reader.get_field(f"{family}.context_length").contents()
    assert context == model.config.sliding_window, context
    done(f"{name}: the GGUF file's context is the window")


def check_llama_cpp(name):
    """llama.cpp needs a vocabulary: one of bytes."""
    path = TOP / f"{name}-Q8_0.gguf"
    words = [f"<0x{i:02X}>" for i in range(96)]
    reader, out = gguf.GGUFReader(path), TOP / f"{name}-cpp.gguf"
    w = gguf.GGUFWriter(out, reader.get_field("general.architecture").contents())
    for f in reader.fields.values():
        if not f.name.startswith("GGUF.") and f.name != "general.architecture":
            w.add_key_value(f.name, f.contents(), f.types[0])
    w.add_tokenizer_model("llama")
    w.add_add_space_prefix(False)
    w.add_token_list(words)
    w.add_token_scores([0.0] * 96)
    w.add_token_types([6] * 96)
    for t in reader.tensors:
        w.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    text = subprocess.run([SIMPLE, "-m", out, "-n", "4", "-ngl", "0", "!"], capture_output=True, text=True, errors="replace")
    assert text.returncode == 0 and "decoded 4 tokens" in text.stderr, text.stderr[-600:]
    done(f"{name}: llama.cpp runs it")


try:
    for name in MODELS:
        folder, model, tensors = make_model(name)
        check_config(name, folder, model)
        check_safetensors(name, folder, model, tensors)
        if "window" in name:
            check_gguf_window(name, folder, model)
            continue
        check_gguf(name, folder, model, tensors)
        if name in ("llama", "mistral", "qwen2", "qwen3"):  # of gpt2 it needs the vocabulary
            check_transformers_gguf(name, model)
        if name == "llama":
            check_blocks()
        if SIMPLE and "inner" not in name:
            check_llama_cpp(name)
    print(f"{passed} passed, 0 failed, 0 skipped")
finally:
    shutil.rmtree(TOP)
