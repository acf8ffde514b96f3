"""Serves a model with llama.cpp's server, through the package xllamacpp, until it is killed.

    llama_server.py MODEL.gguf PORT TEXTS THREADS

TEXTS replies are written at a time, each with a context of 2,048 tokens. It listens at 127.0.0.1:PORT and calls
the model "model".
"""
import sys
import time

import xllamacpp


def parameters(model, port, texts, threads):
    p = xllamacpp.CommonParams()
    p.model.path = model
    p.model_alias = {"model"}
    p.port = port
    p.n_parallel = texts
    p.n_ctx = 2048 * texts
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = threads
    p.verbosity = -1
    return p


server = xllamacpp.Server(parameters(sys.argv[1], *(int(x) for x in sys.argv[2:5])))
while server:
    time.sleep(60)
