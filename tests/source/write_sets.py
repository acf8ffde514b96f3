#!/usr/bin/env python3
"""Writes small data sets of all formats, each with a damaged record where the format can skip one:

    write_sets.py DIR
"""
import gzip
import io
import json
import os
import struct
import sys
import tarfile
import zlib

N = 40


def write(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as f:
        f.write(data)


def png(value, channels=3, height=2):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", 3, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((value + k) % 256 for k in range(3 * channels)) for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


def crc(data):
    c = 0xffffffff
    for b in data:
        c ^= b
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    c ^= 0xffffffff
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def part(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def feature(v):
    if not v:
        return b""
    if isinstance(v[0], bytes):
        return part(1, b"".join(part(1, x) for x in v))
    if isinstance(v[0], float):
        return part(2, part(1, struct.pack(f"<{len(v)}f", *v)))
    return part(3, part(1, b"".join(map(varint, v))))


def record(**features):
    message = part(1, b"".join(part(1, part(1, k.encode()) + part(2, feature(v))) for k, v in features.items()))
    n = struct.pack("<Q", len(message))
    return n + crc(n) + message + crc(message)


def spoil(data, at):
    return data[:at] + bytes([data[at] ^ 255]) + data[at + 1:]


def tables():
    rows = "".join(f"{i},{['dog', 'cat', 'emu'][i % 3]},{i / 7},{'x' * (i % 5)}\n" for i in range(N))
    write("table.csv", ("id,class,value,note\n" + rows).encode())
    write("table.csv.gz", gzip.compress(("id,class,value,note\n" + rows).encode()))
    write("bad.csv", ("id,class,value,note\n" + rows + "no,dog,1,x\n" + rows).encode())
    write("lines.jsonl", "".join(json.dumps(
        {"a": i, "b": [[i / 3, 1], [2, i]], "class": "uv"[i % 2], "on": i % 2 == 0}) + "\n" for i in range(N)).encode())
    write("bad.jsonl", b'{"a": 1}\n{"a": "x"}\n{"a": 2}\n')


def records():
    all = [record(pixels=[bytes([i, 2, 3])], label=[i % 10], floats=[1.0, i / 3], name=[b"x" * (i + 1)],
                  id=[-10**12 * i]) for i in range(N)]
    write("all.tfrecord", b"".join(all))
    write("bad.tfrecord", b"".join(all[:3] + [spoil(all[3], 20)] + all[4:]))


def image_records():
    def photo(i, data):
        return record(**{"image/encoded": [data], "image/class/label": [i % 10], "image/format": [b"png"]})
    all = [photo(i, png(i, 1 if i == 5 else 3)) for i in range(N)]
    write("images.tfrecord", b"".join(all))
    write("badimages.tfrecord", b"".join(all[:3] + [photo(3, spoil(png(3), 45)), photo(3, b"text")] + all[4:]))
    write("sizes.tfrecord", b"".join(all[:3] + [photo(3, png(3, 3, 4))] + all[4:]))


def mds():
    write_mds("mds", {"big": ("int", 8), "class": ("str", None), "free": ("ndarray", None), "object": ("pkl", None),
                      "png": ("png", None), "ratio": ("str_float", None)},
              lambda i: {"big": struct.pack("<q", i), "class": [b"dog", b"cat"][i % 2],
                         "free": bytes([65, 1 << 2 | 1]) + struct.pack("<H2q", 2, i, -i), "object": b"never",
                         "png": png(i), "ratio": repr(i / 7).encode()})
    photos = {"photo": ("bytes", None), "class": ("int", 8)}
    write_mds("mdsphotos", photos, lambda i: {"photo": png(i), "class": struct.pack("<q", i)})
    write_mds("mdssizes", photos, lambda i: {"photo": png(i, 3, 4) if i == 3 else png(i), "class": struct.pack("<q", i)})
    write_mds("badphotos", photos, lambda i: {"photo": spoil(png(i), 45) if i == 3 else png(i),
                                              "class": struct.pack("<q", i)})


def lists():
    """Ids of sample i: (i * 7) % 5 of them, from i on; the first sample has none."""
    def ids(i):
        return list(range(i, i + i * 7 % 5))
    rows = "".join(f'{i},"{ids(i)}",{i % 3}\n' for i in range(N))
    write("lists.csv", ("id,words,label\n" + rows).encode())
    write("lists.jsonl", "".join(json.dumps({"id": i, "words": ids(i), "label": i % 3}) + "\n" for i in range(N)).encode())
    write("lists.tfrecord", b"".join(record(id=[float(i)], words=ids(i), label=[i % 3], none=[]) for i in range(N)))
    write_mds("lists", {"id": ("int32", 4), "words": ("ndarray:int32", None), "label": ("int", 8)},
              lambda i: {"id": struct.pack("<i", i), "label": struct.pack("<q", i % 3),
                         "words": bytes([1 << 2, len(ids(i))]) + struct.pack(f"<{len(ids(i))}i", *ids(i))})
    write("fewer.jsonl", "".join(json.dumps({"id": i, "words": [i, 5], "label": i % 3}) + "\n" for i in range(N)).encode())
    write("longer.jsonl", "".join(json.dumps({"id": i, "words": list(range(i)), "label": i % 3}) + "\n" for i in range(N)).encode())


def write_mds(out, encodings, sample):
    names = sorted(encodings)
    shards = []
    for k in range(2):
        rows = []
        for i in range(k * 20, k * 20 + 20):
            s = sample(i)
            sizes = [len(s[n]) for n in names if encodings[n][1] is None]
            rows.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(s[n] for n in names))
        at = [4 * (len(rows) + 2)]
        for r in rows:
            at.append(at[-1] + len(r))
        data = struct.pack(f"<{len(at) + 1}I", len(rows), *at) + b"".join(rows)
        write(f"{out}/shard.{k}.mds", data)
        shards.append(dict(column_names=names, column_encodings=[encodings[n][0] for n in names],
                           column_sizes=[encodings[n][1] for n in names], format="mds", version=2,
                           compression=None, samples=len(rows),
                           raw_data=dict(basename=f"shard.{k}.mds", bytes=len(data), hashes={})))
    write(f"{out}/index.json", json.dumps(dict(version=2, shards=shards)).encode())


def archive(name, bad):
    with tarfile.open(name, "w") as tar:
        for i in range(N):
            members = [("png", spoil(png(i), 40) if i == bad else png(i)), ("cls", b"%d\n" % (i % 10)),
                       ("json", json.dumps({"w": i / 4, "n": i}).encode()), ("txt", b"ignored")]
            for kind, data in members:
                m = tarfile.TarInfo(f"{i:04}.{kind}")
                m.size = len(data)
                tar.addfile(m, io.BytesIO(data))


def images():
    archive("all.tar", -1)
    archive("bad.tar", 3)
    for i in range(N):
        write(f"tree/{['ant', 'bee'][i % 2]}/{i}.png", png(i, 1 if i == 5 else 3))
        write(f"badtree/{['ant', 'bee'][i % 2]}/{i}.png", png(i) if i != 7 else png(i)[:50])


def arrays():
    write("x-idx3-ubyte", b"\0\0\x08\x03" + struct.pack(">3I", N, 2, 3) + bytes(range(6 * N)))
    write("y-idx1-ubyte", b"\0\0\x08\x01" + struct.pack(">I", N) + bytes(i % 10 for i in range(N)))
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({N}, 2), }}".ljust(117) + "\n"
    write("x.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode()
          + struct.pack(f"<{2 * N}f", *(i / 3 for i in range(2 * N))))
    write("data_batch_1.bin", b"".join(bytes([i % 10]) + bytes((i + k) % 256 for k in range(3072)) for i in range(N)))
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({N},), }}".ljust(117) + "\n"
    write("y.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode()
          + struct.pack(f"<{N}q", *(i % 3 for i in range(N))))
    write("train.bin", bytes(i % 256 for i in range(2000)))


def tokens():
    """Tokens below 300, each mostly a function of the one before, as nanoGPT and llm.c write them."""
    ids = [7]
    for i in range(2399):
        ids.append((ids[-1] * 7 + 3 if i % 5 else i * i) % 300)
    write("nano/train.bin", struct.pack(f"<{len(ids)}H", *ids))
    for name, magic, version, kind in (("gpt2.bin", 20240520, 1, "H"), ("llama3.bin", 20240801, 7, "I")):
        write(name, struct.pack("<256i", magic, version, len(ids), *[0] * 253)
              + struct.pack(f"<{len(ids)}{kind}", *ids))


os.chdir(sys.argv[1])
tables()
records()
image_records()
lists()
mds()
images()
arrays()
tokens()
