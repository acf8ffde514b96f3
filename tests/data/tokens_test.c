/* tokens_test.c - token files: tokens are read back, and any damage is detected. */
#include "data/tokens.h"

#include <fcntl.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

static char path[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/t.tokens", folder);
    return failed;
}

static ls_status save(const uint32_t *ids, size_t n, uint32_t vocab, uint64_t source_bytes,
                      ls_error *e) {
    ls_tokens t = ls_tokens_hashed(ids, n, vocab, source_bytes);
    return ls_tokens_save(&t, path, e);
}

/* Ids 0, 7, 14... modulo vocab. */
static void write_some(size_t n, uint32_t vocab) {
    ls_error e = {0};
    uint32_t *ids = LS_NEW_ARRAY(uint32_t, n);
    for (size_t i = 0; i < n; i++) ids[i] = (uint32_t)(7 * i) % vocab;
    unlink(path);
    assert_ls_ok(save(ids, n, vocab, 3 * n, &e), e);
    free(ids);
}

/* Not ls_file_write(), which syncs: these are many small files. */
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
        uint32_t *ids = NULL;
        assert_ls_ok(ls_tokens_read_first(&t, t.n, &ids, &e), e);
        for (size_t i = 0; i < t.n; i++) assert_int_equal(ids[i], 7 * i % 300);
        free(ids);
        ls_tokens_close(&t);
    }
}

/* Where the validation part begins is in the file, and in its hash. */
static void test_validation(void **state) {
    (void)state;
    static const uint32_t ids[] = {1, 2, 3, 4, 5};
    ls_error e = {0};
    ls_tokens t = ls_tokens_hashed(ids, 5, 6, 5), back;
    ls_hash without = t.hash;
    t.val_first = 3;
    ls_tokens_set_hash(&t);
    assert_false(ls_hash_same(t.hash, without));
    unlink(path);
    assert_ls_ok(ls_tokens_save(&t, path, &e), e);
    assert_ls_ok(ls_tokens_open(path, &back, &e), e);
    assert_int_equal(back.val_first, 3);
    assert_true(ls_hash_same(t.hash, back.hash));
    ls_tokens_close(&back);
    static const uint8_t other[] = {2, 0, 5};
    for (size_t i = 0; i < sizeof other; i++) {
        int fd = open(path, O_WRONLY);
        assert_int_equal(pwrite(fd, &other[i], 1, 48), 1);
        close(fd);
        assert_ls_fails(ls_tokens_open(path, &back, &e), LS_EINVAL, "is damaged", e);
    }
}

/* Any part of the file, within blocks and across them, and a copy of the whole. */
static void test_parts(void **state) {
    (void)state;
    enum { N = 300000, LONG = 9000 };
    static uint32_t ids[LONG];
    ls_error e = {0};
    ls_tokens t, copy;
    char other[128];
    write_some(N, 300);
    assert_ls_ok(ls_tokens_open(path, &t, &e), e);
    for (size_t first = 0; first < N; first += 997)
        for (size_t n = 0; n <= LONG && first + n <= N; n = 3 * n + 1) {
            assert_ls_ok(ls_tokens_read(&t, first, n, ids, &e), e);
            for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], 7 * (first + i) % 300);
        }
    snprintf(other, sizeof other, "%s/copy.tokens", folder);
    assert_ls_ok(ls_tokens_save(&t, other, &e), e);
    assert_ls_ok(ls_tokens_open(other, &copy, &e), e);
    assert_true(ls_hash_same(copy.hash, t.hash) && copy.n == N && copy.source_bytes == 3 * N);
    ls_tokens_close(&copy);
    ls_tokens_close(&t);
}

/* Overwrites 4 bytes of the file. */
static void poke(size_t token, uint32_t id) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)(64 + 4 * token), SEEK_SET), 0);
    assert_int_equal(fwrite(&id, 4, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* Ids that change after opening are never returned, even valid ones; the others are. */
static void test_changed_since(void **state) {
    (void)state;
    enum { N = 100000 };
    ls_error e = {0};
    ls_tokens t;
    uint32_t id = 0;
    write_some(N, 300);
    assert_ls_ok(ls_tokens_open(path, &t, &e), e);
    assert_ls_ok(ls_tokens_verify(&t, &e), e);
    poke(5000, 7 * 5000 % 300 + 1 < 300 ? 7 * 5000 % 300 + 1 : 0);
    assert_ls_fails(ls_tokens_read(&t, 5000, 1, &id, &e), LS_EINVAL, "tokens 4096 to 6143", e);
    assert_ls_fails(ls_tokens_read(&t, 5000, 1, &id, &e), LS_EINVAL, path, e);
    assert_ls_ok(ls_tokens_read(&t, 6144, 1, &id, &e), e);
    assert_int_equal(id, 7 * 6144 % 300);
    assert_ls_fails(ls_tokens_verify(&t, &e), LS_EINVAL, "is damaged", e);
    poke(5000, 4000000000u);
    assert_ls_fails(ls_tokens_read(&t, 5000, 1, &id, &e), LS_EINVAL,
                    "token 5000 has id 4000000000, the vocabulary 300", e);
    poke(5000, 7 * 5000 % 300);
    assert_ls_ok(ls_tokens_read(&t, 5000, 1, &id, &e), e);
    assert_ls_ok(ls_tokens_verify(&t, &e), e);
    assert_int_equal(truncate(path, 64 + 4 * 50000), 0);
    assert_ls_fails(ls_tokens_read(&t, 70000, 1, &id, &e), LS_EINVAL, "was cut short", e);
    assert_ls_ok(ls_tokens_read(&t, 10, 1, &id, &e), e);
    ls_tokens_close(&t);
}

/* Another file replaces it: reads return the opened tokens, but ls_tokens_verify() fails. */
static void test_replaced(void **state) {
    (void)state;
    ls_error e = {0};
    ls_tokens t;
    uint32_t id = 0;
    write_some(100, 300);
    assert_ls_ok(ls_tokens_open(path, &t, &e), e);
    write_some(99, 300);
    assert_ls_ok(ls_tokens_read(&t, 99, 1, &id, &e), e);
    assert_int_equal(id, 7 * 99 % 300);
    assert_ls_fails(ls_tokens_verify(&t, &e), LS_EINVAL, "has other tokens", e);
    write_some(100, 300);
    assert_ls_ok(ls_tokens_verify(&t, &e), e);
    ls_tokens_close(&t);
}

/* The bytes of a file of one token, given by hand except for the hash. */
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
    assert_ls_fails(save(ids, 3, 300, 9, &e), LS_EINVAL, "token 1 has id 300", e);
    assert_false(ls_file_exists(path));
}

static void test_never_overwrites(void **state) {
    (void)state;
    ls_error e;
    uint32_t id = 0;
    write_some(5, 300);
    assert_ls_fails(save(&id, 1, 300, 1, &e), LS_EIO, path, e);
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
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_changed_since),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_bad_ids),
        cmocka_unit_test(test_never_overwrites),
        cmocka_unit_test(test_not_a_token_file),
        cmocka_unit_test(test_every_truncation_is_found),
        cmocka_unit_test(test_every_flipped_bit_is_found),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
