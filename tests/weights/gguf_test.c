/* gguf_test.c - GGUF files: a file that is laid out by hand is read, the writer writes the same
 * bytes, and damaged or hostile files are errors that name the file and the place. */
#include "weights/gguf.h"

#include <math.h>

#include "folder.h"
#include "test.h"
#include "weights/gguf_bytes.h"
#include "weights/gguf_write.h"

static char path[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    return failed;
}

/* ---- a file with everything ---- */

static const float numbers[] = {1, -2.5f, 3e-5f};

static void put_scalars(ls_buf *b) {
    put_key(b, "i8", I8), ls_buf_append(b, "\xfe", 1);
    put_key(b, "u16", U16), ls_buf_append(b, "\x01\x80", 2);
    put_key(b, "i16", I16), ls_buf_append(b, "\xff\xff", 2);
    put_key_u32(b, "u32", 4000000000u);
    put_key(b, "i32", I32), put32(b, (uint32_t)-7);
    put_key_f32(b, "f32", 0.1f);
    put_key(b, "bool", BOOL), ls_buf_append(b, "\1", 1);
    put_key_text(b, "text", "a\nb");
    put_key(b, "u64", U64), put64(b, UINT64_MAX);
    put_key(b, "i64", I64), put64(b, (uint64_t)INT64_MIN);
    double pi = 3.14159;
    put_key(b, "f64", F64), ls_buf_append(b, &pi, 8);
    put_key(b, "u8", U8), ls_buf_append(b, "\xff", 1);
}

static void put_arrays(ls_buf *b) {
    put_key(b, "words", ARRAY), put32(b, TEXT), put64(b, 3);
    put_name(b, ""), put_name(b, "Gr\xc3\xbc\xc3\x9f"), put_bytes(b, "\xff\0z", 3);
    put_key(b, "types", ARRAY), put32(b, I32), put64(b, 2);
    put32(b, 5), put32(b, (uint32_t)-6);
    put_key(b, "numbers", ARRAY), put32(b, F32), put64(b, 3);
    ls_buf_append(b, numbers, sizeof numbers);
    put_key(b, "none", ARRAY), put32(b, U8), put64(b, 0);
}

enum { NVALUES = 16, DATA = 128 };

/* Tensors: f32 [3] as 12 bytes, Q4_0 [2, 32] as 36 bytes from 32 on, a type that can't be read as
 * 66 bytes from 96 on. */
static void put_whole(ls_buf *b, uint32_t version) {
    put_header(b, version, 3, NVALUES);
    put_scalars(b);
    put_arrays(b);
    put_tensor(b, "norm", 1, (uint64_t[]){3}, 0, 0);
    put_tensor(b, "weight", 2, (uint64_t[]){32, 2}, 2, 32);
    put_tensor(b, "other", 1, (uint64_t[]){256}, 16, 96);
    pad_to(b, 32);
    ls_buf_append(b, numbers, sizeof numbers);
    pad_to(b, 32);
    for (char i = 0; i < 36; i++) ls_buf_append(b, &i, 1);
    pad_to(b, 32);
    for (char i = 0; i < 66; i++) ls_buf_append(b, &i, 1);
}

static ls_gguf open_bytes(ls_buf *b) {
    ls_gguf g = {0};
    ls_error e = {0};
    write_bytes(path, b->data, b->len);
    ls_buf_free(b);
    assert_ls_ok(ls_gguf_open(path, &g, &e), e);
    return g;
}

static int64_t integer(const ls_gguf *g, const char *key, size_t i) {
    int64_t x = 0;
    const ls_gguf_value *v = ls_gguf_find(g, key);
    assert_non_null(v);
    assert_true(ls_gguf_integer(v, i, &x));
    return x;
}

static double number(const ls_gguf *g, const char *key, size_t i) {
    double x = 0;
    assert_true(ls_gguf_number(ls_gguf_find(g, key), i, &x));
    return x;
}

static void check_text(const ls_gguf *g, const char *key, size_t i, const char *want, size_t n) {
    ls_gguf_text t;
    assert_true(ls_gguf_text_at(ls_gguf_find(g, key), i, &t));
    assert_int_equal(t.n, n);
    assert_memory_equal(t.data, want, n);
}

static void check_values(const ls_gguf *g) {
    bool yes = false;
    int64_t x;
    double d;
    ls_gguf_text t;
    assert_int_equal(g->nvalues, NVALUES);
    assert_true(integer(g, "u8", 0) == 255 && integer(g, "i8", 0) == -2);
    assert_true(integer(g, "u16", 0) == 0x8001 && integer(g, "i16", 0) == -1);
    assert_true(integer(g, "u32", 0) == 4000000000 && integer(g, "i32", 0) == -7);
    assert_true(integer(g, "i64", 0) == INT64_MIN);
    assert_false(ls_gguf_integer(ls_gguf_find(g, "u64"), 0, &x)); /* too large */
    assert_true(number(g, "f32", 0) == (double)0.1f && number(g, "f64", 0) == 3.14159);
    assert_true(number(g, "i8", 0) == -2);
    assert_true(ls_gguf_bool(ls_gguf_find(g, "bool"), 0, &yes) && yes);
    assert_true(ls_gguf_is_text(ls_gguf_find(g, "text"), "a\nb"));
    assert_false(ls_gguf_is_text(ls_gguf_find(g, "text"), "a\nbc"));
    assert_false(ls_gguf_is_text(ls_gguf_find(g, "words"), ""));
    check_text(g, "words", 0, "", 0);
    check_text(g, "words", 1, "Gr\xc3\xbc\xc3\x9f", 6);
    check_text(g, "words", 2, "\xff\0z", 3);
    assert_true(integer(g, "types", 0) == 5 && integer(g, "types", 1) == -6);
    for (size_t i = 0; i < 3; i++) assert_true(number(g, "numbers", i) == (double)numbers[i]);
    assert_int_equal(ls_gguf_find(g, "none")->n, 0);
    assert_null(ls_gguf_find(g, "u3"));
    /* of another kind, or beyond the end */
    assert_false(ls_gguf_integer(ls_gguf_find(g, "f32"), 0, &x));
    assert_false(ls_gguf_integer(ls_gguf_find(g, "text"), 0, &x));
    assert_false(ls_gguf_integer(ls_gguf_find(g, "types"), 2, &x));
    assert_false(ls_gguf_integer(ls_gguf_find(g, "none"), 0, &x));
    assert_false(ls_gguf_number(ls_gguf_find(g, "bool"), 0, &d));
    assert_false(ls_gguf_number(ls_gguf_find(g, "numbers"), 3, &d));
    assert_false(ls_gguf_bool(ls_gguf_find(g, "u8"), 0, &yes));
    assert_false(ls_gguf_text_at(ls_gguf_find(g, "words"), 3, &t));
    assert_false(ls_gguf_text_at(ls_gguf_find(g, "u8"), 0, &t));
}

static void check_tensors(const ls_gguf *g) {
    assert_int_equal(g->ntensors, 3);
    const ls_gguf_tensor *t = ls_gguf_find_tensor(g, "norm");
    assert_true(t == &g->tensors[0] && t->ndims == 1 && t->dims[0] == 3 && t->count == 3);
    assert_memory_equal(t->data, numbers, sizeof numbers);
    t = ls_gguf_find_tensor(g, "weight");
    assert_true(t->ndims == 2 && t->dims[0] == 32 && t->dims[1] == 2 && t->type == 2);
    assert_true(t->nbytes == 36 && t->data[35] == 35 && t->data == g->tensors[0].data + 32);
    t = ls_gguf_find_tensor(g, "other");
    assert_true(t->nbytes == 66 && t->type == 16 && t->data[65] == 65);
    assert_null(ls_gguf_find_tensor(g, "norm."));
    assert_ptr_equal(t->data + 66, g->data + g->nbytes);
}

static void test_read(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        ls_buf b = {0};
        put_whole(&b, version);
        ls_gguf g = open_bytes(&b);
        assert_int_equal(g.version, version);
        check_values(&g);
        check_tensors(&g);
        ls_gguf_close(&g);
    }
    assert_true(ls_gguf_is(path));
    assert_false(ls_gguf_is(folder));
    write_bytes(path, "GGU", 3);
    assert_false(ls_gguf_is(path));
}

static void test_no_tensors(void **state) {
    (void)state;
    ls_buf b = {0};
    put_header(&b, 3, 0, 0);
    ls_gguf g = open_bytes(&b);
    assert_true(g.nvalues == 0 && g.ntensors == 0);
    assert_null(ls_gguf_find(&g, "x"));
    assert_null(ls_gguf_find_tensor(&g, "x"));
    ls_gguf_close(&g);
}

/* ---- writing ---- */

static void test_write(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_error e = {0};
    put_header(&b, 3, 2, 8);
    put_key_u32(&b, "u32", 7);
    put_key_f32(&b, "f32", 0.1f);
    put_key(&b, "bool", BOOL), ls_buf_append(&b, "\1", 1);
    put_key_text(&b, "text", "a\nb");
    put_arrays(&b);
    put_tensor(&b, "weight", 2, (uint64_t[]){32, 2}, 2, 0);
    put_tensor(&b, "norm", 1, (uint64_t[]){3}, 0, 64);
    pad_to(&b, 32);
    size_t data = b.len;
    for (char i = 0; i < 36; i++) ls_buf_append(&b, &i, 1);
    pad_to(&b, 32);
    ls_buf_append(&b, numbers, sizeof numbers);
    pad_to(&b, 32);

    /* arrays of another file */
    ls_buf other = {0};
    put_header(&other, 3, 0, 4);
    put_arrays(&other);
    ls_gguf g = open_bytes(&other);
    ls_gguf_writer w = {0};
    ls_gguf_put_u32(&w, "u32", 7);
    ls_gguf_put_f32(&w, "f32", 0.1f);
    ls_gguf_put_bool(&w, "bool", true);
    ls_gguf_put_text(&w, "text", "a\nb");
    const ls_gguf_text words[] = {{"", 0}, {"Gr\xc3\xbc\xc3\x9f", 6}, {"\xff\0z", 3}};
    ls_gguf_put_texts(&w, "words", words, 3);
    ls_gguf_put_i32s(&w, "types", (int32_t[]){5, -6}, 2);
    ls_gguf_put_f32s(&w, "numbers", numbers, 3);
    ls_gguf_put_value(&w, ls_gguf_find(&g, "none"));
    ls_gguf_put_tensor(&w, "weight", LS_BLOCK_Q4_0, 2, (int64_t[]){32, 2});
    ls_gguf_put_tensor(&w, "norm", LS_BLOCK_F32, 1, (int64_t[]){3});
    ls_gguf_close(&g);
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    assert_ls_ok(ls_gguf_add(&w, b.data + data, 20, &e), e);
    assert_ls_ok(ls_gguf_add(&w, b.data + data + 20, 16, &e), e);
    assert_ls_ok(ls_gguf_add(&w, numbers, sizeof numbers, &e), e);
    assert_ls_ok(ls_gguf_end(&w, &e), e);
    ls_gguf_writer_free(&w);
    ls_buf got = {0};
    assert_ls_ok(ls_file_read(path, 1 << 20, &got, &e), e);
    assert_int_equal(got.len, b.len);
    assert_memory_equal(got.data, b.data, b.len);
    ls_buf_free(&got);
    ls_buf_free(&b);
}

/* A file that is written with the values of another file equals that file; a file that is not ended
 * is removed. */
static void test_write_values(void **state) {
    (void)state;
    ls_buf b = {0}, got = {0};
    ls_error e = {0};
    put_header(&b, 3, 0, NVALUES);
    put_scalars(&b);
    put_arrays(&b);
    pad_to(&b, 32);
    write_bytes(path, b.data, b.len);
    ls_gguf g = {0};
    assert_ls_ok(ls_gguf_open(path, &g, &e), e);
    ls_gguf_writer w = {0};
    for (size_t i = 0; i < g.nvalues; i++) ls_gguf_put_value(&w, &g.values[i]);
    ls_gguf_close(&g);
    assert_ls_fails(ls_gguf_begin(&w, path, &e), LS_EIO, path, e);
    unlink(path);
    assert_ls_ok(ls_gguf_begin(&w, path, &e), e);
    assert_ls_ok(ls_file_read(path, 1 << 20, &got, &e), e);
    assert_int_equal(got.len, b.len);
    assert_memory_equal(got.data, b.data, b.len);
    assert_true(w.is_open);
    ls_gguf_writer_free(&w);
    assert_false(ls_file_exists(path));
    ls_buf_free(&got);
    ls_buf_free(&b);
}

/* ---- hostile files ---- */

/* An error that names the file and contains `text`; it leaves nothing behind. */
static void check_refused(ls_buf *b, const char *text) {
    ls_gguf g = {0};
    ls_error e = {0};
    write_bytes(path, b->data, b->len);
    ls_buf_free(b);
    ls_status s = ls_gguf_open(path, &g, &e);
    if (s != LS_EINVAL || !strstr(e.msg, path) || !strstr(e.msg, text))
        fail_msg("status %d, '%s', not '%s'", s, e.msg, text);
    assert_null(g.values);
}

static void test_truncated(void **state) {
    (void)state;
    ls_buf whole = {0};
    put_whole(&whole, 3);
    for (size_t n = 0; n < whole.len; n++) {
        ls_buf b = {0};
        ls_buf_append(&b, whole.data, n);
        check_refused(&b, n < 24 ? "is not a GGUF file" : "");
    }
    ls_buf_append(&whole, "more", 4); /* ignored */
    ls_gguf g = open_bytes(&whole);
    ls_gguf_close(&g);
}

/* Every byte is set to hostile values: an error that names the file, or a file of which all can be
 * read. */
static void test_flipped(void **state) {
    (void)state;
    static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff, 9};
    ls_buf whole = {0};
    put_whole(&whole, 3);
    for (size_t i = 0; i < whole.len - DATA; i++)
        for (size_t k = 0; k < sizeof values; k++) {
            char was = whole.data[i];
            ls_gguf g = {0};
            ls_error e = {0};
            whole.data[i] = (char)values[k];
            write_bytes(path, whole.data, whole.len);
            whole.data[i] = was;
            if (ls_gguf_open(path, &g, &e) != LS_OK) {
                assert_non_null(strstr(e.msg, path));
                continue;
            }
            unsigned sum = 0;
            for (size_t t = 0; t < g.ntensors; t++)
                for (size_t j = 0; j < g.tensors[t].nbytes; j++) sum += g.tensors[t].data[j];
            for (size_t v = 0; v < g.nvalues; v++)
                for (size_t j = 0; j < g.values[v].n; j++) {
                    ls_gguf_text t = {0};
                    ls_gguf_text_at(&g.values[v], j, &t);
                    for (size_t c = 0; c < t.n; c++) sum += (unsigned char)t.data[c];
                }
            assert_true(sum > 0);
            ls_gguf_close(&g);
        }
    ls_buf_free(&whole);
}

static void test_headers(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        uint64_t ntensors, nkeys;
        const char *text;
    } cases[] = {
        {1, 0, 0, "version 1"},
        {4, 0, 0, "version 4"},
        {0, 0, 0, "big-endian"},
        {0x03000000, 0, 0, "big-endian"},
        {3, 0, 1, "1 keys follow"},
        {3, 0, UINT64_MAX, "18446744073709551615 keys"},
        {3, 0, UINT64_MAX / 72 + 2, "keys follow"}, /* its size in memory wraps */
        {3, 0, (uint64_t)1 << 32, "keys follow"},
        {3, 1, 0, "1 tensors follow"},
        {3, (uint64_t)1 << 60, 0, "tensors follow"},
        {3, UINT64_MAX, 0, "tensors follow"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_buf b = {0};
        put_header(&b, cases[i].version, cases[i].ntensors, cases[i].nkeys);
        check_refused(&b, cases[i].text);
    }
    ls_buf b = {0};
    put_header(&b, 3, 0, 0);
    b.data[0] = 'g';
    check_refused(&b, "is not a GGUF file");
}

/* Key 'k' of this kind with a value of these bytes, then 64 zeros. */
static void check_value(uint32_t kind, const void *value, size_t n, const char *text) {
    ls_buf b = {0};
    put_header(&b, 3, 0, 1);
    put_key(&b, "k", kind);
    ls_buf_append(&b, value, n);
    for (int i = 0; i < 64; i++) ls_buf_append(&b, "", 1);
    check_refused(&b, text);
}

static void check_array(uint32_t kind, uint64_t n, const char *text) {
    ls_buf value = {0};
    put32(&value, kind);
    put64(&value, n);
    check_value(ARRAY, value.data, value.len, text);
    ls_buf_free(&value);
}

static void test_values(void **state) {
    (void)state;
    static const uint64_t lengths[] = {
        65, (uint64_t)1 << 32, (uint64_t)1 << 61, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 40};
    check_value(13, "", 0, "key 'k' has a value of the unknown kind 13");
    check_value(UINT32_MAX, "", 0, "unknown kind");
    check_value(BOOL, "\2", 1, "neither 0 nor 1");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_value(TEXT, &lengths[i], 8, "the value of key 'k' goes beyond");
        check_array(U8, lengths[i], "the value of key 'k' goes beyond");
        check_array(U64, lengths[i], "the value of key 'k' goes beyond");
        check_array(TEXT, lengths[i], "the value of key 'k' goes beyond");
    }
    check_array(ARRAY, 1, "unknown kind 9");
    check_array(13, 0, "unknown kind 13");
    check_array(TEXT, 9, "goes beyond"); /* 64 zeros are 8 empty texts */
}

static void check_key(const char *key, size_t n, uint64_t length) {
    ls_buf b = {0};
    put_header(&b, 3, 0, 1);
    put64(&b, length);
    ls_buf_append(&b, key, n);
    put32(&b, U32);
    put32(&b, 0);
    check_refused(&b, "byte 24: a key");
}

static void test_keys(void **state) {
    (void)state;
    check_key("", 0, 0);
    check_key("k\0y", 3, 3);
    check_key("\xff", 1, 1);
    check_key("\xc0\x80", 2, 2);     /* overlong */
    check_key("\xed\xa0\x80", 3, 3); /* a surrogate */
    ls_buf b = {0};
    put_header(&b, 3, 0, 1);
    put64(&b, UINT64_MAX);
    put64(&b, 0);
    check_refused(&b, "a key goes beyond");
    put_header(&b, 3, 0, 3);
    put_key_u32(&b, "twice", 1);
    put_key_u32(&b, "once", 1);
    put_key_u32(&b, "twice", 2);
    check_refused(&b, "key 'twice' occurs twice");
}

static void test_alignment(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 1, 4, 24, 33, 1u << 21, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls_buf b = {0};
        put_header(&b, 3, 0, 1);
        put_key_u32(&b, "general.alignment", bad[i]);
        check_refused(&b, "general.alignment");
    }
    ls_buf b = {0};
    put_header(&b, 3, 0, 1);
    put_key_text(&b, "general.alignment", "32");
    check_refused(&b, "general.alignment");
    put_header(&b, 3, 2, 1); /* a good one */
    put_key_u32(&b, "general.alignment", 8);
    put_tensor(&b, "a", 1, (uint64_t[]){3}, 0, 0);
    put_tensor(&b, "b", 1, (uint64_t[]){1}, 0, 16);
    pad_to(&b, 8);
    ls_buf_append(&b, numbers, sizeof numbers);
    pad_to(&b, 8);
    ls_buf_append(&b, numbers, 4);
    ls_gguf g = open_bytes(&b);
    assert_memory_equal(g.tensors[1].data, numbers, 4);
    ls_gguf_close(&g);
}

/* Tensor 't', then 4096 bytes of data. */
static void check_tensor(int ndims, const uint64_t *dims, uint32_t type, uint64_t offset,
                         const char *text) {
    ls_buf b = {0};
    put_header(&b, 3, 1, 0);
    put_tensor(&b, "t", ndims, dims, type, offset);
    pad_to(&b, 32);
    for (int i = 0; i < 4096; i++) ls_buf_append(&b, "", 1);
    check_refused(&b, text);
}

static void test_tensors(void **state) {
    (void)state;
    static const uint64_t huge[][4] = {{(uint64_t)1 << 62, 4, 1, 1},
                                       {(uint64_t)1 << 32, (uint64_t)1 << 32, 1, 1},
                                       {(uint64_t)1 << 63, 1, 1, 1},
                                       {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                       {65536, 65536, 65536, 65536},
                                       {4, 0, 1, 1},
                                       {0, 1, 1, 1},
                                       {(uint64_t)1 << 58, 1, 1, 1}};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++)
        check_tensor(4, huge[i], 0, 0, "tensor 't' has an impossible shape");
    const uint64_t ones[6] = {1, 1, 1, 1, 1, 1};
    check_tensor(5, ones, 0, 0, "impossible shape");
    check_tensor(1, (uint64_t[]){1025}, 0, 0, "tensor 't' needs bytes");
    check_tensor(1, (uint64_t[]){(uint64_t)1 << 50}, 0, 0, "tensor 't' needs bytes");
    check_tensor(1, (uint64_t[]){32}, 4, 0, "unknown type 4");
    check_tensor(1, (uint64_t[]){32}, 77, 0, "unknown type 77");
    check_tensor(1, (uint64_t[]){32}, UINT32_MAX, 0, "unknown type");
    check_tensor(1, (uint64_t[]){33}, 8, 0, "rows of 33 elements, Q8_0 takes a multiple of 32");
    check_tensor(2, (uint64_t[]){16, 2}, 2, 0, "rows of 16 elements");
    check_tensor(1, (uint64_t[]){128}, 14, 0, "Q6_K takes a multiple of 256");
    check_tensor(0, NULL, 8, 0, "rows of 1 elements");
    static const uint64_t offsets[] = {1, 32, 4096, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 31};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        check_tensor(1, ones, 0, offsets[i], "tensor 't' begins at byte");
}

/* Two tensors of 40 bytes, the second at this offset. */
static void check_second(const char *name, uint64_t offset, const char *text) {
    ls_buf b = {0};
    put_header(&b, 3, 2, 0);
    put_tensor(&b, "first", 1, (uint64_t[]){10}, 0, 0);
    put_tensor(&b, name, 1, (uint64_t[]){10}, 0, offset);
    pad_to(&b, 32);
    for (int i = 0; i < 256; i++) ls_buf_append(&b, "", 1);
    check_refused(&b, text);
}

static void test_places(void **state) {
    (void)state;
    check_second("second", 0, "overlap or leave a gap");
    check_second("second", 32, "overlap or leave a gap");
    check_second("second", 40, "overlap or leave a gap");
    check_second("second", 96, "overlap or leave a gap");
    check_second("first", 64, "tensor 'first' occurs twice");
}

static void test_no_file(void **state) {
    (void)state;
    ls_gguf g;
    ls_error e;
    unlink(path);
    assert_ls_fails(ls_gguf_open(path, &g, &e), LS_EIO, path, e);
    assert_ls_fails(ls_gguf_open(folder, &g, &e), LS_EIO, "is not a regular file", e);
    assert_false(ls_gguf_is(path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),      cmocka_unit_test(test_no_tensors),
        cmocka_unit_test(test_write),     cmocka_unit_test(test_write_values),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_headers),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_tensors),   cmocka_unit_test(test_places),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
