/* plain_test.c - packed files: gzip and zstd, several streams, truncated, damaged, and bombs. */
#include "source/plain.h"
#include "source/samples.h"

static ls_status open_plain(const char *name, const ls_source_options *o, ls_plain *p,
                            ls_error *e) {
    char *path = paths_of(name);
    ls_source_options options = o ? *o : (ls_source_options){0};
    options.cache = folder;
    ls_status s = ls_plain_open(path, &options, LS_HOLES_ALLOWED, p, e);
    free(path);
    return s;
}

static void expect_text(const char *name, const char *packing, const char *text, size_t n) {
    ls_plain p;
    ls_error e = {0};
    assert_ls_ok(open_plain(name, NULL, &p, &e), e);
    assert_int_equal(p.nbytes, n);
    assert_memory_equal(p.data, text, n);
    if (packing)
        assert_string_equal(p.packing, packing);
    else
        assert_null(p.packing);
    assert_true(ls_hash_same(p.hash, ls_hash_bytes(text, n)));
    ls_plain_close(&p);
}

/* Files of which nothing, or the end, was written are not read. */
static void test_incomplete(void **state) {
    (void)state;
    ls_plain p;
    ls_error e = {0};
    uint8_t first[LS_PLAIN_FIRST];
    size_t n = 0;
    uint64_t size = 0;
    put_file("@whole", "a text", 6);
    in_folder(
        "gzip -k whole; cp whole.gz part.gz; truncate -s 512G part.gz; truncate -s 512G empty; "
        "truncate -s 1000 short");
    assert_ls_fails(open_plain("@part.gz", NULL, &p, &e), LS_EINVAL, "were never written", e);
    assert_ls_fails(open_plain("@empty", NULL, &p, &e), LS_EINVAL,
                    "its first 549755.8 MB of 549755.8 were never written: it is incomplete", e);
    char *path = paths_of("@empty");
    assert_int_equal(ls_plain_first(path, first, &n, &size, NULL), LS_EINVAL);
    free(path);
    path = paths_of("@part.gz");
    assert_int_equal(ls_plain_first(path, first, &n, &size, NULL), LS_EINVAL);
    free(path);
    assert_ls_ok(open_plain("@short", NULL, &p, &e), e);
    assert_int_equal(p.nbytes, 1000);
    ls_plain_close(&p);
}

static void test_packings(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *text = ls_alloc(N);
    for (size_t i = 0; i < N; i++) text[i] = (char)(i * 2654435761u >> 24);
    put_file("@t", text, N);
    in_folder("gzip -k t; zstd -q t; cat t.gz t.gz > twice.gz; cat t.zst t.zst > twice.zst; "
              "head -c 512 /dev/zero | cat t.gz - > padded.gz; : > none; gzip -k none");
    expect_text("@t", NULL, text, N);
    expect_text("@t.gz", "gzip", text, N);
    expect_text("@t.zst", "zstd", text, N);
    expect_text("@padded.gz", "gzip", text, N);
    expect_text("@none.gz", "gzip", "", 0);
    ls_plain p;
    ls_error e = {0};
    assert_ls_ok(open_plain("@twice.gz", NULL, &p, &e), e);
    assert_int_equal(p.nbytes, 2 * N);
    ls_plain_close(&p);
    assert_ls_ok(open_plain("@twice.zst", NULL, &p, &e), e);
    assert_int_equal(p.nbytes, 2 * N);
    ls_plain_close(&p);
    char *path = paths_of("@t.zst");
    uint8_t first[LS_PLAIN_FIRST];
    size_t n = 0;
    uint64_t size = 0;
    assert_ls_ok(ls_plain_first(path, first, &n, &size, &e), e);
    assert_int_equal(n, LS_PLAIN_FIRST);
    assert_true(size == UINT64_MAX);
    assert_memory_equal(first, text, n);
    free(path);
    free(text);
    in_folder("test $(ls -A | wc -l) = 8"); /* scratch files have no names */
}

static void refuses_plain(const char *name, const ls_source_options *o, const char *says) {
    ls_plain p;
    ls_error e = {0};
    assert_ls_fails(open_plain(name, o, &p, &e), LS_EINVAL, says, e);
}

static void test_damage(void **state) {
    (void)state;
    in_folder("seq 20000 > t; gzip -k t; zstd -q t; "
              "for p in gz zst; do head -c -9 t.$p > cut.$p; head -c 20000 t.$p > half.$p; "
              "cp t.$p bad.$p; printf XXXX | dd of=bad.$p bs=1 seek=9000 conv=notrunc status=none; "
              "done; cp t.gz crc.gz; s=$(stat -c %s t.gz); "
              "printf Z | dd of=crc.gz bs=1 seek=$((s - 7)) conv=notrunc status=none; "
              "(cat t.gz; echo more) > more.gz; (cat t.zst; echo more) > more.zst; "
              "printf '\\050\\265\\057\\375\\000\\250\\001\\000\\000' > wide.zst");
    refuses_plain("@wide.zst", NULL, "a window of more than 128 MB, as by --long=31; pack it anew");
    refuses_plain("@cut.gz", NULL, "is truncated: the gzip stream does not end within its");
    refuses_plain("@half.gz", NULL, "is truncated");
    refuses_plain("@cut.zst", NULL, "is truncated: the zstd frame does not end within its");
    refuses_plain("@half.zst", NULL, "is truncated");
    refuses_plain("@bad.gz", NULL, "the gzip stream is damaged before offset");
    refuses_plain("@bad.zst", NULL, "the zstd frame is damaged before offset");
    refuses_plain("@crc.gz", NULL, "incorrect data check");
    refuses_plain("@more.gz", NULL, "other bytes follow the gzip stream at offset");
    refuses_plain("@more.zst", NULL, "the zstd frame is damaged before offset");
}

static void test_bombs(void **state) {
    (void)state;
    in_folder("head -c 60000000 /dev/zero > z; gzip -k z; zstd -q z");
    refuses_plain("@z.gz", NULL, "unpack to more than 1000 times as many, the most");
    refuses_plain("@z.zst", NULL, "unpack to more than 1000 times as many, the most");
    refuses_plain("@z.gz", &(ls_source_options){.most_nbytes = 1000000},
                  "unpacks to more than 1.0 MB, the most");
    ls_plain p;
    ls_error e = {0};
    assert_ls_ok(open_plain("@z.zst", &(ls_source_options){.most_ratio = 1e9}, &p, &e), e);
    assert_int_equal(p.nbytes, 60000000);
    ls_plain_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_incomplete, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_packings, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_bombs, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
