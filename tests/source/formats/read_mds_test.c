/* read_mds_test.c - MDS data sets that a Python program wrote byte by byte, and damaged ones. */
#include "source/written.h"

/* write(DIRECTORY, COLUMNS, GIVEN): columns {name: (encoding, bytes or None)}, the samples as
 * {name: bytes}, of which each shard has at most `most`. pack:
 * a function and a suffix. spoil(data): what is written in place of a shard. */
#define WRITER                                                                                     \
    "import gzip, json, os, struct\n"                                                              \
    "def write(out, columns, given, most=7, pack=None, spoil=lambda d: d, **change):\n"            \
    "    os.makedirs(out)\n"                                                                       \
    "    names = sorted(columns)\n"                                                                \
    "    about = dict(column_names=names, column_encodings=[columns[n][0] for n in names],\n"      \
    "                 column_sizes=[columns[n][1] for n in names], format='mds', version=2,\n"     \
    "                 compression=pack and pack[1], hashes=[], size_limit=None)\n"                 \
    "    shards = []\n"                                                                            \
    "    for k in range(0, len(given), most):\n"                                                   \
    "        rows = []\n"                                                                          \
    "        for s in given[k:k + most]:\n"                                                        \
    "            s = [s[n] for n in names]\n"                                                      \
    "            long = [len(v) for n, v in zip(names, s) if columns[n][1] is None]\n"             \
    "            rows.append(struct.pack(f'<{len(long)}I', *long) + b''.join(s))\n"                \
    "        text = json.dumps(about).encode()\n"                                                  \
    "        at = [4 * (len(rows) + 2) + len(text)]\n"                                             \
    "        for r in rows: at.append(at[-1] + len(r))\n"                                          \
    "        data = struct.pack(f'<{len(at) + 1}I', len(rows), *at) + text + b''.join(rows)\n"     \
    "        name = f'shard.{len(shards):05}.mds'\n"                                               \
    "        shard = dict(about, samples=len(rows), zip_data=None,\n"                              \
    "                     raw_data=dict(basename=name, bytes=len(data), hashes={}))\n"             \
    "        data = spoil(data)\n"                                                                 \
    "        if pack:\n"                                                                           \
    "            data = pack[0](data)\n"                                                           \
    "            name += '.' + pack[1]\n"                                                          \
    "            shard['zip_data'] = dict(basename=name, bytes=len(data), hashes={})\n"            \
    "        open(f'{out}/{name}', 'wb').write(data)\n"                                            \
    "        shards.append(dict(shard, **change))\n"                                               \
    "    json.dump(dict(version=2, shards=shards), open(f'{out}/index.json', 'w'))\n"

#define SAMPLES                                                                                    \
    "import zlib\n"                                                                                \
    "def chunk(kind, data):\n"                                                                     \
    "    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + " \
    "data))\n"                                                                                     \
    "def png(v):\n"                                                                                \
    "    return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 2, 1, 8, 0, "  \
    "0, 0, 0))\n"                                                                                  \
    "            + chunk(b'IDAT', zlib.compress(bytes([0, v, 9]))) + chunk(b'IEND', b''))\n"       \
    "columns = {'big': ('int', 8), 'class': ('str', None), 'fixed': ('ndarray:float32:2,3', "      \
    "24),\n"                                                                                       \
    "           'free': ('ndarray', None), 'name': ('bytes', None), 'object': ('pkl', None),\n"    \
    "           'photo': ('pil', None), 'png': ('png', None), 'ratio': ('str_float', None)}\n"     \
    "samples = [{'big': struct.pack('<q', -10**12 * i), 'class': [b'dog', b'cat'][i % 2],\n"       \
    "            'fixed': struct.pack('<6f', *(i / 3 + k for k in range(6))),\n"                   \
    "            'free': bytes([65, 2 << 2 | 1]) + struct.pack('<2H2q', 2, 1, i, -i),\n"           \
    "            'name': b'n' * i, 'object': b'never',\n"                                          \
    "            'photo': struct.pack('<3I', 1, 2, 3) + b'RGB' + bytes([i, 1, 2, 3, 4, 5]),\n"     \
    "            'png': png(i), 'ratio': repr(i / 7).encode()} for i in range(30)]\n"

static void check_samples(const char *path) {
    ls_source *s = open_source(path);
    assert_string_equal(s->format, "mds");
    assert_int_equal(s->count, 30);
    assert_int_equal(s->nfiles, 5);
    assert_int_equal(s->nfields, 7);
    const ls_field *fixed = field_of(s, "fixed"), *free_ = field_of(s, "free");
    const ls_field *photo = field_of(s, "photo"), *image = field_of(s, "png");
    assert_true(fixed->type == LS_F32 && fixed->ndims == 2 && fixed->dims[1] == 3);
    assert_true(free_->type == LS_I64 && free_->dims[0] == 2 && free_->dims[1] == 1);
    assert_true(ls_field_is_image(photo) && photo->dims[0] == 2 && photo->dims[1] == 1);
    assert_true(ls_field_is_image(image) && image->dims[0] == 1 && image->dims[1] == 2);
    assert_string_equal(s->classes[0], "cat");
    for (int i = 29; i >= 0; i -= 3) {
        uint64_t n = (uint64_t)i;
        assert_true(value_of(s, n, "big", 0) == -1e12 * i);
        assert_int_equal((int)value_of(s, n, "label", 0), 1 - i % 2);
        float value = (float)(i / 3.0 + 5), ratio = (float)(i / 7.0);
        assert_float_equal(value_of(s, n, "fixed", 5), value, 0);
        assert_float_equal(value_of(s, n, "ratio", 0), ratio, 0);
        assert_int_equal((int)value_of(s, n, "free", 1), -i);
        assert_int_equal((int)value_of(s, n, "photo", 0), i);
        assert_int_equal((int)value_of(s, n, "png", 0), i);
        assert_int_equal((int)value_of(s, n, "png", 1), 9);
    }
    ls_source_close(s);
}

/* Named by the directory or by index.json; plain or packed. */
static void test_written(void **state) {
    (void)state;
    run_python(WRITER SAMPLES "import subprocess\n"
                              "def zstd(d): return subprocess.run(['zstd', '-c'], input=d, "
                              "stdout=-1, check=True).stdout\n"
                              "write('plain', columns, samples)\n"
                              "write('gz', columns, samples, pack=(gzip.compress, 'gz'))\n"
                              "write('zstd', columns, samples, pack=(zstd, 'zstd'))\n");
    check_samples(path_of("plain"));
    check_samples(path_of("plain/index.json"));
    check_samples(path_of("gz"));
    check_samples(path_of("zstd"));
}

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *how, *message;
    } bad[] = {
        {"spoil=lambda d: d[:-1]", "by its index.json"},
        {"spoil=lambda d: bytes(4) + d[4:]", "has another number of samples"},
        {"spoil=lambda d: d[:4] + b'\\xff' * 4 + d[8:]", "sample 0 is at byte 4294967295"},
        {"spoil=lambda d: d[:8] + bytes(4) + d[12:]", "sample 1 is at byte 0"},
        {"samples=2", "has another number of samples"},
        {"samples=-1", "has -1 samples"},
        {"raw_data={'basename': '../x.mds', 'bytes': 9}", "is outside the directory"},
        {"raw_data={'basename': '/etc/passwd', 'bytes': 9}", "is outside the directory"},
        {"raw_data={'basename': 'a/../../x', 'bytes': 9}", "is outside the directory"},
        {"raw_data={}", "a shard has no basename"},
        {"format='json'", "not mds"},
        {"column_encodings=['int', 'magic']", "is an encoding that is not known"},
        {"column_encodings=['int', 'ndarray:float32:0']", "an impossible size"},
        {"column_encodings=['int', 'ndarray:float32:65536,65536']", "an impossible size"},
        {"column_encodings=['int', 'ndarray:float32:x']", "an array of an unknown shape"},
        {"column_encodings=['int', 'ndarray:complex64']", "an array of an unknown type"},
        {"column_sizes=[4, None]", "'a' has 4 bytes, its encoding, int, has 8"},
        {"column_names=['a', 'a']", "two columns are named 'a'"},
        {"column_names=[]", "has 0 columns"},
        {"pack=(lambda d: d, 'br')", "packed by br can't be read"},
        {"pack=(lambda d: gzip.compress(bytes(20 << 20)), 'gz')", "1000 times as many"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char program[6000], name[32];
        snprintf(name, sizeof name, "bad%zu", i);
        int n =
            snprintf(program, sizeof program,
                     "%swrite('%s', {'a': ('int', 8), 'b': ('ndarray', None)}, [{'a': bytes(8),\n"
                     "    'b': bytes([8, 4, 2, 5, 6])}] * 3, %s)\n",
                     WRITER, name, bad[i].how);
        assert_in_range(n, 0, sizeof program - 1);
        run_python(program);
        assert_refused(path_of(name), bad[i].message);
    }
}

/* One bad sample in an otherwise good shard. */
static void test_samples(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *message;
    } bad[] = {
        {"b''", "sample 1: 'b' is cut off"},
        {"bytes([7, 4, 2, 5, 6])", "sample 1: 'b' has values of an unknown type"},
        {"bytes([8, 4, 3, 5, 6])", "sample 1: 'b' has another size than its shape"},
        {"bytes([8, 7]) + b'\\xff' * 8", "sample 1: 'b' has an impossible size"},
        {"bytes([8, 40])", "sample 1: 'b' has too many dimensions"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char program[6000], name[32];
        snprintf(name, sizeof name, "sample%zu", i);
        int n = snprintf(program, sizeof program,
                         "%sgood = {'a': bytes(8), 'b': bytes([8, 4, 2, 5, 6])}\n"
                         "write('%s', {'a': ('int', 8), 'b': ('ndarray', None)},\n"
                         "    [good, {'a': bytes(8), 'b': %s}, good])\n",
                         WRITER, name, bad[i].bytes);
        assert_in_range(n, 0, sizeof program - 1);
        run_python(program);
        assert_refused(path_of(name), bad[i].message);
        assert_skips(path_of(name), 2, 1);
    }
}

static void test_index(void **state) {
    (void)state;
    run_python("import os\n"
               "for name, text in (('no', '{'), ('old', '{\"version\": 1, \"shards\": []}'),\n"
               "                   ('none', '{\"version\": 2, \"shards\": []}')):\n"
               "    os.makedirs(name)\n"
               "    open(name + '/index.json', 'w').write(text)\n");
    assert_refused(path_of("no"), "no/index.json:1: is not valid JSON");
    assert_refused(path_of("old"), "is not an index of MDS version 2");
    assert_refused(path_of("none"), "has no samples");
}

/* Integers that are spelled stay what they are. */
static void test_integers(void **state) {
    (void)state;
    run_python(WRITER "write('ids', {'a': ('str_int', None), 'b': ('str_int', None)},\n"
                      "      [{'a': b'9007199254740993', 'b': b'2'},\n"
                      "       {'a': b'-9223372036854775808', 'b': b' -7 '}])\n");
    ls_source *s = open_source(path_of("ids"));
    const ls_field *a = field_of(s, "a");
    assert_true(a->type == LS_I64 && field_of(s, "b")->type == LS_I32);
    assert_int_equal((int)value_of(s, 1, "b", 0), -7);
    for (uint64_t i = 0; i < 2; i++) {
        char *sample = ls_alloc(s->nbytes);
        ls_error e = {0};
        int64_t v = 0;
        assert_ls_ok(s->read(s, i, sample, &e), e);
        memcpy(&v, sample + a->offset, sizeof v);
        assert_true(v == (i ? INT64_MIN : 9007199254740993));
        free(sample);
    }
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),  cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_samples),  cmocka_unit_test(test_index),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
