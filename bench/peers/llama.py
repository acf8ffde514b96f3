"""Generates with llama.cpp, through the package xllamacpp, and prints its times as JSON.

    llama.py MODEL.gguf THREADS PROMPT TOKENS

The prompt is tokens 0, 1, 2 ..., as in `lockstep bench generate`; tokens are drawn greedily. A token's
time is the median of the times between tokens as they arrive.
"""
import importlib.metadata
import json
import os
import statistics
import sys
import time

import xllamacpp


def parameters(model, threads, context):
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.n_ctx = context
    p.n_parallel = 1
    p.n_batch = p.n_ubatch = 512
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
    p.verbosity = -1
    return p


def generate(server, prompt, tokens):
    times, timings = [], {}

    def take(answer):
        for part in answer if isinstance(answer, list) else [answer]:
            times.append(time.perf_counter())
            timings.update(part.get("timings") or {})
        return False

    request = {"prompt": list(range(prompt)), "n_predict": tokens + 1, "temperature": 0,
               "cache_prompt": False, "ignore_eos": True, "stream": True}
    server.handle_completions(request, take)
    steps = [b - a for a, b in zip(times, times[1:])]
    return steps[:tokens], timings


def main():
    model, threads, prompt, tokens = sys.argv[1], *(int(x) for x in sys.argv[2:5])
    sys.stdout.flush()
    out = os.dup(1)
    os.dup2(2, 1)  # the library writes to the standard output
    server = xllamacpp.Server(parameters(model, threads, prompt + tokens + 64))
    generate(server, 8, 4)  # pages of the weights
    steps, timings = generate(server, prompt, tokens)
    result = {"system": "llama.cpp", "version": importlib.metadata.version("xllamacpp"), "threads": threads,
              "prompt_tokens": timings["prompt_n"], "prompt_seconds": timings["prompt_ms"] / 1e3,
              "token_seconds": statistics.median(steps), "mean_token_seconds": timings["predicted_per_token_ms"] / 1e3}
    os.write(out, (json.dumps(result) + "\n").encode())
    os._exit(0)  # its threads don't end


main()
