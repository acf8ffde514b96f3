/* link_test.c - the speeds of links: the file, and that all workers get the same numbers, measured
 * or read, whichever worker has which file. Times are not judged. */
/* ctest: no-tsan: its workers are processes */
#include "coll/link.h"

#include <unistd.h>

#include "coll/request.h"
#include "coll/team.h"
#include "folder.h"

static char path[sizeof folder + sizeof "/links.yaml"];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/links.yaml", folder);
    return failed;
}

static void write_text(const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char GOOD[] = "links:\n  latency_us: 20\n  byte_ns: 0.5\n  busy_message_us: 3\n"
                           "  busy_byte_ns: 1.5\n  reduce_ns: 0.125\n";

static void test_file(void **state) {
    (void)state;
    ls_link l = {1.25e-5, 0.5e-9, 2e-6, 3e-9, 0.25e-9}, got = {0};
    ls_error e = {0};
    assert_ls_ok(ls_link_write(path, &l, "a test", &e), e);
    assert_ls_ok(ls_link_read(path, &got, &e), e);
    assert_true(got.latency_s > 1.2499e-5 && got.latency_s < 1.2501e-5);
    assert_true(got.byte_s > 0.499e-9 && got.byte_s < 0.501e-9);
    assert_true(got.busy_message_s > 1.99e-6 && got.busy_message_s < 2.01e-6);
    assert_true(got.busy_byte_s > 2.99e-9 && got.busy_byte_s < 3.01e-9);
    assert_true(got.reduce_s > 0.249e-9 && got.reduce_s < 0.251e-9);
}

static void refuses(const char *text, const char *says) {
    ls_link l;
    ls_error e = {0};
    if (text) write_text(text);
    assert_ls_fails(ls_link_read(path, &l, &e), LS_EINVAL, says, e);
}

static void test_bad_files(void **state) {
    (void)state;
    ls_link l;
    ls_error e = {0};
    refuses("links:\n  latency_us: 20\n", "links.yaml: links.byte_ns is missing");
    refuses("links:\n  latency_us: fast\n", "links.yaml:2: latency_us is 'fast'");
    refuses("links:\n  latency_us: -1\n", "links.yaml:2: latency_us is '-1'");
    refuses("links:\n  latency_us: nan\n", "links.yaml:2: latency_us is 'nan'");
    refuses("links:\n  latency_us: 1\n  bytes: 3\n", "links.yaml:3: 'links.bytes' is not a key");
    refuses("latency_us: 1\n", "links.yaml:1: 'latency_us' is not a key");
    refuses("links:\n  - 1\n", "is a list");
    unlink(path);
    assert_int_not_equal(ls_link_read(path, &l, &e), LS_OK);
    assert_non_null(strstr(e.msg, "links.yaml"));
}

/* ---- agreeing ---- */

static ls_status same_everywhere(ls_group *g, ls_error *e) {
    enum { MOST = 8 };
    char mine[1024] = "", all[MOST][1024];
    ls_link links[MOST];
    static const char *const what[] = {"all_reduce", "broadcast", "barrier", "all_gather"};
    for (int i = 0; i < 16; i++) {
        LS_TRY(ls_group_explain(g, what[i % 4], (size_t)1 << 5 * (i / 4), LS_F32, mine, sizeof mine,
                                e));
        LS_TRY(ls_all_gather(g, mine, all, sizeof mine, LS_U8, e));
        for (int k = 0; k < ls_group_size(g); k++)
            if (strcmp(all[k], mine) != 0)
                return ls_fail(e, LS_EINVAL, "'%.200s' and '%.200s'", mine, all[k]);
    }
    LS_TRY(ls_all_gather(g, &g->end->link, links, sizeof *links, LS_U8, e));
    for (int k = 0; k < ls_group_size(g); k++)
        if (memcmp(&links[k], &links[0], sizeof *links) != 0)
            return ls_fail(e, LS_EINVAL, "links differ");
    return LS_OK;
}

/* In the group of all, and in halves of it. */
static ls_status measured(ls_group *g, void *arg, ls_error *e) {
    const ls_link *l = &g->end->link;
    ls_group *half = NULL;
    (void)arg;
    if (ls_group_size(g) > 1 && !(l->latency_s > 0 && l->busy_message_s > 0 && l->reduce_s > 0))
        return ls_fail(e, LS_EINVAL, "not measured");
    if (g->end->link_given) return ls_fail(e, LS_EINVAL, "they count as given, without a file");
    LS_TRY(same_everywhere(g, e));
    LS_TRY(ls_group_split(g, ls_group_rank(g) % 2, 0, &half, e));
    ls_status s = same_everywhere(half, e);
    ls_group_close(half);
    return s;
}

/* Workers 0 and 1 have files of their own, of which worker 0's counts; the last has none. */
static int other_files(void *arg) {
    const char *const *texts = arg;
    ls_error e = {0};
    ls_group *g = NULL;
    char own[160];
    int rank = atoi(getenv("LOCKSTEP_RANK"));
    snprintf(own, sizeof own, "%s%d", path, rank);
    if (rank < 2) {
        FILE *f = fopen(own, "w");
        if (!f) return 9;
        fputs(texts[rank], f);
        fclose(f);
    }
    setenv("LOCKSTEP_LINKS", own, 1);
    ls_status s = ls_group_open(&(ls_group_options){.transport = "tcp"}, &g, &e);
    unlink(own);
    if (s != LS_OK) return strstr(e.msg, texts[2]) ? 0 : (fprintf(stderr, "%s\n", e.msg), 1);
    double us = g->end->link.latency_s * 1e6;
    bool right = !texts[2] && g->end->link_given && us > 19.9 && us < 20.1;
    s = same_everywhere(g, &e);
    ls_group_close(g);
    return right && s == LS_OK ? 0 : 2;
}

static void run_files(const char *first, const char *second, const char *says) {
    const char *texts[] = {first, second, says};
    ls_launch_options l = {
        .nworkers = 3, .arena_nbytes = 8 << 20, .main = other_files, .arg = texts};
    ls_error e = {0};
    int code = 0;
    assert_ls_ok(ls_launch_run(&l, &code, &e), e);
    if (code) print_error("%s\n", e.msg);
    assert_int_equal(code, 0);
}

static void test_agree(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 3, 5, 8};
    ls_group_options o = {.transport = "tcp"};
    for (int i = 0; i < 5; i++) run_processes(sizes[i], &o, measured, NULL);
    run_processes(3, &(ls_group_options){.transport = "tcp", .insecure = true}, measured, NULL);
}

static void test_files(void **state) {
    (void)state;
    run_files(GOOD, "links:\n  latency_us: 1e6\n", NULL);
    run_files("links:\n  latency_us: x\n", GOOD, "worker 0's file of links (LOCKSTEP_LINKS): ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
