/* index_test.c - indexes in the cache: a second opening finds the same samples by the index; one
 * that is stale, damaged or forged is made again; processes share it; and without a cache all
 * works. */
/* ctest: seconds=8 */
#include "source/index.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "source/formats/open.h"
#include "source/samples.h"

static const ls_source_options plain = {.index_nbytes = 1, .window = 8};
static const ls_source_options skipping = {.index_nbytes = 1, .window = 8, .skip_damaged = true};

static const struct set {
    const char *paths;
    const ls_source_options *options;
    const char *grows; /* this file gets more bytes; NULL: see test_stale */
} sets[] = {
    {"@table.csv", &plain, "table.csv"},
    {"@table.csv.gz", &plain, "table.csv.gz"},
    {"@bad.csv", &skipping, "bad.csv"},
    {"@lines.jsonl", &plain, "lines.jsonl"},
    {"@bad.jsonl", &skipping, "bad.jsonl"},
    {"@all.tfrecord", &plain, "all.tfrecord"},
    {"@bad.tfrecord", &skipping, "bad.tfrecord"},
    {"@mds", &plain, NULL},
    {"@images.tfrecord", &plain, "images.tfrecord"},
    {"@badimages.tfrecord", &skipping, "badimages.tfrecord"},
    {"@mdsphotos", &plain, NULL},
    {"@badphotos", &skipping, NULL},
    {"@all.tar", &plain, "all.tar"},
    {"@bad.tar\n@all.tar", &skipping, "bad.tar"},
    {"@tree", &plain, NULL},
    {"@badtree", &skipping, NULL},
    {"@x-idx3-ubyte\n@y-idx1-ubyte", &plain, NULL},
    {"@x.npy", &plain, NULL},
    {"@data_batch_1.bin", &plain, NULL},
    {"@train.bin", &plain, NULL},
    {"@lists.csv", &plain, "lists.csv"},
    {"@lists.jsonl", &plain, "lists.jsonl"},
    {"@lists.tfrecord", &plain, "lists.tfrecord"},
    {"@lists", &plain, NULL},
};
enum { NSETS = sizeof sets / sizeof *sets };

static void wait_ms(int ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

static int make_sets(void **state) {
    if (make_folder(state) != 0) return -1;
    char line[256];
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s", folder);
    if (system(line) != 0) return -1;
    wait_ms(30); /* images that are younger are not indexed */
    return 0;
}

/* All that a source says, and all its samples. */
static ls_buf contents_of(const ls_source *s) {
    ls_buf b = {0};
    uint8_t *sample = ls_alloc(s->nbytes);
    ls_buf_printf(&b, "%s %llu %llu %llu %llu %zu", s->format, (unsigned long long)s->count,
                  (unsigned long long)s->damage.n, (unsigned long long)s->nfiles,
                  (unsigned long long)s->file_nbytes, s->nbytes);
    ls_buf_append(&b, &s->hash, sizeof s->hash);
    for (int i = 0; i < s->nfields; i++) {
        const ls_field *f = &s->fields[i];
        ls_buf_printf(&b, " %s %d %d %zu %zu", f->name, f->type, f->ndims, f->offset, f->nbytes);
        for (int k = 0; k < f->ndims; k++) ls_buf_printf(&b, " %lld", (long long)f->dims[k]);
    }
    for (int i = 0; i < s->nclasses; i++) ls_buf_printf(&b, " %s", s->classes[i]);
    for (uint64_t i = 0; i < s->count; i++) {
        ls_error e = {0};
        memset(sample, 0, s->nbytes);
        assert_ls_ok(s->read(s, i, sample, &e), e);
        ls_buf_append(&b, sample, s->nbytes);
        ls_record_at at = ls_source_record(s, i);
        ls_buf_append(&b, &at, sizeof at);
    }
    free(sample);
    return b;
}

/* Opens, and compares all with *want, if there is one; else sets it. */
static void open_as(const struct set *set, ls_index_use use, ls_buf *want) {
    ls_source *s = opened(set->paths, set->options);
    if (s->index_use != use)
        fail_msg("%s: index use %d instead of %d", set->paths, s->index_use, use);
    ls_buf b = contents_of(s);
    if (want->data) {
        if (b.len != want->len || memcmp(b.data, want->data, b.len) != 0)
            fail_msg("%s: other contents by the index", set->paths);
        ls_buf_free(&b);
    } else {
        *want = b;
    }
    ls_source_close(s);
}

/* What the index has gives the same source, and the same messages. */
static void test_same(void **state) {
    (void)state;
    for (int i = 0; i < NSETS; i++) {
        ls_buf want = {0};
        ls_log_hold(true);
        open_as(&sets[i], LS_INDEX_MADE, &want);
        char *made = ls_strdup(ls_log_held());
        ls_log_release(false);
        ls_log_hold(true);
        open_as(&sets[i], LS_INDEX_USED, &want);
        assert_string_equal(ls_log_held(), made);
        ls_log_release(false);
        free(made);
        ls_source_options fresh = *sets[i].options;
        fresh.fresh = true;
        open_as(&(struct set){sets[i].paths, &fresh, NULL}, LS_INDEX_MADE, &want);
        ls_buf_free(&want);
    }
}

/* A file that changed, even if its size and modification time are as before. */
static void test_stale(void **state) {
    (void)state;
    char command[256];
    for (int i = 0; i < NSETS; i++) {
        ls_buf want = {0}, more = {0};
        if (!sets[i].grows) continue;
        open_as(&sets[i], LS_INDEX_MADE, &want);
        snprintf(command, sizeof command, "cp -p %s old && cat old >> %s && sleep 0.03",
                 sets[i].grows, sets[i].grows);
        in_folder(command);
        ls_source *s = NULL;
        ls_error e = {0};
        ls_log_hold(true);
        if (open_source(sets[i].paths, sets[i].options, &s, &e) == LS_OK) { /* no second header */
            assert_int_equal(s->index_use, LS_INDEX_MADE);
            more = contents_of(s);
            assert_true(more.len > want.len);
            ls_buf_free(&more);
            ls_source_close(s);
        }
        ls_log_release(false);
        snprintf(command, sizeof command, "cp old %s && touch -r old %s && sleep 0.03",
                 sets[i].grows, sets[i].grows);
        in_folder(command);
        open_as(&sets[i], LS_INDEX_MADE, &want);
        ls_buf_free(&want);
    }
}

/* Sources of several files: one that is removed, added, changed. */
static void test_stale_parts(void **state) {
    (void)state;
    static const struct {
        int set;
        const char *change, *undo;
    } all[] = {{7, "touch mds/shard.1.mds", "true"},
               {7, "sed -i 's/$/ /' mds/index.json", "true"},
               {14, "cp tree/ant/2.png tree/ant/x.png", "rm tree/ant/x.png"},
               {14, "mv tree/ant/2.png tree/bee/2.png", "mv tree/bee/2.png tree/ant/2.png"},
               {14, "touch tree/bee/3.png", "true"},
               {16, "touch y-idx1-ubyte", "true"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ls_buf want = {0};
        const struct set *set = &sets[all[i].set];
        ls_source_close(opened(set->paths, set->options));
        open_as(set, LS_INDEX_USED, &want);
        in_folder(all[i].change);
        wait_ms(30);
        ls_source *s = opened(set->paths, set->options);
        assert_int_equal(s->index_use, LS_INDEX_MADE);
        ls_source_close(s);
        in_folder(all[i].undo);
        wait_ms(30);
        ls_source_close(opened(set->paths, set->options));
        open_as(set, LS_INDEX_USED, &want);
        ls_buf_free(&want);
    }
}

/* ---- damage ---- */

/* The only index; the caller frees it. */
static char *index_path(void) {
    char *dir = paths_of("@index"), *path = NULL;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        if (strlen(f->d_name) != 32) continue;
        assert_null(path);
        path = ls_format("%s/%s", dir, f->d_name);
    }
    closedir(d);
    free(dir);
    assert_non_null(path);
    return path;
}

static void rewrite(const char *path, const void *data, size_t nbytes) {
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, nbytes), nbytes);
    close(fd);
}

/* Whatever bytes the index has, the source is the same. */
static void test_damaged(void **state) {
    (void)state;
    ls_buf want = {0}, good = {0}, bad = {0};
    ls_error e = {0};
    open_as(&sets[0], LS_INDEX_MADE, &want);
    char *path = index_path();
    assert_ls_ok(ls_file_read(path, 1 << 20, &good, &e), e);
    for (size_t at = 0; at < good.len; at += 13) {
        ls_buf_append(&bad, good.data, good.len);
        bad.data[at] ^= 0x41;
        rewrite(path, bad.data, bad.len);
        open_as(&sets[0], LS_INDEX_MADE, &want);
        rewrite(path, good.data, at);
        open_as(&sets[0], LS_INDEX_MADE, &want);
        bad.len = 0;
    }
    open_as(&sets[0], LS_INDEX_USED, &want);
    ls_buf_free(&want), ls_buf_free(&good), ls_buf_free(&bad);
    free(path);
}

/* Another version, another order of bytes, another key: each byte of the head counts, though the
 * checksum is that of what follows. */
static void test_head(void **state) {
    (void)state;
    enum { HEAD = 56, VERSION = 8 };
    ls_buf want = {0}, good = {0};
    ls_error e = {0};
    uint32_t version = 0;
    open_as(&sets[0], LS_INDEX_MADE, &want);
    char *path = index_path();
    assert_ls_ok(ls_file_read(path, 1 << 20, &good, &e), e);
    memcpy(&version, good.data + VERSION, sizeof version);
    assert_true(version > 0 && version < 1000);
    for (size_t at = 0; at < HEAD; at++) {
        good.data[at] ^= 1;
        rewrite(path, good.data, good.len);
        good.data[at] ^= 1;
        open_as(&sets[0], LS_INDEX_MADE, &want);
        open_as(&sets[0], LS_INDEX_USED, &want);
    }
    ls_buf_free(&want), ls_buf_free(&good);
    free(path);
}

/* A forged index has the right checksum: what it says is checked, and never leads outside of the
 * files. Samples may be wrong ones. */
static void use_forged(const struct set *set) {
    ls_source *s = NULL;
    ls_error e = {0};
    if (open_source(set->paths, set->options, &s, &e) != LS_OK) {
        assert_true(e.msg[0]);
        return;
    }
    uint8_t *sample = ls_alloc(s->nbytes);
    for (uint64_t i = 0; i < s->count && i < 100; i++) (void)s->read(s, i, sample, NULL);
    free(sample);
    ls_source_close(s);
}

static void test_forged(void **state) {
    (void)state;
    enum { HEAD = 56, NBYTES = 32, HASH = 40 };
    static const uint8_t values[] = {0, 1, 0xff};
    ls_log_hold(true);
    for (int i = 0; i < NSETS; i++) {
        ls_buf good = {0};
        ls_error e = {0};
        in_folder("rm -rf index");
        ls_source_close(opened(sets[i].paths, sets[i].options));
        char *path = index_path();
        assert_ls_ok(ls_file_read(path, 1 << 20, &good, &e), e);
        for (size_t at = HEAD; at < good.len; at += 1 + good.len / 20) {
            uint8_t was = (uint8_t)good.data[at];
            good.data[at] = (char)values[at % sizeof values];
            ls_hash hash = ls_hash_bytes(good.data + HEAD, good.len - HEAD);
            memcpy(good.data + HASH, &hash, sizeof hash);
            rewrite(path, good.data, good.len);
            good.data[at] = (char)was;
            use_forged(&sets[i]);
        }
        ls_buf_free(&good);
        free(path);
    }
    ls_log_release(false);
}

/* ---- the cache ---- */

static void test_copies(void **state) {
    (void)state;
    static const char *const damage[] = {
        "truncate -s -1 index/*.plain",
        "truncate -s 10 index/*.plain",
        "rm index/*.plain",
        "printf x | dd of=$(ls index/*.plain) bs=1 seek=3 conv=notrunc 2>/dev/null",
        "touch -r index/*.plain t && printf x | dd of=$(ls index/*.plain) bs=1 seek=30 "
        "conv=notrunc "
        "2>/dev/null && touch -r t index/*.plain",
        ("cp index/*.plain x && printf x | dd of=x bs=1 seek=$(($(stat -c %s x) - 30)) "
         "conv=notrunc "
         "2>/dev/null && touch -r index/*.plain x && mv x index/*.plain")};
    ls_buf want = {0};
    open_as(&sets[1], LS_INDEX_MADE, &want);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        in_folder("test $(ls index/*.plain | wc -l) = 1");
        in_folder(damage[i]);
        open_as(&sets[1], LS_INDEX_USED, &want);
    }
    in_folder("test $(ls index/*.plain | wc -l) = 1 && ! ls index/*.new 2>/dev/null");
    const ls_source_options low = {.index_nbytes = 1, .most_nbytes = 100};
    refuses(sets[1].paths, &low,
            "unpacks to more than 0.0 MB, the most that is"); /* the copy is there */
    ls_buf_free(&want);
}

/* While a source is open, writing to its copy is noticed; what leaves the bytes as they are is none
 * of its business. */
static void test_open_copy(void **state) {
    (void)state;
    static const char *const harmless[] = {"chmod 600 index/*.plain", "rm index/*.plain"};
    static const char *const harm[] = {
        "printf x | dd of=$(ls index/*.plain) bs=1 seek=30 conv=notrunc 2>/dev/null",
        "touch -r index/*.plain t && printf x | dd of=$(ls index/*.plain) bs=1 seek=30 "
        "conv=notrunc "
        "2>/dev/null && touch -r t index/*.plain",
        "touch index/*.plain", "truncate -s 10 index/*.plain"};
    enum { HARMLESS = sizeof harmless / sizeof *harmless, HARM = sizeof harm / sizeof *harm };
    ls_error e = {0};
    for (int i = 0; i < HARMLESS + HARM; i++) {
        ls_source *s = opened(sets[1].paths, sets[1].options);
        assert_ls_ok(ls_source_verify(s, &e), e);
        in_folder(i < HARMLESS ? harmless[i] : harm[i - HARMLESS]);
        if (i < HARMLESS)
            assert_ls_ok(ls_source_verify(s, &e), e);
        else
            assert_ls_fails(ls_source_verify(s, &e), LS_EIO,
                            ".plain: was written to while it was open; start again", e);
        ls_source_close(s);
    }
}

/* Files that were not used for 30 days are removed when another index is written. */
static void test_old(void **state) {
    (void)state;
    in_folder("mkdir index && touch -a -d '-40 days' index/a.plain && touch index/b.plain && "
              "touch -d '-40 days' index/lock && touch -m -d '-40 days' index/c.plain");
    ls_source_close(opened(sets[0].paths, sets[0].options));
    in_folder("! test -e index/a.plain && test -e index/b.plain && test -e index/lock && test -e "
              "index/c.plain");
}

/* Small data leave nothing in the cache. */
static void test_small(void **state) {
    (void)state;
    ls_source *s = opened("@table.csv.gz", NULL);
    assert_int_equal(s->index_use, LS_INDEX_NONE);
    ls_source_close(s);
    in_folder("! test -e index");
}

/* One of the processes that open the same data makes the index, the others use it. */
static void test_processes(void **state) {
    (void)state;
    enum { N = 4 };
    int fds[2], nmade = 0;
    char uses[N] = "";
    assert_int_equal(pipe(fds), 0);
    pid_t pids[N];
    for (int i = 0; i < N; i++) {
        pids[i] = fork();
        if (pids[i]) continue;
        ls_source *s = NULL;
        ls_error e;
        char use = 'x';
        if (open_source(sets[1].paths, sets[1].options, &s, &e) == LS_OK)
            use = (char)('0' + (int)s->index_use);
        _exit(write(fds[1], &use, 1) == 1 ? 0 : 1);
    }
    for (int i = 0; i < N; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        assert_int_equal(read(fds[0], &uses[i], 1), 1);
        assert_true(uses[i] == '0' + LS_INDEX_USED || uses[i] == '0' + LS_INDEX_MADE);
        nmade += uses[i] == '0' + LS_INDEX_MADE;
    }
    assert_int_equal(nmade, 1);
    close(fds[0]), close(fds[1]);
}

/* A cache that can't be written costs one line. */
static void test_no_cache(void **state) {
    (void)state;
    ls_source *s = NULL;
    ls_error e = {0};
    put_file("@file", "", 0);
    char *cache = paths_of("@file/cache"), *path = paths_of("@table.csv.gz");
    ls_source_options o = {.index_nbytes = 1, .cache = cache};
    ls_log_hold(true);
    for (int i = 0; i < 2; i++) {
        assert_ls_ok(ls_source_open(path, &o, &s, &e), e);
        assert_int_equal(s->index_use, LS_INDEX_NONE);
        assert_int_equal(s->count, 40);
        ls_source_close(s);
    }
    const char *first = strstr(ls_log_held(), "file/cache/index: ");
    assert_non_null(first);
    assert_non_null(strstr(first, "data are read and unpacked again each time"));
    assert_null(strstr(first + 1, "file/cache/index: "));
    ls_log_release(false);
    free(cache);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_stale, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_stale_parts, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_head, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_forged, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_copies, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_open_copy, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_old, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_small, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_processes, make_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_cache, make_sets, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
