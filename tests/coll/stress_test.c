/* stress_test.c - all workers make the same random calls for a while: all collectives and messages,
 * of all sizes, blocking and started, in several groups that are opened and closed. Each worker
 * decides for itself in which order it waits, whether a call is in place, and whether others can
 * read its memory.
 *
 * All workers go through the same list of starts and waits. A wait is for all that is in flight in
 * one group, or in all groups; the order of these is a worker's own.
 */
/* ctest: busy */
#include <sched.h>
#include <unistd.h>

#include "coll/team.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { ACTIONS = 1000, FEW_ACTIONS = 600 };
#else
enum { ACTIONS = 8000, FEW_ACTIONS = 2000 };
#endif

enum { GROUPS = 4, IN_FLIGHT = 24, MOST_NBYTES = 100 * 1000, MAX_WORKERS = 8 };

typedef enum op {
    ALL_REDUCE,
    REDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_V,
    ALL_GATHER,
    ALL_GATHER_V,
    BROADCAST,
    GATHER,
    SCATTER,
    ALL_TO_ALL,
    ALL_TO_ALL_V,
    SCAN,
    BARRIER,
    ROUND, /* to the next worker, from the one before */
    NOPS
} op;

/* A call on its way, with all that is needed to check it. */
typedef struct flight {
    op op;
    ls_group *g;
    ls_dtype dtype;
    int root, key; /* key: what the numbers depend on */
    size_t count, counts[MAX_WORKERS], sends[MAX_WORKERS], receives[MAX_WORKERS];
    unsigned char *in, *out;
    size_t nin, nout; /* elements */
    bool in_place;
    ls_request *q[2]; /* NULL once done */
    bool used;
} flight;

typedef struct stress {
    ls_group *groups[GROUPS];
    flight flights[GROUPS][IN_FLIGHT];
    uint64_t common, own; /* random numbers: the same for all workers; of this one */
    ls_error *e;
} stress;

static uint64_t next_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15u;
    uint64_t x = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
static size_t below(uint64_t *seed, size_t n) { return (size_t)(next_random(seed) % n); }

/* ---- numbers: small integers, whose sums are exact in each of these types ---- */

static const ls_dtype TYPES[] = {LS_F64, LS_F32, LS_I64, LS_I32, LS_U8};

static int number(const flight *f, int worker, size_t i) {
    return (int)((i * 5 + (size_t)worker * 11 + (size_t)f->key) % 31);
}

static void put(const flight *f, unsigned char *p, size_t i, int x) {
    switch (f->dtype) {
    case LS_F64: ((double *)(void *)p)[i] = x; break;
    case LS_F32: ((float *)(void *)p)[i] = (float)x; break;
    case LS_I64: ((int64_t *)(void *)p)[i] = x; break;
    case LS_I32: ((int32_t *)(void *)p)[i] = x; break;
    default: p[i] = (unsigned char)x; break;
    }
}

static int get(const flight *f, const unsigned char *p, size_t i) {
    switch (f->dtype) {
    case LS_F64: return (int)((const double *)(const void *)p)[i];
    case LS_F32: return (int)((const float *)(const void *)p)[i];
    case LS_I64: return (int)((const int64_t *)(const void *)p)[i];
    case LS_I32: return (int)((const int32_t *)(const void *)p)[i];
    default: return p[i];
    }
}

static int sum_of(const flight *f, size_t i) {
    int sum = 0, n = f->op == SCAN ? ls_group_rank(f->g) + 1 : ls_group_size(f->g);
    for (int k = 0; k < n; k++) sum += number(f, k, i);
    return sum;
}

/* The worker whose block element i of all blocks is in, and its place there. */
static int block_at(const flight *f, size_t i, size_t *place_p) {
    bool uneven = f->op == REDUCE_SCATTER_V || f->op == ALL_GATHER_V;
    int k = 0;
    for (; i >= (uneven ? f->counts[k] : f->count); k++) i -= uneven ? f->counts[k] : f->count;
    *place_p = i;
    return k;
}

static size_t block_begin(const flight *f, int k) {
    size_t at = 0;
    bool uneven = f->op == REDUCE_SCATTER_V || f->op == ALL_GATHER_V;
    for (int i = 0; i < k; i++) at += uneven ? f->counts[i] : f->count;
    return at;
}

/* Elements that go from one worker to another in an all-to-all-v. */
static size_t pair_count(const flight *f, int from, int to) {
    return f->counts[(from + 3 * to) % MAX_WORKERS];
}
static void count_pairs(flight *f) {
    int r = ls_group_rank(f->g), n = ls_group_size(f->g);
    f->nin = f->nout = 0;
    for (int i = 0; i < n; i++) {
        f->nin += f->sends[i] = pair_count(f, r, i);
        f->nout += f->receives[i] = pair_count(f, i, r);
    }
}

/* What out[i] must be. */
static int expected(const flight *f, size_t i) {
    int r = ls_group_rank(f->g), n = ls_group_size(f->g);
    size_t place = i;
    switch (f->op) {
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_V: return sum_of(f, block_begin(f, r) + i);
    case ALL_GATHER:
    case ALL_GATHER_V:
    case GATHER: {
        int from = block_at(f, i, &place);
        return number(f, from, place);
    }
    case BROADCAST: return number(f, f->root, i);
    case SCATTER: return number(f, f->root, (size_t)r * f->count + i);
    case ALL_TO_ALL: {
        int from = block_at(f, i, &place);
        return number(f, from, (size_t)r * f->count + place);
    }
    case ALL_TO_ALL_V: {
        int from = 0;
        while (place >= pair_count(f, from, r)) place -= pair_count(f, from++, r);
        for (int to = 0; to < r; to++) place += pair_count(f, from, to);
        return number(f, from, place);
    }
    case ROUND: return number(f, (r + n - 1) % n, i);
    default: return sum_of(f, i);
    }
}

/* ---- one call ---- */

static void size_up(flight *f) {
    size_t n = (size_t)ls_group_size(f->g), all = block_begin(f, (int)n);
    int r = ls_group_rank(f->g);
    f->nin = f->nout = f->count;
    switch (f->op) {
    case REDUCE: f->nout = r == f->root ? f->count : 0; break;
    case REDUCE_SCATTER: f->nin = all; break;
    case REDUCE_SCATTER_V: f->nin = all, f->nout = f->counts[r]; break;
    case ALL_GATHER: f->nout = all; break;
    case ALL_GATHER_V: f->nin = f->counts[r], f->nout = all; break;
    case GATHER: f->nout = r == f->root ? all : 0; break;
    case SCATTER: f->nin = r == f->root ? all : 0; break;
    case ALL_TO_ALL: f->nin = f->nout = all; break;
    case ALL_TO_ALL_V: count_pairs(f); break;
    case BARRIER: f->nin = f->nout = 0; break;
    default: break;
    }
}

static unsigned char *take(stress *s, const flight *f, size_t n) {
    size_t nbytes = n * ls_dtype_size(f->dtype);
    if (below(&s->own, 2)) return ls_group_alloc(f->g, nbytes);
    return calloc(nbytes + 1, 1);
}

/* ls_group_free() gives back either kind. */
static void give(flight *f) {
    bool inner_in = f->in_place && f->nin < f->nout;
    if (!f->in_place || !inner_in) ls_group_free(f->g, f->in);
    if (!f->in_place || inner_in) ls_group_free(f->g, f->out);
}

/* Some calls may be in place: this worker decides. */
static void place_buffers(stress *s, flight *f) {
    bool may = f->op == ALL_REDUCE || f->op == SCAN || f->op == REDUCE_SCATTER ||
               f->op == REDUCE_SCATTER_V || f->op == ALL_GATHER || f->op == ALL_GATHER_V ||
               f->op == ALL_TO_ALL;
    f->in_place = may && below(&s->own, 2);
    size_t own = block_begin(f, ls_group_rank(f->g)) * ls_dtype_size(f->dtype);
    if (f->op == ALL_REDUCE || f->op == SCAN || f->op == ALL_TO_ALL) own = 0;
    if (!f->in_place) {
        f->in = take(s, f, f->nin);
        f->out = take(s, f, f->nout);
    } else if (f->nin < f->nout) {
        f->out = take(s, f, f->nout);
        f->in = f->out + own;
    } else {
        f->in = take(s, f, f->nin);
        f->out = f->in + own;
    }
    int r = ls_group_rank(f->g);
    for (size_t i = 0; i < f->nin; i++) put(f, f->in, i, number(f, r, i));
    for (size_t i = 0; i < f->nout && f->op == BROADCAST; i++)
        put(f, f->out, i, r == f->root ? number(f, r, i) : 99);
}

static ls_status start(flight *f, ls_error *e) {
    ls_group *g = f->g;
    int r = ls_group_rank(g), n = ls_group_size(g);
    ls_dtype t = f->dtype;
    switch (f->op) {
    case ALL_REDUCE: return ls_all_reduce_start(g, f->in, f->out, f->count, t, LS_SUM, &f->q[0], e);
    case REDUCE:
        return ls_reduce_start(g, f->in, f->out, f->count, t, LS_SUM, f->root, &f->q[0], e);
    case REDUCE_SCATTER:
        return ls_reduce_scatter_start(g, f->in, f->out, f->count, t, LS_SUM, &f->q[0], e);
    case ALL_GATHER: return ls_all_gather_start(g, f->in, f->out, f->count, t, &f->q[0], e);
    case BROADCAST: return ls_broadcast_start(g, f->out, f->count, t, f->root, &f->q[0], e);
    case ALL_TO_ALL: return ls_all_to_all_start(g, f->in, f->out, f->count, t, &f->q[0], e);
    case ALL_TO_ALL_V:
        return ls_all_to_all_v_start(g, f->in, f->sends, f->out, f->receives, t, &f->q[0], e);
    case SCAN: return ls_scan_start(g, f->in, f->out, f->count, t, LS_SUM, &f->q[0], e);
    case BARRIER: return ls_barrier_start(g, &f->q[0], e);
    case ROUND:
        if (n == 1) {
            memcpy(f->out, f->in, f->count * ls_dtype_size(t));
            return LS_OK;
        }
        LS_TRY(ls_send_start(g, f->in, f->count, t, (r + 1) % n, &f->q[0], e));
        return ls_recv_start(g, f->out, f->count, t, (r + n - 1) % n, &f->q[1], e);
    case REDUCE_SCATTER_V:
        return ls_reduce_scatter_v_start(g, f->in, f->out, f->counts, t, LS_SUM, &f->q[0], e);
    case ALL_GATHER_V: return ls_all_gather_v_start(g, f->in, f->out, f->counts, t, &f->q[0], e);
    case GATHER: return ls_gather_start(g, f->in, f->out, f->count, t, f->root, &f->q[0], e);
    case SCATTER: return ls_scatter_start(g, f->in, f->out, f->count, t, f->root, &f->q[0], e);
    case NOPS: break;
    }
    return LS_OK;
}

static ls_status check(flight *f, ls_error *e) {
    for (size_t i = 0; i < f->nout; i++)
        if (get(f, f->out, i) != (f->dtype == LS_U8 ? expected(f, i) % 256 : expected(f, i)))
            return ls_fail(e, LS_EINVAL,
                           "worker %d of %d, operation %d of %zu x %s: element %zu is %d, not %d",
                           ls_group_rank(f->g), ls_group_size(f->g), (int)f->op, f->count,
                           ls_dtype_name(f->dtype), i, get(f, f->out, i), expected(f, i));
    give(f);
    f->used = false;
    return LS_OK;
}

static size_t random_count(uint64_t *seed, size_t size, size_t blocks) {
    size_t most = MOST_NBYTES / size / blocks;
    switch (below(seed, 8)) {
    case 0: return below(seed, 2);
    case 1:
    case 2:
    case 3: return below(seed, 12);
    case 4:
    case 5: return below(seed, 260);
    case 6: return below(seed, 2000) % (most + 1);
    default: return below(seed, most + 1);
    }
}

/* ---- the list ---- */

static ls_status wait_for(stress *s, flight *f, bool blocking) {
    for (int i = 1; i >= 0; i--) {
        bool done = !f->q[i];
        int tests = blocking ? 0 : (int)below(&s->own, 3);
        while (!done && tests--) LS_TRY(ls_test(&f->q[i], &done, s->e));
        if (!done) LS_TRY(ls_wait(&f->q[i], -1, s->e));
    }
    return check(f, s->e);
}

/* All of groups [first, end), in this worker's own order. */
static ls_status drain_groups(stress *s, int first, int end) {
    flight *left[GROUPS * IN_FLIGHT];
    size_t n = 0;
    for (int at = first; at < end; at++)
        for (int i = 0; i < IN_FLIGHT; i++)
            if (s->flights[at][i].used) left[n++] = &s->flights[at][i];
    for (; n; n--) {
        size_t pick = below(&s->own, n);
        LS_TRY(wait_for(s, left[pick], false));
        left[pick] = left[n - 1];
    }
    return LS_OK;
}

static ls_status drain(stress *s, int at) { return drain_groups(s, at, at + 1); }

static flight *free_flight(stress *s, int at) {
    for (int i = 0; i < IN_FLIGHT; i++)
        if (!s->flights[at][i].used) return &s->flights[at][i];
    return NULL;
}

static ls_status call(stress *s, int at) {
    flight next = {.g = s->groups[at], .used = true}, *f = NULL;
    next.op = (op)below(&s->common, NOPS);
    next.dtype = TYPES[below(&s->common, 5)];
    next.key = (int)below(&s->common, 31);
    size_t seed_of_root = below(&s->common, 1000), size = ls_dtype_size(next.dtype);
    next.count = random_count(&s->common, size, MAX_WORKERS);
    for (int k = 0; k < MAX_WORKERS; k++)
        next.counts[k] = random_count(&s->common, size, MAX_WORKERS);
    bool blocking = below(&s->common, 4) == 0;
    if (!next.g) return LS_OK; /* this worker is not in it */
    next.root = (int)(seed_of_root % (size_t)ls_group_size(next.g));
    f = free_flight(s, at);
    if (!f) { /* the group's size may differ between workers, but not what they have started */
        LS_TRY(drain(s, at));
        f = free_flight(s, at);
    }
    *f = next;
    size_up(f);
    place_buffers(s, f);
    LS_TRY(start(f, s->e));
    return blocking ? wait_for(s, f, true) : LS_OK;
}

/* Group `at` is closed, and split from another anew, while that one's calls are in flight. */
static ls_status reopen(stress *s, int at) {
    int from = at == 2 ? 1 : 0, how = (int)below(&s->common, 4);
    LS_TRY(drain(s, at));
    if (at == 1) LS_TRY(drain(s, 2));
    ls_group_close(s->groups[at]);
    s->groups[at] = NULL;
    if (below(&s->own, 4) == 0) { /* what the closed group had in the arena may be here now */
        unsigned char *p = ls_group_alloc(s->groups[0], 600 * 1000);
        memset(p, 0x55, 600 * 1000);
        ls_group_free(s->groups[0], p);
    }
    if (!s->groups[from]) return LS_OK;
    int r = ls_group_rank(s->groups[from]);
    int colour = how == 0 ? 0 : how == 1 ? r % 2 : how == 2 ? (r ? 1 : -1) : r / 2;
    return ls_group_split(s->groups[from], colour, r % 3 ? -r : r, &s->groups[at], s->e);
}

static ls_status run_list(ls_group *g, uint64_t seed, int actions, ls_error *e) {
    stress *s = calloc(1, sizeof *s);
    *s = (stress){.groups = {g}, .common = seed, .e = e};
    s->own = seed * 1000 + (uint64_t)ls_group_rank(g);
    ls_status status = LS_OK;
    for (int i = 0; i < actions && status == LS_OK; i++) {
        int at = (int)below(&s->common, GROUPS);
        size_t kind = below(&s->common, 40);
        if (kind < 36)
            status = call(s, at);
        else if (kind == 36)
            status = drain_groups(s, 0, GROUPS);
        else if (kind < 39 || !at)
            status = drain(s, at);
        else
            status = reopen(s, at);
        if (below(&s->own, 100) == 0) usleep(100);
    }
    if (status == LS_OK) status = drain_groups(s, 0, GROUPS);
    if (status == LS_OK) status = ls_barrier(g, e);
    for (int at = 1; at < GROUPS; at++) ls_group_close(s->groups[at]);
    free(s);
    return status;
}

typedef struct job {
    uint64_t seed;
    int actions;
} job;

static ls_status one_list(ls_group *g, void *arg, ls_error *e) {
    const job *j = arg;
    return run_list(g, j->seed, j->actions, e);
}

static int actions_of_each(void) { return ncases(FEW_ACTIONS, ACTIONS); }

static void run(int n, const ls_group_options *o, uint64_t seed, int actions, bool processes) {
    job j = {seed, actions};
    if (processes)
        run_processes(n, o, one_list, &j);
    else
        run_threads(n, o, one_list, &j, NULL);
}

static void test_threads(void **state) {
    (void)state;
    for (int n = 2; n <= 6; n++) run(n, NULL, (uint64_t)n, actions_of_each(), false);
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    for (int n = 2; n <= 6; n++) run(n, NULL, (uint64_t)n + 10, actions_of_each(), true);
}

/* Small arenas: most calls go through the stages, messages through copies and notes. */
static void test_small_arena(void **state) {
    (void)state;
    need_processes();
    ls_group_options o = {.arena_nbytes = 4 << 20};
    for (int n = 2; n <= 4; n++) run(n, &o, (uint64_t)n + 20, actions_of_each(), true);
}

static void test_messages(void **state) {
    (void)state;
    ls_group_options o = {.algorithm = "exchange"};
    run(3, &o, 30, actions_of_each() / 2, false);
    run(4, &o, 31, actions_of_each() / 2, true);
}

/* ---- two threads of each worker, each with a group of its own ---- */

typedef struct half {
    ls_group *g;
    uint64_t seed;
    int actions;
    ls_status status;
    ls_error e;
    pthread_t thread;
} half;

static void *half_main(void *arg) {
    half *h = arg;
    stress *s = calloc(1, sizeof *s);
    *s = (stress){.groups = {h->g}, .common = h->seed, .e = &h->e};
    s->own = h->seed * 1000 + (uint64_t)ls_group_rank(h->g);
    for (int i = 0; i < h->actions && h->status == LS_OK; i++)
        h->status = below(&s->common, 8) ? call(s, 0) : drain(s, 0);
    if (h->status == LS_OK) h->status = drain(s, 0);
    free(s);
    return NULL;
}

static ls_status two_threads(ls_group *g, void *arg, ls_error *e) {
    const job *j = arg;
    half h[2] = {{.g = g}, {0}};
    LS_TRY(ls_group_dup(g, &h[1].g, e));
    for (int i = 0; i < 2; i++) {
        h[i].seed = j->seed + (uint64_t)i;
        h[i].actions = j->actions;
        pthread_create(&h[i].thread, NULL, half_main, &h[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(h[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        if (h[i].status != LS_OK) {
            *e = h[i].e;
            return h[i].status;
        }
    LS_TRY(ls_barrier(g, e));
    ls_group_close(h[1].g);
    return LS_OK;
}

static void test_two_threads(void **state) {
    (void)state;
    job j = {.seed = 40, .actions = actions_of_each() / 3};
    for (int n = 2; n <= 4; n++) {
        run_threads(n, NULL, two_threads, &j, NULL);
        run_processes(n, NULL, two_threads, &j);
    }
    run_threads(3, &(ls_group_options){.algorithm = "exchange"}, two_threads, &j, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_processes),
        cmocka_unit_test(test_small_arena), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
