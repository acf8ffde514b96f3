#!/usr/bin/env python3
"""Compares what published models compute here with transformers and llama.cpp.

    check_models.py LOCKSTEP MODEL_LOGITS [GGUF]

MODEL_LOGITS is the program of tests/infer/logits.c. Small random models of each family: loss and gradients
of all weights beside those of 64 bits, for each way in which two workers divide a step, and logits. GGUF: a published model, SmolLM2-135M-Instruct, that has a tokenizer:
it is imported, exported in both forms, and read by others: transformers has the same tokens, template
and logits, at 1 to 4,096 tokens; llama.cpp (the package xllamacpp, if there is one) the same greedy
text, also with an adapter. Needs the Python packages torch, transformers, accelerate, safetensors and numpy.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LOCKSTEP, LOGITS = sys.argv[1:3]
GGUF = sys.argv[3] if len(sys.argv) > 3 else None
TOP = Path(tempfile.mkdtemp(prefix="lockstep-models-"))
SIZES = dict(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=1, eos_token_id=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=24)
GEMMA3 = SIZES | dict(pad_token_id=None, num_hidden_layers=5, head_dim=24, query_pre_attn_scalar=24, sliding_window=7,
                      layer_types=["sliding_attention", "full_attention"] * 2 + ["sliding_attention"])
SMOLLM3 = SIZES | dict(pad_token_id=None, num_hidden_layers=5)


def phi3(original=64, pairs=0, **options):
    """Phi-3; with pairs, of the rotation longrope, whose long list is that of more than `original` positions."""
    rope = dict(type="longrope", short_factor=[1 + 0.03 * i for i in range(pairs)], long_factor=[1.1 + 0.4 * i * i for i in range(pairs)])
    return transformers.Phi3Config(**SIZES | dict(pad_token_id=None, original_max_position_embeddings=original,
                                                  rope_scaling=rope if pairs else None) | options)


MODELS = {
    "llama": transformers.LlamaConfig(**SIZES),
    "llama-biases": transformers.LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama3": transformers.LlamaConfig(**SIZES, rope_parameters=LLAMA3, head_dim=32),
    "llama-linear": transformers.LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}),
    "mistral-window": transformers.MistralConfig(**SIZES, sliding_window=5),
    "qwen2": transformers.Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen2-window": transformers.Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=7, max_window_layers=0),
    "qwen3": transformers.Qwen3Config(**SIZES, head_dim=128),
    "mixtral": transformers.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2),
    "mixtral-balance": transformers.MixtralConfig(**SIZES | {"num_hidden_layers": 3}, num_local_experts=4,
                                                  num_experts_per_tok=2, router_aux_loss_coef=0.5, output_router_logits=True),
    "qwen3_moe": transformers.Qwen3MoeConfig(**SIZES, head_dim=32, moe_intermediate_size=48, num_experts=8,
                                             num_experts_per_tok=3, norm_topk_prob=True),
    "qwen3_moe-balance": transformers.Qwen3MoeConfig(**SIZES, head_dim=32, moe_intermediate_size=48, num_experts=8,
                                                     num_experts_per_tok=3, norm_topk_prob=True, router_aux_loss_coef=0.5,
                                                     output_router_logits=True),
    "qwen3_moe-plain": transformers.Qwen3MoeConfig(**SIZES, head_dim=32, moe_intermediate_size=48, num_experts=8,
                                                   num_experts_per_tok=3, norm_topk_prob=False),
    "gemma3": transformers.Gemma3TextConfig(**GEMMA3),
    "gemma3-one": transformers.Gemma3TextConfig(**GEMMA3 | dict(num_key_value_heads=1, query_pre_attn_scalar=33,
                                                                hidden_size=72, intermediate_size=104)),
    "gemma3-linear": transformers.Gemma3TextConfig(
        **GEMMA3, attention_bias=True, tie_word_embeddings=False,
        rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}}),
    "gemma3-sixth": transformers.Gemma3TextConfig(**GEMMA3 | dict(num_hidden_layers=7, layer_types=None)),
    "smollm3": transformers.SmolLM3Config(**SMOLLM3),
    "smollm3-third": transformers.SmolLM3Config(
        **SMOLLM3 | dict(num_hidden_layers=7, no_rope_layer_interval=3, use_sliding_window=True, sliding_window=7,
                         layer_types=["sliding_attention"] * 7, mlp_bias=True, tie_word_embeddings=False,
                         num_key_value_heads=1, no_rope_layers=None)),
    "smollm3-yarn": transformers.SmolLM3Config(
        **SMOLLM3, rope_parameters={"rope_type": "yarn", "rope_theta": 5e6, "factor": 2.0, "original_max_position_embeddings": 32}),
    "phi3": phi3(sliding_window=7, num_key_value_heads=4),
    "phi4": phi3(rope_theta=250000.0),
    "phi3.5": phi3(16, 8),
    "phi4-mini": phi3(48, 6, partial_rotary_factor=0.75, tie_word_embeddings=True, sliding_window=262144),
    "gpt2": transformers.GPT2Config(vocab_size=320, n_embd=64, n_layer=2, n_head=4, n_positions=64, bos_token_id=1,
                                    eos_token_id=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
}
T, BATCH, RATE = 32, 4, 64.0  # a sample's tokens; samples; learning rate
passed = skipped = 0


def run(*command, data=None):
    r = subprocess.run([str(c) for c in command], capture_output=True, input=data)
    assert r.returncode == 0, (command, r.stderr[-600:], r.stdout[-300:])
    return r.stdout


def done(what):
    global passed
    passed += 1
    print("passed:", what, flush=True)


def logits_of(model, ids, lengths):
    out = run(LOGITS, model, *lengths, data=np.array(ids, np.uint32).tobytes())
    return np.frombuffer(out, np.float32).reshape(len(lengths), -1)


def close(got, want, limit, what):
    """The largest difference, relative to the largest number or to 1."""
    worst = float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))
    assert np.isfinite(worst) and worst <= limit, (what, worst)
    return worst


# ---- small models of each family ----

def tokenizer():
    """The 256 bytes, as GPT-2's; models have more rows."""
    spelling = sorted(set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256)))
    others = [b for b in range(256) if b not in spelling]
    names = {b: chr(b) for b in spelling} | {b: chr(256 + i) for i, b in enumerate(others)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "vocab": {names[b]: i for i, b in enumerate(sorted(names))}, "merges": []}}


def make_model(name):
    torch.manual_seed(len(name))
    config = MODELS[name]
    model = transformers.AutoModelForCausalLM.from_config(config, experts_implementation="eager").train()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.2 + (p.dim() == 1))
    folder = TOP / name
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    return folder, model


def tensors_of(model):
    """The values and gradients of the parameters by their names in files, where each expert has its own."""
    mixtral = model.config.model_type == "mixtral"
    parts = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    for key, p in model.named_parameters():
        value, grad, key = p.detach().numpy(), p.grad.numpy(), key.removeprefix("transformer.")
        if ".mlp.gate." in key or ".mlp.experts." in key:
            key = key.replace(".mlp.", ".block_sparse_moe.") if mixtral else key
        if ".experts." not in key:
            yield key, value, grad
            continue
        place, _, which = key.rpartition(".")
        half = value.shape[1] // 2
        for e in range(len(value)):
            if which == "down_proj":
                yield f"{place}.{e}.{parts[2]}.weight", value[e], grad[e]
            else:
                yield f"{place}.{e}.{parts[0]}.weight", value[e][:half], grad[e][:half]
                yield f"{place}.{e}.{parts[1]}.weight", value[e][half:], grad[e][half:]


def cuts_of(config, batch):
    """How two workers divide the step: the batch, or the model, by each way that it can be cut."""
    if batch > 1:
        yield "batch", ["train.virtual_workers=2"]
    if not getattr(config, "output_router_logits", False):  # one loss of all layers is for no pipeline
        yield "layers", ["train.virtual_workers=1", f"train.micro_batch={max(batch // 2, 1)}", "parallel.mesh.pipe=2"]
    slices = ["train.virtual_workers=1", "parallel.tensor_virtual=2", "parallel.mesh.tensor=2"]
    yield "slices", slices
    yield "slices and rows", [*slices, "parallel.sequence=on"]
    if batch > 1 and getattr(config, "num_experts_per_tok", 0):
        yield "samples and experts", ["train.virtual_workers=1", "train.micro_batch=2", "parallel.expert_virtual=2",
                                      "parallel.mesh.expert=2"]
    sequences = ["train.virtual_workers=1", "parallel.context_virtual=2"]
    yield "sequences", [*sequences, "parallel.mesh.context=2"]
    yield "sequences of slices", [*sequences, "parallel.tensor_virtual=2", "parallel.mesh.context=2"]
    if batch > 1 and getattr(config, "num_experts_per_tok", 0):
        yield "samples, sequences and slices", [*sequences, "parallel.tensor_virtual=2", "parallel.expert_virtual=2",
                                                "train.micro_batch=2", "parallel.mesh.expert=2"]


def check_gradients(name, folder, model):
    """A step of gradient descent says the gradient: it is the difference of the weights. The reference's
    are of 64 bits."""
    rng = np.random.default_rng(len(name))
    balanced = getattr(model.config, "output_router_logits", False)
    batch = 1 if balanced else BATCH  # transformers takes the loss for an even load over a batch, not a sample
    ids = rng.integers(0, 320, batch * T + 1, np.uint16)
    (TOP / "train.bin").write_bytes(ids.tobytes())
    samples = torch.from_numpy(np.stack([ids[i * T:(i + 1) * T + 1] for i in range(batch)]).astype(np.int64))
    model.double()
    out = model(samples[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), samples[:, 1:].flatten())
    balance = model.config.router_aux_loss_coef * model(samples[:, :-1]).aux_loss if balanced else 0
    (loss + balance).backward()
    tensors = list(tensors_of(model))
    for cut, keys in cuts_of(model.config, batch):
        check_step(name, folder, cut, keys, batch, loss.item(), tensors)
    model.float()


def check_step(name, folder, cut, keys, batch, loss, tensors):
    first, second = TOP / f"{name}-{cut}".replace(" ", "-"), TOP / f"{name}-{cut}-after".replace(" ", "-")
    sets = [f"model.from={folder}", f"data.path={TOP}/train.bin", "data.format=tokens", f"model.context={T}",
            f"train.batch={batch}", "train.steps=1", "optim.optimizer=sgd", f"optim.lr={RATE}",
            "optim.momentum=0", "optim.weight_decay=0", "optim.clip=0", "optim.warmup=0", "optim.schedule=constant",
            f"data.val_path={TOP}/train.bin", *keys]
    (TOP / "run.yaml").write_text("")
    run(LOCKSTEP, "train", TOP / "run.yaml", "-n", 2, "-o", first, *[x for s in sets for x in ("--set", s)])
    run(LOCKSTEP, "export", first, "--to", "safetensors", "-o", second)
    with open(first / "metrics.jsonl", encoding="utf-8") as f:
        line = next(x for x in map(json.loads, f) if "loss" in x)
    worst_loss = close(np.array(line["loss"]), np.array(loss), 1e-5, (name, cut, "loss"))
    after = {k.removeprefix("transformer."): v for k, v in load_file(second / "model.safetensors").items()}
    worst = 0.0
    seen = set()
    for key, value, grad in tensors:
        if key not in after:
            assert key == "lm_head.weight", key
            continue
        got = (value[:after[key].shape[0]] - after[key]) / RATE
        want = grad[:after[key].shape[0]]
        error = np.abs(got - want).max() / np.abs(want).max()
        assert error <= 1e-4, (name, cut, key, error)
        worst = max(worst, float(error))
        seen.add(key)
    assert seen == set(after), set(after) - seen
    done(f"{name}, two workers divide the {cut}: loss within {worst_loss:.1e}, gradients of {len(seen)} tensors within "
         f"{worst:.1e} of each one's largest")


def check_logits(name, folder, model):
    ids = np.random.default_rng(7).integers(0, 320, 60)
    lengths = [1, 6, 33, 60]
    got = logits_of(folder, ids, lengths)
    model.eval()
    with torch.no_grad():
        want = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    worst = max(close(got[i], want[n - 1], 1e-4, (name, n)) for i, n in enumerate(lengths))
    done(f"{name}: logits within {worst:.1e}")


# ---- a published model ----

TEXT = """The tower was built in 1889. Its height is 330 metres, and about 7 million people visit it every year.\n
def f(x):\n    return x ** 2  # squares\n\nWas ist das? Æ, ß, 你好, мир, \U0001f600.\n"""
CHAT = [{"role": "user", "content": "What is a compiler?"}, {"role": "assistant", "content": "A program."},
        {"role": "user", "content": "Which \"kind\" of {it}?\n"}]


def check_text(folder):
    t = transformers.AutoTokenizer.from_pretrained(folder)
    for text in (TEXT, t.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=True)):
        ours = json.loads(run(LOCKSTEP, "tokens", folder, "--special", "--ends", "--json", "-", data=text.encode()))["ids"]
        assert ours == t(text)["input_ids"], text
    assert t.eos_token == "<|im_end|>" and t.bos_token == "<|im_start|>", (t.eos_token, t.bos_token)
    done("the tokenizer and the template of the directory, read by transformers: the same ids")
    return t


def check_published_logits(imported, exported, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32).eval()
    lengths = [1, 7, 512, 4096]
    got = logits_of(imported, ids, lengths)
    with torch.no_grad():
        want = np.stack([model(torch.tensor(ids[:n])[None], logits_to_keep=1).logits[0, -1].numpy() for n in lengths])
    worst = float(np.abs(got - want).max())
    assert worst <= 2e-4, worst
    done(f"{Path(GGUF).name}: logits after 1, 7, 512 and 4,096 tokens within {worst:.1e} of transformers'")


def check_llama_cpp(model, file, tokenizer_, limit):
    """Its greedy text is ours. Where the two largest logits are closer than the limit, it may choose the
    other token, as its sums have another order, and round activations to 8 bits beside blocks of 4: the
    rest is then not compared."""
    global skipped
    try:
        import xllamacpp
    except ImportError:
        skipped += 1
        print("skipped: llama.cpp: the package xllamacpp is not installed")
        return
    prompt = "The three laws of thermodynamics are"
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = 512
    params.warmup = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    answer = server.handle_completions({"prompt": prompt, "max_tokens": 64, "temperature": 0, "seed": 1})
    theirs = answer["choices"][0]["text"]
    ours = json.loads(run(LOCKSTEP, "generate", model, "--prompt", prompt, "--tokens", 64, "--temperature", 0, "--json"))
    text, ids = ours["text"], tokenizer_(prompt + ours["text"])["input_ids"]
    same = len(tokenizer_(prompt)["input_ids"])
    while same < len(ids) and (prompt + theirs).startswith(tokenizer_.decode(ids[:same + 1]).rstrip("\ufffd")):
        same += 1
    if same < len(ids):
        last = np.sort(logits_of(model, ids, [same])[0])
        assert last[-1] - last[-2] < limit, (text, theirs, last[-3:])
    same -= len(tokenizer_(prompt)["input_ids"])
    assert same >= 10, (text, theirs)
    done(f"{file.name}: llama.cpp writes the same {same} of 64 greedy tokens")


def their_text(prompt, file, adapter=None):
    """What llama.cpp writes; None: it is not installed."""
    try:
        import xllamacpp
    except ImportError:
        return None
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = 512
    params.warmup = False
    params.verbosity = 0
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
    answer = xllamacpp.Server(params).handle_completions({"prompt": prompt, "max_tokens": 24, "temperature": 0, "seed": 1})
    return answer["choices"][0]["text"]


def check_adapter(imported):
    """llama.cpp writes the same text with the base and our adapter as with the merged model, and as we
    do; with the base alone another."""
    global skipped
    chats, config, folder = TOP / "chats.jsonl", TOP / "adapter.yaml", TOP / "adapted"
    with open(chats, "w") as f:
        for i in range(20):
            turns = (("user", f"What is {i} plus {i}?"), ("assistant", f"It is {2 * i}, my friend."))
            f.write(json.dumps({"messages": [{"role": role, "content": text} for role, text in turns]}) + "\n")
    config.write_text(f"model: {{from: {imported}, context: 128}}\nlora: {{rank: 8, targets: all-linear}}\n"
                      f"data: {{path: {chats}, format: chat, packing: on, val_fraction: 0.2}}\n"
                      "train: {steps: 12, batch: 4, virtual_workers: 4, eval_every: 0}\noptim: {lr: 0.003, warmup: 1}\n")
    run(LOCKSTEP, "train", config, "-n", 2, "-o", folder)
    base, merged, adapter = TOP / "base.gguf", TOP / "merged.gguf", TOP / "adapter.gguf"
    run(LOCKSTEP, "export", imported, "--to", "gguf", "-o", base)
    run(LOCKSTEP, "export", folder, "--to", "gguf", "--merge", "-o", merged)
    run(LOCKSTEP, "export", folder, "--to", "gguf", "-o", adapter)
    prompt = "<|im_start|>user\nWhat is 7 plus 7?<|im_end|>\n<|im_start|>assistant\n"
    ours = json.loads(run(LOCKSTEP, "generate", folder, "--prompt", prompt, "--tokens", 24, "--temperature", 0, "--json"))
    alone, whole, beside = their_text(prompt, base), their_text(prompt, merged), their_text(prompt, base, adapter)
    if whole is None:
        skipped += 1
        print("skipped: llama.cpp with an adapter: the package xllamacpp is not installed")
        return
    assert whole == beside == ours["text"] != alone, (whole, beside, ours, alone)
    done(f"llama.cpp writes the same with our adapter as with the merged model: {whole!r}")
    for file in (base, merged, adapter):
        file.unlink()


def check_published():
    imported, exported = TOP / "imported", TOP / "exported"
    first = json.loads(run(LOCKSTEP, "import", GGUF, "-o", imported, "--json"))
    second = json.loads(run(LOCKSTEP, "export", imported, "--to", "safetensors", "-o", exported, "--json"))
    assert first["hash"] == second["hash"], (first, second)
    t = check_text(exported)
    text = TEXT * 60
    ids = t(text)["input_ids"][:4096]
    assert len(ids) == 4096, len(ids)
    check_published_logits(imported, exported, ids)
    check_adapter(imported)
    for kind, limit in (("f16", 0.02), ("q8_0", 0.1), ("q4_1", 0.7)):
        file, back = TOP / f"{kind}.gguf", TOP / kind
        run(LOCKSTEP, "export", imported, "--to", "gguf", "--type", kind, "-o", file)
        run(LOCKSTEP, "import", file, "-o", back)
        check_llama_cpp(back, file, t, limit)
        shutil.rmtree(back)
        file.unlink()


try:
    for name_ in MODELS:
        folder_, model_ = make_model(name_)
        check_gradients(name_, folder_, model_)
        check_logits(name_, folder_, model_)
    if GGUF:
        check_published()
    else:
        skipped += 1
        print("skipped: a published model: no file is given")
    print(f"{passed} passed, 0 failed, {skipped} skipped")
finally:
    shutil.rmtree(TOP)
