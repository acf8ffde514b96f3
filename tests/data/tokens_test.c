/* tokens_test.c - token files: what comes back, and that damage of any kind is found. */
#include "data/tokens.h"

#include <unistd.h>

#include "test.h"

static char dir[64], path[96];

static int setup(void **state) {
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/lockstep-tokens-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/t.tokens", dir);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return ls_file_remove_tree(dir, NULL) == LS_OK ? 0 : -1;
}

/* Ids 0, 7, 14... modulo vocab. */
static void write_some(size_t n, uint32_t vocab) {
    ls_error e = {0};
    uint32_t *ids = LS_NEW_ARRAY(uint32_t, n);
    for (size_t i = 0; i < n; i++) ids[i] = (uint32_t)(7 * i) % vocab;
    unlink(path);
    assert_ls_ok(ls_tokens_write(path, ids, n, vocab, 3 * n, &e), e);
    free(ids);
}

/* Not ls_file_write(): many small files, none of which need survive a crash. */
static void write_raw(const void *data, size_t nbytes) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

static void test_round_trip(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 15, 16, 17, 5000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        ls_error e = {0};
        ls_tokens t;
        write_some(sizes[k], 300);
        assert_ls_ok(ls_tokens_open(path, &t, &e), e);
        assert_int_equal(t.n, sizes[k]);
        assert_int_equal(t.vocab, 300);
        assert_int_equal(t.source_bytes, 3 * sizes[k]);
        for (size_t i = 0; i < t.n; i++) assert_int_equal(t.ids[i], 7 * i % 300);
        ls_tokens_close(&t);
    }
}

/* The bytes of a file of one token, written down by hand but for the hash. */
static void test_layout(void **state) {
    (void)state;
    static const uint8_t want[32] = {'L', 'S', 'T', 'O', 'K', 'E', 'N', 'S', 1, 0, 0, 0, 0x2C, 1,
                                     0,   0,   1,   0,   0,   0,   0,   0,   0, 0, 3, 0, 0,    0};
    ls_error e = {0};
    ls_buf b = {0};
    write_some(1, 300);
    assert_ls_ok(ls_file_read(path, 1000, &b, &e), e);
    assert_int_equal(b.len, 68);
    assert_memory_equal(b.data, want, 32);
    assert_memory_equal(b.data + 48, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    ls_buf_free(&b);
}

static void test_bad_ids(void **state) {
    (void)state;
    ls_error e;
    uint32_t ids[3] = {1, 300, 2};
    unlink(path);
    assert_ls_fails(ls_tokens_write(path, ids, 3, 300, 9, &e), LS_EINVAL, "token 1 has id 300", e);
    assert_false(ls_file_exists(path));
}

static void test_never_overwrites(void **state) {
    (void)state;
    ls_error e;
    uint32_t id = 0;
    write_some(5, 300);
    assert_ls_fails(ls_tokens_write(path, &id, 1, 300, 1, &e), LS_EIO, path, e);
    ls_tokens t;
    assert_ls_ok(ls_tokens_open(path, &t, &e), e);
    assert_int_equal(t.n, 5);
    ls_tokens_close(&t);
}

static void test_not_a_token_file(void **state) {
    (void)state;
    ls_error e;
    ls_tokens t;
    unlink(path);
    assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EIO, path, e);
    write_raw("", 0);
    assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EINVAL, "is not a token file", e);
    write_raw("In the beginning God created the heaven and the earth. And the earth was", 72);
    assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EINVAL, "is not a token file", e);
}

static void test_every_truncation_is_found(void **state) {
    (void)state;
    ls_error e = {0};
    ls_tokens t;
    ls_buf b = {0};
    write_some(20, 300);
    assert_ls_ok(ls_file_read(path, 1000, &b, &e), e);
    for (size_t n = 0; n < b.len; n++) {
        write_raw(b.data, n);
        assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EINVAL, path, e);
    }
    ls_buf_append(&b, "\0\0\0\0", 4);
    write_raw(b.data, b.len);
    assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EINVAL, "damaged", e);
    ls_buf_free(&b);
}

static void test_every_flipped_bit_is_found(void **state) {
    (void)state;
    ls_error e = {0};
    ls_tokens t;
    ls_buf b = {0};
    write_some(5, 300);
    assert_ls_ok(ls_file_read(path, 1000, &b, &e), e);
    for (size_t bit = 0; bit < 8 * b.len; bit++) {
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
        write_raw(b.data, b.len);
        assert_ls_fails(ls_tokens_open(path, &t, &e), LS_EINVAL, path, e);
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
    }
    ls_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_never_overwrites),
        cmocka_unit_test(test_not_a_token_file),
        cmocka_unit_test(test_every_truncation_is_found),
        cmocka_unit_test(test_every_flipped_bit_is_found),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
