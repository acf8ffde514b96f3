/* changed_test.c - files that are truncated or changed while a source is open, or being opened: a
 * line that names the file, and never the end of the program by SIGBUS. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/guard.h"
#include "source/samples.h"

enum { PAGE = 4096, NPAGES = 16 };

static void make_pages(const char *name) {
    static uint8_t pages[NPAGES * PAGE];
    memset(pages, 'x', sizeof pages);
    put_file(name, pages, sizeof pages);
}

static int open_file(const char *name) {
    char *path = paths_of(name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    free(path);
    return fd;
}

/* ---- the guard ---- */

static void test_guard(void **state) {
    (void)state;
    const void *a = NULL, *b = NULL, *none = &a;
    ls_error e = {0};
    make_pages("@a");
    make_pages("@b");
    int fd = open_file("@a"), other = open_file("@b");
    assert_ls_ok(ls_guard_map(fd, "a", NPAGES * PAGE, &a, &e), e);
    assert_ls_ok(ls_guard_map(other, "b", NPAGES * PAGE, &b, &e), e);
    assert_ls_ok(ls_guard_map(other, "b", 0, &none, &e), e);
    assert_null(none);
    const volatile uint8_t *x = a, *y = b;
    assert_int_equal(ftruncate(fd, 3 * PAGE + 7), 0);
    assert_int_equal(x[3 * PAGE], 'x');
    assert_ls_ok(ls_guard_check(&e), e);
    assert_int_equal(x[5 * PAGE + 9], 0);
    assert_int_equal(x[NPAGES * PAGE - 1], 0);
    assert_int_equal(x[0], 'x');
    assert_int_equal(y[5 * PAGE], 'x');
    assert_ls_fails(ls_guard_check(&e), LS_EIO, "a: can't be read any more from byte 20480 on", e);
    ls_guard_unmap(b, NPAGES * PAGE);
    assert_int_equal(ls_guard_check(NULL), LS_EIO);
    ls_guard_unmap(a, NPAGES * PAGE);
    assert_ls_ok(ls_guard_check(&e), e);
    close(fd), close(other);
}

/* Many files at once, each truncated, read by several threads. */
enum { NMANY = 600 };
static const void *many[NMANY];

static void *read_many(void *sum) {
    for (int i = 0; i < NMANY; i++)
        *(uint64_t *)sum += ((const volatile uint8_t *)many[i])[PAGE + i];
    return NULL;
}

static void test_many(void **state) {
    (void)state;
    pthread_t threads[3];
    uint64_t sums[3] = {0};
    ls_error e = {0};
    make_pages("@a");
    int fd = open_file("@a");
    for (int i = 0; i < NMANY; i++)
        assert_ls_ok(ls_guard_map(fd, "a", NPAGES * PAGE, &many[i], &e), e);
    assert_int_equal(ftruncate(fd, 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &sums[i]), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(sums[i], 0);
    assert_int_equal(ls_guard_check(NULL), LS_EIO);
    for (int i = 0; i < NMANY; i++) ls_guard_unmap(many[i], NPAGES * PAGE);
    assert_ls_ok(ls_guard_check(&e), e);
    close(fd);
}

static volatile sig_atomic_t nothers;

static void on_other(int number) {
    nothers = number;
    _exit(7);
}

/* Faults elsewhere go to the handler that was there before. */
static void test_elsewhere(void **state) {
    (void)state;
    make_pages("@a");
    pid_t pid = fork();
    if (pid == 0) {
        const void *guarded = NULL;
        int fd = open_file("@a");
        signal(SIGBUS, on_other); /* the handler below is installed once in a process */
        const volatile uint8_t *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
        if (ls_guard_map(fd, "a", PAGE, &guarded, NULL) != LS_OK || ftruncate(fd, 0) != 0) _exit(1);
        _exit(p[0] + 2);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* ---- sources ---- */

static void fails_to_read(const ls_source *s, uint64_t i, const char *says) {
    uint8_t *sample = ls_alloc(s->nbytes);
    ls_error e = {0};
    assert_ls_fails(s->read(s, i, sample, &e), LS_EIO, says, e);
    free(sample);
}

static void test_truncated(void **state) {
    (void)state;
    static const struct {
        const char *paths, *file;
    } all[] = {{"@table.csv", "table.csv"},
               {"@lines.jsonl", "lines.jsonl"},
               {"@all.tfrecord", "all.tfrecord"},
               {"@mds", "mds/shard.1.mds"},
               {"@all.tar", "all.tar"},
               {"@data_batch_1.bin", "data_batch_1.bin"},
               {"@train.bin", "train.bin"},
               {"@x-idx3-ubyte\n@y-idx1-ubyte", "x-idx3-ubyte"},
               {"@x.npy", "x.npy"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char command[128], says[128];
        ls_error e = {0};
        const ls_source_options o = {.window = 8};
        ls_source *s = opened(all[i].paths, &o);
        assert_ls_ok(ls_source_verify(s, &e), e);
        snprintf(command, sizeof command, "truncate -s 0 %s", all[i].file);
        snprintf(says, sizeof says, "%s: has changed since it was opened (then ", all[i].file);
        in_folder(command);
        fails_to_read(s, s->count - 1, says);
        fails_to_read(s, s->count - 1, says); /* and ever after */
        assert_ls_fails(ls_source_verify(s, &e), LS_EIO, says, e);
        ls_source_close(s);
    }
    ls_source *good = opened("@bad.csv", &(ls_source_options){.skip_damaged = true});
    free(sample_of(good, 0)); /* sources that are closed disturb no others */
    ls_source_close(good);
}

/* A change that leaves all samples readable is found by ls_source_verify(). */
static void test_changed(void **state) {
    (void)state;
    ls_error e = {0};
    ls_source *s = opened("@x-idx3-ubyte\n@y-idx1-ubyte", NULL);
    in_folder("touch y-idx1-ubyte");
    free(sample_of(s, 3));
    assert_ls_fails(ls_source_verify(s, &e), LS_EIO, "y-idx1-ubyte: has changed since it was", e);
    in_folder("rm y-idx1-ubyte");
    assert_ls_fails(ls_source_verify(s, &e), LS_EIO, "y-idx1-ubyte: is no longer there: No such",
                    e);
    ls_source_close(s);
    s = opened("@tree", NULL);
    in_folder("for f in tree/bee/*; do truncate -s 30 $f; done");
    uint8_t *sample = ls_alloc(s->nbytes);
    assert_ls_fails(s->read(s, s->count - 1, sample, &e), LS_EIO,
                    ".png: has changed since it was opened; put", e);
    free(sample);
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_elsewhere, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_guard, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_many, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_truncated, write_sets, remove_folder),
        cmocka_unit_test_setup_teardown(test_changed, write_sets, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
