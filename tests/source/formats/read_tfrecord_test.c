/* read_tfrecord_test.c - TFRecord files that a Python program wrote byte by byte, and damaged ones.
 *
 * WRITER knows neither our checksum nor protobuf: it has a CRC-32C by bits, and encodes messages by
 * the wire format's rules.
 */
#include "source/written.h"

#define WRITER                                                                                     \
    "import struct, gzip\n"                                                                        \
    "def crc(data):\n"                                                                             \
    "    c = 0xffffffff\n"                                                                         \
    "    for b in data:\n"                                                                         \
    "        c ^= b\n"                                                                             \
    "        for _ in range(8): c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)\n"                       \
    "    c ^= 0xffffffff\n"                                                                        \
    "    return struct.pack('<I', ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)\n"              \
    "def varint(v):\n"                                                                             \
    "    v &= (1 << 64) - 1\n"                                                                     \
    "    out = b''\n"                                                                              \
    "    while v > 127: out += bytes([v & 127 | 128]); v >>= 7\n"                                  \
    "    return out + bytes([v])\n"                                                                \
    "def part(field, data): return varint(field << 3 | 2) + varint(len(data)) + data\n"            \
    "def feature(v):\n"                                                                            \
    "    if not v: return b''\n"                                                                   \
    "    if isinstance(v[0], bytes): return part(1, b''.join(part(1, x) for x in v))\n"            \
    "    if isinstance(v[0], float): return part(2, part(1, struct.pack(f'<{len(v)}f', *v)))\n"    \
    "    return part(3, part(1, b''.join(map(varint, v))))\n"                                      \
    "def example(**features):\n"                                                                   \
    "    return part(1, b''.join(part(1, part(1, k.encode()) + part(2, feature(v)))\n"             \
    "                            for k, v in features.items()))\n"                                 \
    "def record(message):\n"                                                                       \
    "    n = struct.pack('<Q', len(message))\n"                                                    \
    "    return n + crc(n) + message + crc(message)\n"

static void check_samples(const char *path) {
    ls_source *s = open_source(path);
    assert_string_equal(s->format, "tfrecord");
    assert_int_equal(s->count, 50);
    assert_int_equal(s->nfields, 4);
    const ls_field *f = field_of(s, "floats"), *pixels = field_of(s, "pixels");
    assert_true(f->type == LS_F32 && f->ndims == 1 && f->dims[0] == 3);
    assert_true(pixels->type == LS_U8 && pixels->ndims == 1 && pixels->dims[0] == 4);
    assert_true(field_of(s, "id")->type == LS_I64 && field_of(s, "id")->ndims == 0);
    assert_int_equal(field_of(s, "label")->type, LS_I32);
    for (int i = 49; i >= 0; i -= 7) {
        float third = (float)(i / 3.0);
        assert_float_equal(value_of(s, (uint64_t)i, "floats", 1), third, 0);
        assert_true(value_of(s, (uint64_t)i, "id", 0) == -1e12 * i);
        assert_int_equal((int)value_of(s, (uint64_t)i, "label", 0), i % 10 - 1);
        assert_int_equal((int)value_of(s, (uint64_t)i, "pixels", 3), i);
    }
    ls_source_close(s);
}

/* Recognized by its name or by its first bytes, plain or packed. */
static void test_written(void **state) {
    (void)state;
    run_python(WRITER
               "data = b''.join(record(example(\n"
               "    pixels=[bytes([1, 2, 3, i])], label=[i % 10 - 1], floats=[1.0, i / 3, 2.0],\n"
               "    name=[b'x' * (i + 1)], id=[-10**12 * i])) for i in range(50))\n"
               "open('a.tfrecord', 'wb').write(data)\n"
               "open('train-00000-of-00001', 'wb').write(data)\n"
               "open('b.tfrecord.gz', 'wb').write(gzip.compress(data))\n"
               "open('train-gzip', 'wb').write(gzip.compress(data))\n");
    check_samples(path_of("a.tfrecord"));
    check_samples(path_of("train-00000-of-00001"));
    check_samples(path_of("b.tfrecord.gz"));
    check_samples(path_of("train-gzip"));
}

static char *read_all(const char *name, size_t *n_p) {
    ls_error e = {0};
    ls_buf b = {0};
    assert_ls_ok(ls_file_read(path_of(name), 1 << 20, &b, &e), e);
    *n_p = b.len;
    return b.data;
}

/* Every flipped bit and every truncation is found; a damaged message costs one record. */
static void test_damaged(void **state) {
    (void)state;
    run_python(WRITER
               "open('two', 'wb').write(record(example(x=[1.5])) + record(example(x=[2.5])))\n");
    size_t n = 0;
    char *data = read_all("two", &n);
    for (size_t bit = 0; bit < 8 * n; bit += 3) {
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
        assert_refused(write_bytes("bad.tfrecord", data, n), "bad.tfrecord: the record at byte ");
        data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t cut = 1; cut < n; cut++)
        if (cut != n / 2)
            assert_refused(write_bytes("bad.tfrecord", data, cut), "bad.tfrecord: the record at");
    data[n / 2 - 1]++; /* the first record's last checksum */
    assert_refused(write_bytes("bad.tfrecord", data, n), "the record at byte 0 is damaged");
    assert_skips(path_of("bad.tfrecord"), 1, 1);
    data[n / 2 - 1]--;
    data[n / 2]++; /* the second record's length */
    assert_refused(write_bytes("bad.tfrecord", data, n), "has a damaged length");
    assert_skips(path_of("bad.tfrecord"), 1, 1);
    free(data);
}

/* Records whose checksums are right, but whose contents do not fit. */
static void test_contents(void **state) {
    (void)state;
    run_python(WRITER
               "good = record(example(a=[1], b=[2.0]))\n"
               "bad = {'kind': example(a=[1.0], b=[2.0]), 'missing': example(a=[1]),\n"
               "       'other': example(a=[1], c=[2.0]), 'garbage': b'\\xff' * 40,\n"
               "       'more': example(a=[1], b=[2.0], c=[1]),\n"
               "       'twice': part(1, 2 * part(1, part(1, b'a') + part(2, feature([1]))))}\n"
               "for name, message in bad.items():\n"
               "    open(name + '.tfrecord', 'wb').write(good + record(message) + good)\n"
               "far = struct.pack('<Q', 1 << 60)\n"
               "open('far.tfrecord', 'wb').write(good + far + crc(far) + b'x' * 100)\n"
               "open('count.tfrecord', 'wb').write(record(example(a=[1.0, 2.0], b=[2.0])) +\n"
               "                                   record(example(a=[1.0], b=[2.0])))\n"
               "open('empty.tfrecord', 'wb').close()\n"
               "open('bomb.tfrecord.gz', 'wb').write(gzip.compress(bytes(20 << 20)))\n");
    assert_refused(path_of("kind.tfrecord"), "has values of another kind in 'a'");
    assert_refused(path_of("missing.tfrecord"), "has no feature 'b', which others have");
    assert_refused(path_of("other.tfrecord"), "has no feature 'b'");
    assert_refused(path_of("more.tfrecord"), "has a feature 'c', which others lack");
    assert_refused(path_of("garbage.tfrecord"),
                   "is no tf.train.Example; repair the file, or skip damaged records");
    assert_refused(path_of("twice.tfrecord"), "is no tf.train.Example");
    assert_refused(path_of("far.tfrecord"), "but the file ends after");
    assert_refused(path_of("empty.tfrecord"), "has no records");
    assert_refused(path_of("bomb.tfrecord.gz"), "1000 times as many, the most");
    static const char *const skipped[] = {"kind", "missing", "other", "more", "garbage", "twice"};
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.tfrecord", skipped[i]);
        assert_skips(path_of(name), 2, 1);
    }
    ls_source *s = open_source(path_of("count.tfrecord")); /* 'a' is left out */
    assert_int_equal(s->nfields, 1);
    assert_float_equal(value_of(s, 1, "b", 0), 2, 0);
    ls_source_close(s);
}

/* A missing value, of the first record or of a later one, has its cause; a label without one is no
 * list. */
static void test_missing(void **state) {
    (void)state;
    run_python(
        WRITER
        "full, none = example(f=[0.5], label=[3], w=[1, 2]), example(f=[], label=[3], w=[])\n"
        "open('first.tfrecord', 'wb').write(record(none) + record(full))\n"
        "open('last.tfrecord', 'wb').write(record(full) + record(none))\n"
        "bare = example(f=[0.5], label=[], w=[1])\n"
        "open('bare.tfrecord', 'wb').write(record(bare) + record(full))\n"
        "open('full.tfrecord', 'wb').write(record(full) + record(bare))\n");
    ls_source *s = open_source(path_of("first.tfrecord")); /* 'f' is left out */
    assert_int_equal(s->nfields, 2);
    assert_true(field_of(s, "w")->is_list && field_of(s, "label")->ndims == 0);
    ls_source_close(s);
    assert_refused(path_of("last.tfrecord"), "has no value in 'f', where others have one");
    assert_skips(path_of("last.tfrecord"), 1, 1);
    static const char says[] = "'label' can't be a label: some records have no value of it";
    assert_refused(path_of("bare.tfrecord"), says);
    assert_refused(path_of("full.tfrecord"), says);
}

/* Time grows with the number of features, not with its square. */
static void test_many(void **state) {
    (void)state;
    run_python(WRITER "m = example(**{'f%d' % i: [i / 2] for i in range(15000)})\n"
                      "open('many.tfrecord', 'wb').write(record(m))\n");
    ls_source *s = open_source(path_of("many.tfrecord"));
    assert_int_equal(s->nfields, 1);
    assert_int_equal(field_of(s, "x")->dims[0], 15000);
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),  cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_contents), cmocka_unit_test(test_missing),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
