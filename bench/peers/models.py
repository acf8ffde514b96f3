"""Lockstep's models in PyTorch, on the weights of `lockstep bench train --export DIR`.

A model is called with (inputs, targets) of a batch and returns its loss. Its parameters have
Lockstep's names, in `names`: trained() gives them back in Lockstep's layout.
"""
import json
import mmap
import struct

import torch
import torch.nn.functional as F
from torch import nn


def read_weights(path):
    """Reads a file of https://huggingface.co/docs/safetensors: the tensors are parts of a private mapping of it."""
    with open(path, "rb") as f:
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8 : 8 + n]))
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=8 + n + begin)
        tensors[name] = flat.reshape(t["shape"])
    return tensors


class Model(nn.Module):
    """A model that takes its parameters from Lockstep's weights."""

    def __init__(self, weights):
        super().__init__()
        self.weights, self.names = weights, {}

    def take(self, name, there=None):
        """A parameter; `there` turns Lockstep's layout into PyTorch's."""
        w = self.weights[name]
        p = nn.Parameter((there(w) if there else w).clone(memory_format=torch.contiguous_format))
        self.names[name] = p
        return p

    def trained(self):
        return {name: self.back(p.detach()) for name, p in self.names.items()}

    def back(self, p):
        return p


# ---- GPT-2 ----


class Block(nn.Module):
    def __init__(self, heads, take):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.ParameterList([take("ln_1.weight"), take("ln_1.bias")])
        self.qkv = nn.ParameterList([take("attn.c_attn.weight"), take("attn.c_attn.bias")])
        self.proj = nn.ParameterList([take("attn.c_proj.weight"), take("attn.c_proj.bias")])
        self.ln_2 = nn.ParameterList([take("ln_2.weight"), take("ln_2.bias")])
        self.fc = nn.ParameterList([take("mlp.c_fc.weight"), take("mlp.c_fc.bias")])
        self.out = nn.ParameterList([take("mlp.c_proj.weight"), take("mlp.c_proj.bias")])

    def forward(self, x):
        B, T, C = x.shape
        h = F.layer_norm(x, (C,), self.ln_1[0], self.ln_1[1])
        q, k, v = torch.addmm(self.qkv[1], h.view(-1, C), self.qkv[0]).view(B, T, 3 * C).split(C, 2)
        q, k, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in (q, k, v))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        att = att.transpose(1, 2).reshape(-1, C)
        x = x + torch.addmm(self.proj[1], att, self.proj[0]).view(B, T, C)
        h = F.layer_norm(x, (C,), self.ln_2[0], self.ln_2[1])
        u = F.gelu(torch.addmm(self.fc[1], h.view(-1, C), self.fc[0]), approximate="tanh")
        return x + torch.addmm(self.out[1], u, self.out[0]).view(B, T, C)


class GPT(Model):
    def __init__(self, config, weights):
        super().__init__(weights)
        self.wte, self.wpe = self.take("wte.weight"), self.take("wpe.weight")
        self.blocks = nn.ModuleList(
            Block(config["model.heads"], lambda name, i=i: self.take(f"h.{i}.{name}"))
            for i in range(config["model.layers"])
        )
        self.ln_f = nn.ParameterList([self.take("ln_f.weight"), self.take("ln_f.bias")])

    def forward(self, inputs, targets):
        x = F.embedding(inputs, self.wte) + self.wpe
        for block in self.blocks:
            x = block(x)
        x = F.layer_norm(x, x.shape[-1:], self.ln_f[0], self.ln_f[1])
        logits = F.linear(x, self.wte)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


# ---- the residual network ----


def groups_of(channels):
    """Lockstep's default: the most groups, up to 32, of at least 4 channels."""
    n = min(channels // 4, 32)
    while n > 1 and channels % n:
        n -= 1
    return max(n, 1)


class NormedConv(nn.Module):
    """A convolution, and its group norm. number: the how manieth of its scope it is."""

    def __init__(self, take, scope, number, stride, conv=None):
        super().__init__()
        suffix = "" if number == 1 else f"_{number}"
        conv = conv or f"conv2d{suffix}"
        # [kernel, kernel, in, out] -> [out, in, kernel, kernel]
        self.weight = take(f"{scope}.{conv}.weight", lambda w: w.permute(3, 2, 0, 1))
        self.gamma, self.beta = (take(f"{scope}.group_norm{suffix}.{p}") for p in ("weight", "bias"))
        self.stride, self.padding = stride, self.weight.shape[-1] // 2
        self.groups = groups_of(len(self.gamma))

    def forward(self, x):
        x = F.conv2d(x, self.weight, stride=self.stride, padding=self.padding)
        return F.group_norm(x, self.groups, self.gamma, self.beta, 1e-5)


class Residual(nn.Module):
    def __init__(self, take, scope, stride, reshapes):
        super().__init__()
        self.first = NormedConv(take, scope, 1, stride)
        self.second = NormedConv(take, scope, 2, 1)
        self.shortcut = NormedConv(take, scope, 3, stride, "shortcut") if reshapes else nn.Identity()

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.second(F.relu(self.first(x))))


class ResNet(Model):
    def __init__(self, config, weights):
        super().__init__(weights)
        loss = config["model.loss"] or {"cross_entropy": {}}
        self.smoothing = float(loss["cross_entropy"].get("smoothing", 0))
        self.stem = NormedConv(self.take, "stem", 1, 1)
        blocks = []
        for stage in range(1000):
            if f"stage.{stage}.0.conv2d.weight" not in weights:
                break
            for block in range(config["model.blocks"]):
                first = stage > 0 and block == 0
                blocks.append(Residual(self.take, f"stage.{stage}.{block}", 2 if first else 1, first))
        self.blocks = nn.Sequential(*blocks)
        self.weight, self.bias = self.take("head.weight", lambda w: w.t()), self.take("head.bias")

    def forward(self, inputs, targets):
        x = inputs.float() * (1 / 127.5) - 1
        x = self.blocks(F.relu(self.stem(x))).mean((2, 3))
        return F.cross_entropy(F.linear(x, self.weight, self.bias), targets, label_smoothing=self.smoothing)

    def back(self, p):
        return {4: lambda: p.permute(2, 3, 1, 0), 2: p.t, 1: lambda: p}[p.dim()]()


# ---- published models ----


class Published(Model):
    """A model of `transformers`, with adapters of `peft` on all its linear layers if the run has
    them. The config is read from the directory that Lockstep's run begins with."""

    def __init__(self, config, weights):
        from transformers import AutoConfig, AutoModelForCausalLM

        super().__init__(weights)
        published = AutoConfig.from_pretrained(config["model.from"])
        published.use_cache = False
        self.net = AutoModelForCausalLM.from_config(published, dtype=torch.float32)
        if config["lora.rank"] > 0:
            self.net = self.adapted(config)
        for name, p in self.net.named_parameters():
            name = name.replace("base_model.model.", "").replace(".base_layer", "").replace(".default", "")
            p.data.copy_(weights[name])
            self.names[name] = p

    def adapted(self, config):
        from peft import LoraConfig, get_peft_model

        return get_peft_model(self.net, LoraConfig(
            r=config["lora.rank"], lora_alpha=config["lora.alpha"], lora_dropout=config["lora.dropout"],
            use_rslora=config["lora.rs"] == "on", use_dora=config["lora.dora"] == "on",
            target_modules=config["lora.targets"], task_type="CAUSAL_LM"))

    def forward(self, inputs, targets):
        logits = self.net(input_ids=inputs).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


MODELS = {"gpt2": GPT, "resnet": ResNet, "llama": Published}
