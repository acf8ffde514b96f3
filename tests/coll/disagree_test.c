/* disagree_test.c - workers that make different calls: each gets an error that says what two of
 * them called, from which lines, over every transport, even if a worker is done with its call, or
 * has left.
 *
 * The last worker is the one that differs. LOCKSTEP_TEST_ALL=1: every kind with every way, number
 * of workers and end, also those that are left out for time.
 */
/* ctest: no-tsan: its workers are processes */
#include <stdatomic.h>
#include <sys/mman.h>

#include "coll/team.h"

enum { COUNT = 8, LONG = 40000, MOST = 5 };

/* ---- what they call ---- */

typedef ls_status kind_fn(ls_group *g, bool other, ls_error *e);

static ls_status broadcast_root(ls_group *g, bool other, ls_error *e) {
    int32_t x = 0;
    return ls_broadcast(g, &x, 1, LS_I32, other ? 0 : ls_group_size(g) - 1, e);
}

static ls_status gather_root(ls_group *g, bool other, ls_error *e) {
    static float in[LONG], out[MOST * LONG];
    return ls_gather(g, in, out, 1, LS_F32, other ? 1 : 0, e);
}

/* No worker waits: each is done when it has sent. */
static ls_status gather_crossed(ls_group *g, bool other, ls_error *e) {
    static float in[LONG], out[MOST * LONG];
    return ls_gather(g, in, out, 1, LS_F32, other ? 0 : ls_group_size(g) - 1, e);
}

static ls_status gather_long(ls_group *g, bool other, ls_error *e) {
    static float in[LONG], out[MOST * LONG];
    return ls_gather(g, in, out, LONG, LS_F32, other ? 0 : ls_group_size(g) - 1, e);
}

static ls_status scatter_root(ls_group *g, bool other, ls_error *e) {
    static float in[MOST], out[1];
    return ls_scatter(g, in, out, 1, LS_F32, other ? 0 : ls_group_size(g) - 1, e);
}

static ls_status reduce_root(ls_group *g, bool other, ls_error *e) {
    static float in[COUNT], out[COUNT];
    return ls_reduce(g, in, out, COUNT, LS_F32, LS_SUM, other ? ls_group_size(g) - 1 : 0, e);
}

static ls_status reduce_op(ls_group *g, bool other, ls_error *e) {
    static float in[COUNT], out[COUNT];
    return ls_reduce(g, in, out, COUNT, LS_F32, other ? LS_MAX : LS_SUM, 0, e);
}

static ls_status broadcast_dtype(ls_group *g, bool other, ls_error *e) {
    static int32_t x[COUNT];
    return ls_broadcast(g, x, COUNT, other ? LS_I32 : LS_F32, 0, e);
}

static ls_status broadcast_barrier(ls_group *g, bool other, ls_error *e) {
    static float x[COUNT];
    return other ? ls_barrier(g, e) : ls_broadcast(g, x, COUNT, LS_F32, 0, e);
}

static ls_status counts(ls_group *g, bool other, ls_error *e) {
    static float in[MOST * COUNT], out[COUNT];
    size_t blocks[MOST] = {other ? 2 : 1, 4};
    return ls_reduce_scatter_v(g, in, out, blocks, LS_F32, LS_SUM, e);
}

static ls_status swapped(ls_group *g, bool other, ls_error *e) {
    static float x[COUNT], y[COUNT];
    ls_request *q[2] = {0};
    ls_status s = LS_OK;
    for (int i = 0; i < 2 && s == LS_OK; i++)
        s = (i == 0) != other ? ls_all_reduce_start(g, x, x, COUNT, LS_F32, LS_SUM, &q[i], e)
                              : ls_broadcast_start(g, y, COUNT, LS_F32, 0, &q[i], e);
    for (int i = 0; i < 2 && s == LS_OK; i++) s = ls_wait(&q[1 - i], -1, e);
    return s;
}

static ls_status split_barrier(ls_group *g, bool other, ls_error *e) {
    ls_group *part = NULL;
    return other ? ls_barrier(g, e) : ls_group_split(g, 0, 0, &part, e);
}

static ls_status split_dup(ls_group *g, bool other, ls_error *e) {
    ls_group *part = NULL;
    return other ? ls_group_dup(g, &part, e) : ls_group_split(g, 0, 0, &part, e);
}

/* %n in a text is the last worker's number. */
static const struct kind {
    const char *name;
    kind_fn *fn;
    const char *most, *other; /* their calls, in words */
} kinds[] = {
    {"broadcast's root", broadcast_root, "broadcast i32, 1 element, root %n as call 0",
     "broadcast i32, 1 element, root 0 as call 0"},
    {"gather's root", gather_root, "gather f32, 1 element, root 0 as call 0",
     "gather f32, 1 element, root 1 as call 0"},
    {"gather's root, crossed", gather_crossed, "gather f32, 1 element, root %n as call 0",
     "gather f32, 1 element, root 0 as call 0"},
    {"gather's root, long", gather_long, "gather f32, 40000 elements, root %n as call 0",
     "gather f32, 40000 elements, root 0 as call 0"},
    {"scatter's root", scatter_root, "scatter f32, 1 element, root %n as call 0",
     "scatter f32, 1 element, root 0 as call 0"},
    {"reduce's root", reduce_root, "reduce f32 sum, 8 elements, root 0 as call 0",
     "reduce f32 sum, 8 elements, root %n as call 0"},
    {"reduce's operation", reduce_op, "reduce f32 sum, 8 elements, root 0 as call 0",
     "reduce f32 max, 8 elements, root 0 as call 0"},
    {"broadcast's dtype", broadcast_dtype, "broadcast f32, 8 elements, root 0 as call 0",
     "broadcast i32, 8 elements, root 0 as call 0"},
    {"broadcast and barrier", broadcast_barrier, "broadcast f32, 8 elements, root 0 as call 0",
     "barrier as call 0"},
    {"blocks", counts, "reduce_scatter_v f32 sum, 5 elements in blocks of 1, 4",
     "reduce_scatter_v f32 sum, 6 elements in blocks of 2, 4"},
    {"swapped starts", swapped, "all_reduce f32 sum, 8 elements as call 0",
     "broadcast f32, 8 elements, root 0 as call 0"},
    {"split and barrier", split_barrier, "group_split as call 0", "barrier as call 0"},
    {"split and dup", split_dup, "group_split as call 0", "group_dup as call 0"},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* ---- what is reported ---- */

static bool says(const char *msg, int n, const char *call) {
    char text[200];
    const char *hole = strstr(call, "%n");
    if (hole)
        snprintf(text, sizeof text, " called %.*s%d%s", (int)(hole - call), call, n - 1, hole + 2);
    else
        snprintf(text, sizeof text, " called %s", call);
    const char *at = strstr(msg, text), *file = at ? strstr(at, " at disagree_test.c:") : NULL;
    return file != NULL;
}

static bool is_reported(const struct kind *k, int n, ls_status s, const ls_error *e) {
    return s == LS_EDISAGREE && strncmp(e->msg, "workers disagree: worker ", 25) == 0 &&
           says(e->msg, n, k->most) && says(e->msg, n, k->other);
}

static ls_status wrong_result(const struct kind *k, ls_status s, ls_error *e) {
    char msg[400];
    snprintf(msg, sizeof msg, "%.399s", e->msg);
    return ls_fail(e, LS_EIO, "%s: %s: %s", k->name, ls_status_name(s), msg);
}

/* All kinds, each in a group of its own, with a barrier after it: every worker gets the error from
 * one or the other. */
static ls_status reported_later(ls_group *g, void *arg, ls_error *e) {
    ls_group *groups[NKINDS];
    int n = ls_group_size(g);
    (void)arg;
    for (int i = 0; i < NKINDS; i++) LS_TRY(ls_group_dup(g, &groups[i], e));
    for (int i = 0; i < NKINDS; i++) {
        ls_status s = kinds[i].fn(groups[i], ls_group_rank(g) == n - 1, e);
        if (s == LS_OK) s = ls_barrier(groups[i], e);
        if (!is_reported(&kinds[i], n, s, e)) return wrong_result(&kinds[i], s, e);
    }
    for (int i = 0; i < NKINDS; i++) ls_group_close(groups[i]);
    return ls_barrier(g, e);
}

/* One kind, and each worker leaves as soon as it can. */
typedef struct leaving {
    const struct kind *k;
    atomic_int *reported; /* workers that got the error, in all processes */
} leaving;

static ls_status reported_or_left(ls_group *g, void *arg, ls_error *e) {
    const leaving *l = arg;
    int n = ls_group_size(g);
    ls_status s = l->k->fn(g, ls_group_rank(g) == n - 1, e);
    if (s == LS_OK) return s;
    if (!is_reported(l->k, n, s, e)) return wrong_result(l->k, s, e);
    atomic_fetch_add(l->reported, 1);
    return LS_OK;
}

/* Worker 0, the root, has long forgotten the call in which the last worker waits for worker 1; so
 * has worker 1. On a busy machine one of them may be asked before it has forgotten it: then both
 * calls are named; or the message of worker 1's barrier comes first. */
static ls_status outrun(ls_group *g, void *arg, ls_error *e) {
    enum { CALLS = 100 };
    bool gone = *(const bool *)arg;
    int n = ls_group_size(g), rank = ls_group_rank(g);
    ls_status s = LS_OK;
    for (int i = 0, x = 0; i < CALLS && s == LS_OK; i++)
        s = ls_broadcast(g, &x, 1, LS_I32, i == 0 && rank == n - 1 ? 1 : 0, e);
    if (s == LS_OK && gone) return s;
    if (s == LS_OK) s = ls_barrier(g, e);
    char call[64];
    snprintf(call, sizeof call, "workers disagree: worker %d called broadcast i32, 1 ", n - 1);
    bool forgotten = strstr(e->msg, "waits in it for worker 1") &&
                     strstr(e->msg, "is done with another call 0 and has called b");
    bool named = strstr(e->msg, call) && (forgotten || strstr(e->msg, "root 0"));
    bool reported = s == LS_EDISAGREE && (named || strstr(e->msg, "worker 1 makes another call"));
    if (reported) return LS_OK;
    char msg[400];
    snprintf(msg, sizeof msg, "%.399s", e->msg);
    return ls_fail(e, LS_EIO, "outrun: %s: %s", ls_status_name(s), msg);
}

/* ---- ways ---- */

static const ls_group_options ways[] = {
    {.timeout_s = 20, .transport = "tcp"},
    {.timeout_s = 20, .transport = "tcp", .insecure = true},
    {.timeout_s = 20},
    {.timeout_s = 20, .algorithm = "binomial"},
};
static const int sizes[] = {2, 3, 5};

static bool all(void) { return getenv("LOCKSTEP_TEST_ALL") != NULL; }

static void test_later(void **state) {
    (void)state;
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < 3; i++)
            if (all() || i == (w + 1) % 3) run_processes(sizes[i], &ways[w], reported_later, NULL);
}

static void leave(const struct kind *k, const ls_group_options *way, int n) {
    leaving l = {k, mmap(NULL, sizeof *l.reported, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    assert_true(l.reported != MAP_FAILED);
    run_processes(n, way, reported_or_left, &l);
    if (atomic_load(l.reported) == 0 && k->fn != gather_crossed)
        fail_msg("%s: none of %d workers got the error", k->name, n);
    munmap(l.reported, sizeof *l.reported);
}

static void test_leaving(void **state) {
    (void)state;
    for (int k = 0; k < NKINDS; k++)
        for (int w = 0; w < 4; w++)
            for (int i = 0; i < 3; i++)
                if (all() || (i == k % 3 && w == (k / 3) % 4)) leave(&kinds[k], &ways[w], sizes[i]);
}

static void test_outrun(void **state) {
    (void)state;
    for (int gone = 0; gone < 2; gone++) run_processes(3, &ways[gone], outrun, &(bool){gone});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_later),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_outrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
