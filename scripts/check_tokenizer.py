#!/usr/bin/env python3
"""Compares a tokenizer and a token file of ours with Hugging Face's tokenizers.

    check_tokenizer.py TOKENIZER.json TEXT TOKENS [--train]

Loads TOKENIZER.json there, encodes TEXT, and compares each id with the file TOKENS. With --train,
also trains a tokenizer of the same size on TEXT there, and compares its vocabulary and merges.
Exits with 0 if all is equal; otherwise prints the first difference. Needs the Python package
`tokenizers`.
"""
import argparse
import json
import struct
import sys
from array import array

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HEADER = struct.Struct("<8sIIQQQQ16x")  # as in src/data/tokens.h


def read_tokens(path):
    with open(path, "rb") as f:
        magic, version, vocab, n, source_bytes, _, _ = HEADER.unpack(f.read(HEADER.size))
        if magic != b"LSTOKENS" or version != 1:
            sys.exit(f"{path}: is not a token file of version 1")
        ids = array("I", f.read())
    if sys.byteorder != "little":
        ids.byteswap()
    if len(ids) != n:
        sys.exit(f"{path}: announces {n} tokens, has {len(ids)}")
    return list(ids), vocab, source_bytes


def train(text, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text],
        trainers.BpeTrainer(
            vocab_size=vocab, initial_alphabet=alphabet, special_tokens=[], show_progress=False
        ),
    )
    return tokenizer


def model_of(tokenizer):
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    return model["vocab"], merges


def first_difference(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("text")
    parser.add_argument("tokens")
    parser.add_argument("--train", action="store_true", help="compare the training too")
    args = parser.parse_args()

    with open(args.text, "rb") as f:
        text = f.read()
    ours, vocab, source_bytes = read_tokens(args.tokens)
    tokenizer = Tokenizer.from_file(args.tokenizer)
    if source_bytes != len(text):
        sys.exit(f"{args.tokens}: belongs to a text of {source_bytes} bytes, not {len(text)}")
    if vocab != tokenizer.get_vocab_size():
        sys.exit(f"{args.tokens}: vocab {vocab}, not {tokenizer.get_vocab_size()}")

    theirs = tokenizer.encode(text.decode("utf-8"), add_special_tokens=False).ids
    if ours != theirs:
        i = first_difference(ours, theirs)
        sys.exit(f"token {i} differs: {ours[i:i + 5]}, theirs {theirs[i:i + 5]}")
    if tokenizer.decode(ours, skip_special_tokens=False) != text.decode("utf-8"):
        sys.exit("the tokens don't decode to the text")
    print(f"{len(ours)} tokens of {len(text)} bytes: equal")

    if args.train:
        our_vocab, our_merges = model_of(tokenizer)
        their_vocab, their_merges = model_of(train(text.decode("utf-8"), vocab))
        if our_merges != their_merges:
            i = first_difference(our_merges, their_merges)
            sys.exit(f"merge {i} differs: {our_merges[i:i + 3]}, theirs {their_merges[i:i + 3]}")
        if our_vocab != their_vocab:
            sys.exit("the vocabularies differ")
        print(f"{len(our_vocab)} tokens and {len(our_merges)} merges learnt: equal")


if __name__ == "__main__":
    main()
