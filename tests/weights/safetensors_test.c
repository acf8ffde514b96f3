/* safetensors_test.c - files are read back, and a damaged or hostile file is an error that names
 * it. */
#include "weights/safetensors.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"

static char path[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    return failed;
}

/* Not ls_file_write(): many small files, none of which must survive a crash. A fresh file each
 * time, since file systems write a truncated one out at once. */
static void write_raw(const void *bytes, size_t nbytes) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

/* Writes a file with this header, padded with spaces to 8, and `nbytes` of data. */
static void write_file(const char *header, size_t nbytes) {
    ls_buf b = {0};
    uint64_t length = (strlen(header) + 7) / 8 * 8;
    ls_buf_append(&b, &length, sizeof length);
    ls_buf_append(&b, header, strlen(header));
    while (b.len < length + 8) ls_buf_append(&b, " ", 1);
    for (size_t i = 0; i < nbytes; i++) ls_buf_append(&b, "", 1);
    write_raw(b.data, b.len);
    ls_buf_free(&b);
}

static void check_status(ls_status status, const ls_safetensors *s, const ls_error *e,
                         const char *what) {
    if ((status != LS_EINVAL && status != LS_EIO) || !strstr(e->msg, path))
        print_error("%s: status %d, '%s'\n", what, status, e->msg);
    assert_true(status == LS_EINVAL || status == LS_EIO);
    assert_non_null(strstr(e->msg, path));
    assert_null(s->tensors);
}

/* An error that names the file, and nothing in *s_p. */
static void check_refused(const char *what) {
    ls_safetensors s = {0};
    ls_error e = {0};
    check_status(ls_safetensors_open(path, &s, &e), &s, &e, what);
    e = (ls_error){0};
    check_status(ls_safetensors_open_any(path, &s, &e), &s, &e, what);
}

static float element(const ls_tensor *t, size_t i) { return ((const float *)t->data)[i]; }

static const float data[] = {1, -2, 3.5f, 0, 1e-40f, 6, 7, 8, 9, 10};

static ls_safetensors write_some(void) {
    const ls_tensor t[] = {
        {.name = "wte.weight", .ndims = 2, .dims = {2, 3}, .count = 6, .data = data},
        {.name = "scalar", .count = 1, .data = data + 6},
        {.name = "none", .ndims = 2, .dims = {0, 5}, .data = data + 7},
        {.name = "h.0.ln_1.bias", .ndims = 1, .dims = {3}, .count = 3, .data = data + 7}};
    ls_safetensors s;
    ls_error e = {0};
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, t, 4, &e), e);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    return s;
}

static void test_round_trip(void **state) {
    (void)state;
    ls_safetensors s = write_some();
    assert_int_equal(s.n, 4);
    const ls_tensor *t = ls_safetensors_find(&s, "wte.weight");
    assert_non_null(t);
    assert_true(t->ndims == 2 && t->dims[0] == 2 && t->dims[1] == 3 && t->count == 6);
    assert_memory_equal(t->data, data, 6 * sizeof(float));
    t = ls_safetensors_find(&s, "scalar");
    assert_true(t && t->ndims == 0 && t->count == 1 && element(t, 0) == data[6]);
    t = ls_safetensors_find(&s, "none");
    assert_true(t && t->ndims == 2 && t->dims[1] == 5 && t->count == 0);
    t = ls_safetensors_find(&s, "h.0.ln_1.bias");
    assert_true(t && t->ndims == 1);
    assert_memory_equal(t->data, data + 7, 3 * sizeof(float));
    assert_null(ls_safetensors_find(&s, "wte"));
    for (size_t i = 1; i < s.n; i++) assert_true(s.tensors[i - 1].data <= s.tensors[i].data);
    ls_safetensors_close(&s);
}

static void test_layout(void **state) {
    (void)state;
    ls_safetensors s = write_some();
    uint64_t length = 0;
    memcpy(&length, s.map.data, sizeof length);
    assert_int_equal(length % 8, 0);
    assert_int_equal(s.map.nbytes, 8 + length + sizeof data);
    char *header = ls_format("%.*s", (int)length, (const char *)s.map.data + 8);
    assert_int_equal(header[0], '{'); /* the format requires it there */
    assert_non_null(strstr(header, "__metadata__"));
    assert_non_null(strstr(header, "\"format\": \"pt\""));
    free(header);
    ls_safetensors_close(&s);
}

static void test_no_tensors(void **state) {
    (void)state;
    ls_safetensors s;
    ls_error e = {0};
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, NULL, 0, &e), e);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    assert_int_equal(s.n, 0);
    ls_safetensors_close(&s);
}

static void test_exists(void **state) {
    (void)state;
    write_raw("keep", 4);
    ls_error e;
    assert_ls_fails(ls_safetensors_write(path, NULL, 0, &e), LS_EIO, path, e);
    ls_buf b = {0};
    assert_ls_ok(ls_file_read(path, 10, &b, &e), e);
    assert_string_equal(b.data, "keep");
    ls_buf_free(&b);
}

/* The header may have any order and unknown keys of other programs. */
static void test_any_order(void **state) {
    (void)state;
    ls_safetensors s;
    ls_error e = {0};
    write_file("{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},"
               "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
               "\"__metadata__\":{\"step\":\"7\"}}",
               12);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.tensors[0].name, "a");
    ls_safetensors_close(&s);
}

static void test_truncated(void **state) {
    (void)state;
    ls_error e = {0};
    ls_safetensors s = write_some();
    size_t nbytes = s.map.nbytes;
    char *whole = ls_alloc(nbytes + 1);
    memcpy(whole, s.map.data, nbytes);
    ls_safetensors_close(&s);
    for (size_t n = 0; n < nbytes; n++) {
        write_raw(whole, n);
        check_refused("truncated");
        assert_ls_fails(ls_safetensors_open(path, &s, &e), LS_EINVAL, "truncated", e);
    }
    write_raw(whole, nbytes + 1); /* a byte too many */
    check_refused("too long");
    free(whole);
}

/* Every byte of the length and header is set to hostile values: that is an error, or the tensors
 * are within the file. */
static void test_flipped(void **state) {
    (void)state;
    ls_safetensors s = write_some();
    size_t nbytes = s.map.nbytes, end = nbytes - sizeof data;
    unsigned char *bytes = ls_alloc(nbytes);
    memcpy(bytes, s.map.data, nbytes);
    ls_safetensors_close(&s);
    static const unsigned char values[] = {0, 0xff, 0x80, '"', '}', '9', '-', ','};
    for (size_t i = 0; i < end; i++)
        for (size_t k = 0; k < sizeof values; k++) {
            unsigned char was = bytes[i];
            ls_error e = {0};
            bytes[i] = values[k];
            write_raw(bytes, nbytes);
            bytes[i] = was;
            ls_status status = ls_safetensors_open(path, &s, &e);
            if (status != LS_OK) assert_non_null(strstr(e.msg, path));
            if (status != LS_OK) continue;
            assert_true(i >= 8 || values[k] == was);
            double sum = 0;
            for (size_t t = 0; t < s.n; t++)
                for (size_t j = 0; j < s.tensors[t].count; j++)
                    sum += (double)element(&s.tensors[t], j);
            assert_true(sum > 0);
            ls_safetensors_close(&s);
        }
    free(bytes);
}

static void test_length(void **state) {
    (void)state;
    static const uint64_t lengths[] = {0,          1,
                                       3,          17,
                                       1000,       64 << 20,
                                       UINT32_MAX, (uint64_t)1 << 62,
                                       INT64_MAX,  (uint64_t)1 << 63,
                                       UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[40] = {0};
        memcpy(bytes, &lengths[i], 8);
        memcpy(bytes + 8, "{}              ", 16);
        write_raw(bytes, sizeof bytes);
        check_refused("length");
    }
}

/* One tensor 'x' whose entry is `entry`, in a file of 16 bytes of data. */
static void check_entry(const char *entry) {
    char *header = ls_format("{\"x\":%s}", entry);
    write_file(header, 16);
    check_refused(entry);
    free(header);
}

static void test_entries(void **state) {
    (void)state;
    static const char *const entries[] = {
        "{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F64\",\"shape\":[4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F4\",\"shape\":[32],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"f32\",\"shape\":[4],\"data_offsets\":[0,16]}",
        "{\"dtype\":5,\"shape\":[4],\"data_offsets\":[0,16]}",
        "{\"shape\":[4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[4]}",
        "{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":{\"0\":4},\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[\"4\"],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[4.0],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[-2,-2],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}",
        "{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}",
        "{\"dtype\":\"F32\",\"shape\":[2147483648,2147483648,4],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[4,20]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[1,17]}",
        "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[2,14]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,32]}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":16}",
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[\"0\",\"16\"]}",
        ("{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[9223372036854775807,"
         "9223372036854775807]}"),
        "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}", /* 4 bytes belong to nothing */
        "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}", /* so do the first 4 */
        "[]",
        "null",
        "7",
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) check_entry(entries[i]);
}

/* Shapes whose product modulo 2^64 is the number of elements in the file. */
static void test_wrapped_shapes(void **state) {
    (void)state;
    write_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}",
               4);
    check_refused("2^62 + 1 floats");
    write_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],"
               "\"data_offsets\":[0,0]}}",
               0);
    check_refused("2^64 floats");
    write_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[2147483649,2147483647,2147483649,3],"
               "\"data_offsets\":[0,0]}}",
               0);
    check_refused("above 2^64 floats");
}

/* Types besides F32 are read by ls_safetensors_open_any() alone: 16-bit floats, and others as
 * tensors that are only listed. */
static void test_types(void **state) {
    (void)state;
    static const uint16_t halves[] = {0x3c00, 0xbf80, 0x4000, 1};
    static const ls_tensor t[] = {
        {.name = "f32", .ndims = 1, .dims = {2}, .count = 2, .data = data},
        {.name = "f16", .ndims = 1, .dims = {3}, .count = 3, .data = halves, .type = LS_BLOCK_F16},
        {.name = "bf16", .count = 1, .data = halves + 3, .type = LS_BLOCK_BF16}};
    ls_safetensors s;
    ls_error e = {0};
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, t, 3, &e), e);
    assert_ls_fails(ls_safetensors_open(path, &s, &e), LS_EINVAL, "only F32 can be read", e);
    assert_ls_ok(ls_safetensors_open_any(path, &s, &e), e);
    for (int i = 0; i < 3; i++) {
        const ls_tensor *got = ls_safetensors_find(&s, t[i].name);
        assert_true(got && got->type == t[i].type && got->count == t[i].count);
        assert_memory_equal(got->data, t[i].data, ls_tensor_nbytes(&t[i]));
    }
    assert_string_equal(ls_safetensors_find(&s, "bf16")->dtype, "BF16");
    ls_safetensors_close(&s);
    write_file("{\"x\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[0,3]},"
               "\"y\":{\"dtype\":\"F8_E4M3\",\"shape\":[5],\"data_offsets\":[3,8]},"
               "\"z\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
               16);
    assert_ls_ok(ls_safetensors_open_any(path, &s, &e), e);
    for (size_t i = 0; i < 3; i++) assert_int_equal(s.tensors[i].type, LS_NBLOCK_TYPES);
    assert_string_equal(s.tensors[2].dtype, "I64");
    ls_safetensors_close(&s);
    /* An empty tensor alone, and a type without its own size in bytes. */
    write_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[2,0,3],\"data_offsets\":[0,0]}}", 0);
    assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
    assert_true(s.n == 1 && s.tensors[0].count == 0);
    ls_safetensors_close(&s);
    write_file("{\"x\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1);
    assert_ls_fails(ls_safetensors_open_any(path, &s, &e), LS_EINVAL, "not known here", e);
}

/* A header of `pad` spaces more than a multiple of 8, as the published GPT-2 and files of MLX have
 * it; behind three bytes also x and y begin at odd places. */
static void check_unaligned(size_t pad) {
    const float x[] = {1.5f, -2};
    const uint16_t y[] = {0x3c00, 0xc000}; /* F16 of 1 and -2 */
    const char *const header = "{\"w\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                               "\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]},"
                               "\"y\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[11,15]},"
                               "\"z\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[15,15]}}";
    ls_buf b = {0};
    uint64_t length = strlen(header) + pad;
    ls_buf_append(&b, &length, sizeof length);
    ls_buf_append(&b, header, strlen(header));
    for (size_t i = 0; i < pad; i++) ls_buf_append(&b, " ", 1);
    ls_buf_append(&b, "abc", 3);
    ls_buf_append(&b, x, sizeof x);
    ls_buf_append(&b, y, sizeof y);
    write_raw(b.data, b.len);
    ls_buf_free(&b);
    ls_safetensors s;
    ls_error e = {0};
    assert_ls_ok(ls_safetensors_open_any(path, &s, &e), e);
    const ls_tensor *wide = ls_safetensors_find(&s, "x"), *half = ls_safetensors_find(&s, "y");
    assert_int_equal((uintptr_t)wide->data % 4 + (uintptr_t)half->data % 2, 0);
    assert_memory_equal(wide->data, x, sizeof x);
    float got[2];
    ls_tensor_read(half, 0, 2, got);
    assert_true(got[0] == 1 && got[1] == -2);
    ls_safetensors_close(&s);
}

static void test_unaligned(void **state) {
    (void)state;
    for (size_t pad = 0; pad < 8; pad++) check_unaligned(pad);
    /* our own files are mapped where they are written, and are refused */
    ls_safetensors s;
    ls_error e = {0};
    write_raw("\73\0\0\0\0\0\0\0"
              "{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}     abcd",
              71);
    assert_ls_fails(ls_safetensors_open(path, &s, &e), LS_EINVAL, "not aligned", e);
}

/* Two tensors of 2 floats at [a, a + 8) and [b, b + 8) of 16 bytes. */
static void check_places(int a, int b) {
    char *header = ls_format("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%d,%d]},"
                             "\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%d,%d]}}",
                             a, a + 8, b, b + 8);
    write_file(header, 16);
    check_refused(header);
    free(header);
}

static void test_places(void **state) {
    (void)state;
    check_places(0, 0);
    check_places(8, 8);
    check_places(0, 4);
    check_places(4, 8);
    check_places(4, 0);
    /* an empty tensor takes no space, but begins where another ends */
    write_file("{\"x\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
               "\"y\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[2,2]}}",
               16);
    check_refused("empty, inside another");
}

static void test_headers(void **state) {
    (void)state;
    static const char *const headers[] = {
        "[]",
        "7",
        "null",
        "\"text\"",
        "{",
        "}",
        "{}x",
        "{\"a\":}",
        "{\"__metadata__\":[]",
        "",
        "{'a':1}",
        "\xff\xfe{}",
        ("{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}"),
        "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_file(headers[i], i + 2 < sizeof headers / sizeof *headers ? 0 : 16);
        check_refused(headers[i]);
    }
    ls_buf deep = {0};
    for (int i = 0; i < 100000; i++) ls_buf_append(&deep, i ? "[" : "{\"a\":", i ? 1 : 5);
    write_file(deep.data, 0);
    check_refused("deep");
    ls_buf_free(&deep);
}

/* Names of 127 bytes are the longest. */
static void test_names(void **state) {
    (void)state;
    for (int n = 126; n <= 2000; n += n < 130 ? 1 : 935) {
        char name[2001];
        memset(name, 'n', sizeof name);
        name[n] = 0;
        char *header =
            ls_format("{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", name);
        write_file(header, 8);
        free(header);
        if (n >= LS_TENSOR_NAME) check_refused("long name");
        if (n >= LS_TENSOR_NAME) continue;
        ls_safetensors s;
        ls_error e = {0};
        assert_ls_ok(ls_safetensors_open(path, &s, &e), e);
        assert_non_null(ls_safetensors_find(&s, name));
        ls_safetensors_close(&s);
    }
}

static void test_no_file(void **state) {
    (void)state;
    unlink(path);
    check_refused("no file");
    ls_safetensors s;
    ls_error e;
    assert_ls_fails(ls_safetensors_open(folder, &s, &e), LS_EIO, folder, e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_layout),
        cmocka_unit_test(test_no_tensors), cmocka_unit_test(test_exists),
        cmocka_unit_test(test_any_order),  cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped),    cmocka_unit_test(test_length),
        cmocka_unit_test(test_entries),    cmocka_unit_test(test_wrapped_shapes),
        cmocka_unit_test(test_places),     cmocka_unit_test(test_headers),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_types),      cmocka_unit_test(test_unaligned),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
