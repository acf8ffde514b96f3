#!/usr/bin/env python3
"""Dropout of language models against transformers: the same losses and gradients with our masks.

    check_dropout.py LOCKSTEP

Trains a small GPT-2 and a small Llama with model.dropout for two steps on three samples, by SGD, so that the
difference of the weights is the gradient. transformers computes both steps in double precision from the same weights, with
masks that are computed here from the documented counter (src/tensor/kernels/dropout.c): GPT-2 at the places of its embd_pdrop,
attn_pdrop and resid_pdrop, and Llama at its attention_dropout, and behind the embedding, the attention and the
feed-forward layer. Losses may differ by 1e-5, gradients by 1e-4 of the greatest. With masks in other places they must differ.
Needs torch, transformers, tokenizers and safetensors.
"""
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import load_file

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LOCKSTEP = Path(sys.argv[1]).resolve()
TOP = Path(tempfile.mkdtemp(prefix="lockstep-dropout-"))
VOCAB, T, C, HEADS, LAYERS, BATCH, RATE, SEED, LR, STEPS = 96, 20, 32, 4, 2, 3, 0.3, 7, 0.5, 2
STREAM, EMBEDDING = 5, 1 << 18  # of LS_STREAM_DROPOUT, LS_DROPOUT_EMBEDDING
HEAD, ATTENTION, FEED_FORWARD = 0, 1, 2
functional_dropout = torch.nn.functional.dropout


# ---- masks ----


def philox(index, substream, key):
    """The four words of Philox4x32-10 at each place: [4, n]."""
    c = [index & 0xFFFFFFFF, index >> 32, np.full_like(index, substream & 0xFFFFFFFF), np.full_like(index, substream >> 32)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c)


def mask_of(number, step, sample, n):
    """The factors of a sample's first n numbers: 0, or 1 / (1 - RATE)."""
    i = np.arange(n, dtype=np.uint64)
    index = np.uint64(number << 40) | (i // np.uint64(64) * np.uint64(16) + i % np.uint64(16))
    words = philox(index, step << 32 | sample, SEED ^ STREAM << 56)
    word = words[(i // np.uint64(16) % np.uint64(4)).astype(int), np.arange(n)]
    keeps = word >= np.uint64(int(float(np.float32(RATE)) * 2**32))
    return torch.from_numpy(keeps / (1 - float(np.float32(RATE))))


def masks_of(number, step, shape):
    """For the samples at places 0, 1 ... of the step's batch; shape: of a sample."""
    if len(shape) == 2:
        return torch.stack([mask_of(number, step, b, shape[0] * shape[1]).reshape(shape) for b in range(BATCH)])
    row = -(-T // 64) * 64  # of a query; rows begin at blocks
    return torch.stack([mask_of(number, step, b, HEADS * T * row).reshape(HEADS, T, row)[:, :, :T] for b in range(BATCH)])


def all_masks(step):
    """In the order of their use: the embedding's, then three of each block."""
    masks = [masks_of(EMBEDDING, step, (T, C))]
    for block in range(LAYERS):
        number = EMBEDDING + 1 + 3 * block
        masks.append(masks_of(number + HEAD, step, (HEADS, T, T)))
        masks += [masks_of(number + place, step, (T, C)) for place in (ATTENTION, FEED_FORWARD)]
    return masks


# ---- models ----


def make_models():
    torch.manual_seed(1)
    gpt2 = transformers.GPT2Config(vocab_size=VOCAB, n_positions=T, n_embd=C, n_layer=LAYERS, n_head=HEADS, resid_pdrop=RATE,
                                   embd_pdrop=RATE, attn_pdrop=RATE, initializer_range=0.2, bos_token_id=0, eos_token_id=0)
    llama = transformers.LlamaConfig(vocab_size=VOCAB, hidden_size=C, intermediate_size=48, num_hidden_layers=LAYERS,
                                     num_attention_heads=HEADS, num_key_value_heads=2, max_position_embeddings=T,
                                     attention_dropout=RATE, initializer_range=0.2, tie_word_embeddings=False)
    for name, config in (("gpt2", gpt2), ("llama", llama)):
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(TOP / name)
        letters = {c: i for i, c in enumerate("".join(map(chr, range(33, 127))) + "\u0120\u010a")}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=letters, merges=[]))  # which nothing here uses
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        tokenizer.save(str(TOP / name / "tokenizer.json"))


def write_tokens():
    draw = np.random.default_rng(1)
    x = draw.integers(0, VOCAB, BATCH * T + 1).astype(np.uint16)
    x.tofile(TOP / "train.bin")
    x[:T + 1].tofile(TOP / "val.bin")
    return torch.from_numpy(np.stack([x[i * T:(i + 1) * T + 1] for i in range(BATCH)]).astype(np.int64))


def train(name, rate):
    sets = [f"model.from={TOP}/{name}", f"model.context={T}", f"model.dropout={rate}", f"data.path={TOP}/train.bin",
            f"data.val_path={TOP}/val.bin", "data.format=tokens", f"train.steps={STEPS}", f"train.batch={BATCH}", "train.micro_batch=1",
            "train.virtual_workers=1", f"train.seed={SEED}", "train.eval_every=0", "optim.optimizer=sgd", "optim.momentum=0",
            "optim.weight_decay=0", "optim.clip=0", "optim.warmup=0", "optim.schedule=constant", f"optim.lr={LR}",
            "checkpoint.every=1", "checkpoint.keep=9", "log.every=1", "parallel.transport=thread"]
    run, config = TOP / f"{name}-run", TOP / "empty.yaml"
    config.write_text("")
    words = [w for s in sets for w in ("--set", s)]
    done = subprocess.run([LOCKSTEP, "train", config, "-n", "1", "-o", run, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    files = [TOP / name] + [run / "checkpoints" / f"step-{i + 1}" for i in range(STEPS)]
    weights = [{k.removeprefix("transformer."): v for k, v in load_file(f / "model.safetensors").items()} for f in files]
    return [r["loss"] for r in lines if "loss" in r], weights


def parameters_of(model):
    return {k.removeprefix("transformer."): p for k, p in model.named_parameters()}


def open_model(name, weights):
    model = transformers.AutoModelForCausalLM.from_pretrained(TOP / name, dtype=torch.float64, attn_implementation="eager")
    own = parameters_of(model)
    assert set(own) == set(weights)
    with torch.no_grad():
        for key, value in weights.items():
            own[key].copy_(value)
    return model.train()


def drop_where_llama_has_none(model, queue):
    def hook(_module, _inputs, output):
        first = output[0] if isinstance(output, tuple) else output
        dropped = first * queue.pop(0)
        return (dropped, *output[1:]) if isinstance(output, tuple) else dropped

    model.model.embed_tokens.register_forward_hook(hook)
    for layer in model.model.layers:
        layer.self_attn.register_forward_hook(hook)
        layer.mlp.register_forward_hook(hook)


def loss_of(name, model, x, masks):
    """The masks are taken where the model calls dropout, one after the other."""
    queue = list(masks)

    def dropout(values, p=0.5, training=True, inplace=False):
        assert p == RATE and training, (p, training, inplace)
        return values * queue.pop(0)

    torch.nn.functional.dropout = dropout
    if name == "llama":
        drop_where_llama_has_none(model, queue)
    logits = model(x[:, :-1]).logits
    torch.nn.functional.dropout = functional_dropout
    assert not queue, "a mask was not used"
    return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), x[:, 1:].reshape(-1))


def gradients_apart(model, before, after):
    """The greatest difference, in terms of the greatest gradient."""
    most = apart = 0.0
    for key, found in parameters_of(model).items():
        ours = (before[key].double() - after[key].double()) / LR
        apart = max(apart, (ours - found.grad).abs().max().item())
        most = max(most, found.grad.abs().max().item())
    return apart / most


def try_orders(name, x, weights, step, want, masks):
    """The order of an epoch's samples is drawn: the one whose loss is nearest."""
    best = None
    for order in itertools.permutations(range(BATCH)):
        model = open_model(name, weights[step])
        loss = loss_of(name, model, x[list(order)], masks)
        if best is None or abs(loss.item() - want) < abs(best[0].item() - want):
            best = (loss, model)
    best[0].backward()
    return abs(best[0].item() - want), gradients_apart(best[1], weights[step], weights[step + 1])


def check(name, x):
    losses, weights = train(name, RATE)
    assert len(losses) == STEPS, losses
    for step in range(STEPS):
        off, apart = try_orders(name, x, weights, step, losses[step], all_masks(step))
        print(f"{name}, step {step + 1}: loss {losses[step]:.6f}, off by {off:.1e}; gradients by {apart:.1e} of the greatest")
        assert off < 1e-5 and apart < 1e-4
    masks = all_masks(0)
    masks[2], masks[3] = masks[3], masks[2]  # attention's and the feed-forward layer's
    off, apart = try_orders(name, x, weights, 0, losses[0], masks)
    assert off > 1e-4 and apart > 1e-2, "other masks give the same"


make_models()
samples = write_tokens()
for kind in ("gpt2", "llama"):
    check(kind, samples)
