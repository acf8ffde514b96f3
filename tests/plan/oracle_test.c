/* oracle_test.c - the oracle runs random plans and finds no fault. In plans with a fault, it finds
 * the fault, and ls_plan_verify() does, too.
 */
/* ctest: seconds=8 */
#include "plan/oracle.h"

#include "graph_model.h"
#include "lists_model.h"
#include "mlp_model.h"
#include "model/frozen.h"
#include "plan/pick.h"
#include "plan/rules.h"
#include "share/codes.h"
#include "share/config.h"
#include "test.h"

#ifdef __SANITIZE_ADDRESS__
enum { NSEEDS = 800, FEW_SEEDS = 200, SITES = 6 }; /* ten times slower */
#else
enum { NSEEDS = 4000, FEW_SEEDS = 1000, SITES = 24 };
#endif

enum { NSHAPES = 5, NFROZEN = 4, NMODELS = NSHAPES + 5 + NFROZEN, MAX_V = 16, MAX_WORKERS = 8 };

typedef struct models {
    ls_model list[NMODELS];
    ls_model matrices[NSHAPES]; /* each in one bucket, for factors */
} models;

static void freeze(ls_model *m, const char *a, const char *b) {
    ls_error e = {0};
    assert_true(ls_model_freeze(m, a) > 0 && ls_model_freeze(m, b) > 0);
    assert_ls_ok(ls_model_link(m, &e), e);
}

/* Layers at the beginning, single parameters, and a part in the middle. */
static void open_frozen(const ls_gpt_config *shapes, ls_model *list) {
    ls_error e = {0};
    assert_ls_ok(ls_gpt_create(&shapes[2], &list[0], &e), e);
    assert_ls_ok(ls_gpt_create(&shapes[4], &list[1], &e), e);
    lists_make(&list[2]);
    mlp_make(&list[3]);
    freeze(&list[0], "w?e.*", "h.0.*");
    freeze(&list[1], "*.bias", "wte.*");
    freeze(&list[2], "words.*", "numbers.*");
    freeze(&list[3], "fc2.*", "fc1.bias");
}

/* Parameters of several blocks, and several parameters in a block. */
static int open_models(void **state) {
    static const ls_gpt_config shapes[NSHAPES] = {
        {.layers = 1, .width = 8, .heads = 2, .context = 32, .vocab = 256},
        {.layers = 2, .width = 8, .heads = 2, .context = 33, .vocab = 300},
        {.layers = 3, .width = 4, .heads = 1, .context = 32, .vocab = 70},
        {.layers = 2, .width = 12, .heads = 3, .context = 40, .vocab = 90},
        {.layers = 4, .width = 8, .heads = 4, .context = 32, .vocab = 33}};
    static models all;
    ls_error e;
    for (int i = 0; i < NSHAPES; i++) {
        assert_ls_ok(ls_gpt_create(&shapes[i], &all.list[i], &e), e);
        assert_ls_ok(ls_gpt_create(&shapes[i], &all.matrices[i], &e), e);
        ls_share_place_matrices(&all.matrices[i]);
    }
    graph_make(&shapes[1], &all.list[NSHAPES]);
    graph_make(&shapes[3], &all.list[NSHAPES + 1]);
    mlp_make(&all.list[NSHAPES + 2]);
    lists_make(&all.list[NSHAPES + 3]);
    norms_make(&all.list[NSHAPES + 4]);
    open_frozen(shapes, all.list + NSHAPES + 5);
    *state = &all;
    return 0;
}

static int close_models(void **state) {
    models *all = *state;
    for (int i = 0; i < NMODELS; i++) ls_model_free(&all->list[i]);
    for (int i = 0; i < NSHAPES; i++) ls_model_free(&all->matrices[i]);
    return 0;
}

/* Each worker has at least one virtual worker; the rest is drawn. */
static void pick_ranges(uint64_t seed, int n, int V, int *first) {
    for (int w = 0; w <= n; w++) first[w] = w;
    for (int left = V - n, i = 0; left > 0; left--, i++)
        for (int w = 1 + pick(seed, 100 + (uint64_t)i, n); w <= n; w++) first[w]++;
}

/* Random settings; first [MAX_WORKERS + 1]: the memory of their ranges. */
static ls_share_config pick_config(uint64_t seed, const models *m, int *first) {
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    ls_share_config c = {.model = &m->list[pick(seed, 0, NMODELS)],
                         .V = 1 + pick(seed, 1, MAX_V),
                         .tree = pick(seed, 2, 8) != 0,
                         .bucket_nbytes = (size_t)(1000 + pick(seed, 3, 20000)),
                         .zero = pick(seed, 4, 4),
                         .recompute = pick(seed, 5, 2) * pick(seed, 6, 6),
                         .recompute_layers = pick(seed, 7, 5),
                         .prefetch = pick(seed, 8, 4),
                         .early = pick(seed, 9, 4) == 0,
                         .whole_nbytes = (size_t)(pick(seed, 10, 3) * 3000),
                         .compute = types[pick(seed, 11, 3)],
                         .reduce = types[pick(seed, 12, 3)],
                         .noise = pick(seed, 26, 3) == 0};
    c.noise = c.noise && c.tree;
    if (pick(seed, 13, 2)) c.V = 1 << pick(seed, 14, 5);
    c.nworkers = 1 + pick(seed, 15, c.V < MAX_WORKERS ? c.V : MAX_WORKERS);
    if (pick(seed, 16, 2) && (c.V & (c.V - 1)) == 0)
        while (c.nworkers & (c.nworkers - 1)) c.nworkers--;
    int part = 1 + pick(seed, 17, 4);
    c.batch = part * c.V;
    c.micro_batch = 1 + pick(seed, 18, part);
    if (c.model == &m->list[NSHAPES + 4]) { /* batch norms */
        c.micro_batch = part;
        c.reduce = LS_F32;
    }
    if (c.zero && pick(seed, 19, 3) == 0) c.shards = 1 + pick(seed, 20, c.nworkers);
    if (c.tree && c.reduce == LS_F32 && pick(seed, 22, 2))
        c.compress = (ls_share_compress){.on = true,
                                         .how.feedback = (ls_feedback)pick(seed, 23, 3),
                                         .codes = pick(seed, 24, 4) > 0,
                                         .warmup = pick(seed, 25, 2),
                                         .min_count = 50};
    if (c.compress.on && !c.early && pick(seed, 26, 4) == 0) {
        c.compress.how = (ls_compression){.kind = LS_COMPRESS_POWERSGD, .rank = 1};
        c.compress.min_count = 10;
        c.model = &m->matrices[pick(seed, 27, NSHAPES)];
    }
    int64_t unit = ls_model_unit_samples(c.model, c.compute); /* of models of few rows */
    c.micro_batch = (c.micro_batch + unit - 1) / unit * unit;
    if (c.micro_batch > part) c.micro_batch = part;
    if (!c.early && !c.shards && pick(seed, 21, 3) == 0) {
        pick_ranges(seed, c.nworkers, c.V, first);
        c.first = first;
    }
    return c;
}

/* ---- good plans ---- */

/* Compares the bytes that are sent with the usual formulas: a worker sends 2(n-1)/n N bytes in an
 * all-reduce of N bytes, (n-1)/n N in a reduce-scatter or an all-gather. A worker that has several
 * sums of the tree sends them all; there is no formula for that. */
static void check_bytes(const ls_plan *p, const oracle_result *r, uint64_t seed) {
    const ls_share_config *c = p->share.config;
    int64_t n = c->nworkers, S = c->shards ? c->shards : n, R = n / S;
    int64_t floats = (int64_t)c->model->nfloats, rounds = c->early ? c->V / n : 1;
    int64_t grads = rounds * floats * (c->reduce == LS_F32 ? 4 : 2);
    int64_t params = floats * (c->compute == LS_F32 ? 4 : 2), sums = 0;
    for (int w = 0; w < n; w++) sums += ls_share_sums(&p->share, 0, w);
    int64_t each = c->model->weighing.ntargets ? 2 : 1; /* a loss; a weight */
    int64_t noise = c->noise ? c->V * 7 * (1 + 32) : 0; /* bins of squares, and of a projection */
    if (p->share.sends_codes) grads = 0;                /* the oracle has counted codes */
    bool good =
        r->scalars_nbytes == 2 * (n - 1) * 8 * (floats / LS_BLOCK + each * c->batch + noise + 1);
    if (sums == n && c->zero == 0) good = good && r->nbytes[LS_ALL_REDUCE] == 2 * (n - 1) * grads;
    if (sums == n && c->zero > 0)
        good = good && r->nbytes[LS_REDUCE_SCATTER] == R * (S - 1) * grads &&
               r->nbytes[LS_ALL_REDUCE] == 2 * (R - 1) * grads;
    if (sums > n && grads)
        good = good && r->nbytes[LS_REDUCE_SCATTER] + r->nbytes[LS_ALL_REDUCE] > 0;
    if (c->zero == 1 || c->zero == 2)
        good = good && r->nbytes[LS_ALL_GATHER] == R * (S - 1) * params;
    if (c->zero == 3 && S > 1) good = good && r->nbytes[LS_ALL_GATHER] >= R * (S - 1) * params;
    if (!good) fail_msg("seed %d: what is sent is not what the formulas say", (int)seed);
}

/* An order that the lanes allow: each worker has a place in each of its two lanes; any action that
 * may begin is next. */
typedef struct shuffle {
    const ls_plan *p;
    ls_lanes *lanes; /* [n] */
    int at[MAX_WORKERS][LS_NLANES];
} shuffle;

static bool is_ready(const shuffle *s, int w, int lane) {
    const ls_lanes *l = &s->lanes[w];
    int at = s->at[w][lane];
    return at < l->n[lane] && l->steps[lane][at].wait <= s->at[w][!lane];
}

/* Takes the next action of a lane, if it may begin; -1: it may not. */
static int take(shuffle *s, int w, int lane) {
    if (!is_ready(s, w, lane)) return -1;
    int action = s->lanes[w].steps[lane][s->at[w][lane]].action;
    if (s->p->actions[action].worker != LS_ALL_WORKERS) {
        s->at[w][lane]++;
        return action;
    }
    for (int i = 0; i < s->p->share.nworkers; i++)
        if (!is_ready(s, i, lane) || s->lanes[i].steps[lane][s->at[i][lane]].action != action)
            return -1;
    for (int i = 0; i < s->p->share.nworkers; i++) s->at[i][lane]++;
    return action;
}

static void shuffle_order(const ls_plan *p, uint64_t seed, int *order) {
    int n = p->share.nworkers, done = 0;
    shuffle s = {.p = p, .lanes = calloc((size_t)n, sizeof *s.lanes)};
    for (int w = 0; w < n; w++) ls_plan_project(p, w, &s.lanes[w]);
    for (uint64_t turn = 0; done < p->nactions; turn++) {
        int start = pick(seed, 1000 + turn, 2 * n), action = -1;
        for (int i = 0; i < 2 * n && action < 0; i++)
            action = take(&s, (start + i) % n, (start + i) / n % 2);
        if (action < 0) fail_msg("seed %d: no action may begin", (int)seed);
        order[done++] = action;
    }
    for (int w = 0; w < n; w++) ls_lanes_free(&s.lanes[w]);
    free(s.lanes);
}

static void test_random(void **state) {
    int made = 0, uneven = 0, sharded = 0, rounds = 0, compressed = 0;
    const int nseeds = ncases(FEW_SEEDS, NSEEDS);
    for (uint64_t seed = 0; seed < (uint64_t)nseeds; seed++) {
        int first[MAX_WORKERS + 1];
        ls_share_config c = pick_config(seed, *state, first);
        ls_plan p;
        ls_error e = {0};
        oracle_result r;
        if (ls_plan_make(&c, &p, &e) != LS_OK) {
            if (strncmp(e.msg, "parallel.", 9) != 0) fail_msg("seed %d: %s", (int)seed, e.msg);
            continue;
        }
        const char *bad = rules_check_answers(&p);
        if (bad) fail_msg("seed %d: %s()", (int)seed, bad);
        oracle_run(&p, NULL, &r);
        if (r.wrong[0]) fail_msg("seed %d: %s", (int)seed, r.wrong);
        check_bytes(&p, &r, seed);
        if (seed % 4 == 0) {
            int *order = calloc((size_t)p.nactions, sizeof *order);
            shuffle_order(&p, seed, order);
            oracle_run(&p, order, &r);
            if (r.wrong[0]) fail_msg("seed %d, in another order: %s", (int)seed, r.wrong);
            free(order);
        }
        made++;
        uneven += c.first != NULL;
        sharded += c.shards > 0 && c.shards < c.nworkers;
        rounds += c.early;
        compressed += c.compress.on;
        ls_plan_free(&p);
    }
    print_message(
        "%d plans: %d with given ranges, %d with several groups, %d of rounds, %d with codes\n",
        made, uneven, sharded, rounds, compressed);
    assert_true(made > nseeds / 2 && uneven > nseeds / 10 && compressed > nseeds / 20);
    assert_true(sharded > nseeds / 40 && rounds > nseeds / 40);
}

/* ---- plans with a fault ---- */

enum { MUTANT_SEEDS = 4000 };

typedef bool is_site(const ls_plan *, const ls_action *);

/* A random one of the actions that fit; -1: none fits. */
static int find(const ls_plan *p, uint64_t seed, is_site *fits) {
    int start = pick(seed, 50, p->nactions);
    for (int i = 0; i < p->nactions; i++) {
        int at = (start + i) % p->nactions;
        if (fits(p, &p->actions[at])) return at;
    }
    return -1;
}

static void drop(ls_plan *p, int at) {
    memmove(&p->actions[at], &p->actions[at + 1],
            (size_t)(p->nactions - at - 1) * sizeof *p->actions);
    p->nactions--;
}

static void insert(ls_plan *p, int at, ls_action a) {
    ls_plan_append(p, &a);
    memmove(&p->actions[at + 1], &p->actions[at],
            (size_t)(p->nactions - at - 1) * sizeof *p->actions);
    p->actions[at] = a;
}

/* Moves action `from` before action `to`. */
static void move(ls_plan *p, int from, int to) {
    ls_action a = p->actions[from];
    drop(p, from);
    insert(p, to > from ? to - 1 : to, a);
}

static bool is_reduction(const ls_plan *p, const ls_action *a) {
    (void)p;
    return a->kind == LS_REDUCE_SCATTER || a->kind == LS_ALL_REDUCE;
}
static bool is_comm(const ls_plan *p, const ls_action *a) {
    return a->worker == LS_ALL_WORKERS && p->share.nworkers > 1;
}
static bool is_kind(const ls_action *a, ls_action_kind kind) { return a->kind == kind; }
static bool is_load(const ls_plan *p, const ls_action *a) { return (void)p, is_kind(a, LS_LOAD); }
static bool is_forward(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_FORWARD);
}
static bool is_recompute(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_RECOMPUTE);
}
static bool is_backward(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_BACKWARD);
}
/* A layer without trained parameters has no sums. */
static bool is_summing(const ls_plan *p, const ls_action *a) {
    const ls_layer *l = &p->share.model->layers[a->layer];
    bool trained = false;
    for (int i = 0; i < l->nparams; i++) trained = trained || !l->link.frozen[i];
    return a->kind == LS_BACKWARD && trained;
}
/* An Add of an empty shard does nothing, and is left out. */
static bool is_add(const ls_plan *p, const ls_action *a) {
    if (a->kind != LS_ADD || !a->summed) return a->kind == LS_ADD;
    ls_range own = ls_share_shard(&p->share, a->bucket, a->worker);
    return own.end > own.first;
}
static bool is_squares(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_SQUARES);
}
static bool is_encode(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_ENCODE);
}
static bool is_exchange(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_EXCHANGE);
}
static bool is_decode(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_DECODE);
}
static bool is_norm(const ls_plan *p, const ls_action *a) { return (void)p, is_kind(a, LS_NORM); }
static bool is_update(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_UPDATE);
}
static bool is_gather(const ls_plan *p, const ls_action *a) {
    return p->share.nworkers > 1 && p->share.nshards > 1 && is_kind(a, LS_ALL_GATHER);
}
static bool is_free(const ls_plan *p, const ls_action *a) { return (void)p, is_kind(a, LS_FREE); }
static bool is_scalars(const ls_plan *p, const ls_action *a) {
    return (void)p, is_kind(a, LS_DECIDE);
}

static bool drop_one(ls_plan *p, uint64_t seed, is_site *fits) {
    int at = find(p, seed, fits);
    if (at >= 0) drop(p, at);
    return at >= 0;
}
static bool repeat_one(ls_plan *p, uint64_t seed, is_site *fits) {
    int at = find(p, seed, fits);
    if (at >= 0) insert(p, at, p->actions[at]);
    return at >= 0;
}

static bool no_load(ls_plan *p, uint64_t s) { return drop_one(p, s, is_load); }
static bool no_forward(ls_plan *p, uint64_t s) { return drop_one(p, s, is_forward); }
static bool no_recompute(ls_plan *p, uint64_t s) { return drop_one(p, s, is_recompute); }
static bool no_backward(ls_plan *p, uint64_t s) { return drop_one(p, s, is_backward); }
static bool no_fold(ls_plan *p, uint64_t s) { return drop_one(p, s, is_add); }
static bool no_squares(ls_plan *p, uint64_t s) { return drop_one(p, s, is_squares); }
static bool no_encode(ls_plan *p, uint64_t s) { return drop_one(p, s, is_encode); }
static bool no_exchange(ls_plan *p, uint64_t s) { return drop_one(p, s, is_exchange); }
static bool no_decode(ls_plan *p, uint64_t s) { return drop_one(p, s, is_decode); }
static bool no_reduction(ls_plan *p, uint64_t s) { return drop_one(p, s, is_reduction); }
static bool no_norm(ls_plan *p, uint64_t s) { return drop_one(p, s, is_norm); }
static bool no_scalars(ls_plan *p, uint64_t s) { return drop_one(p, s, is_scalars); }
static bool no_update(ls_plan *p, uint64_t s) { return drop_one(p, s, is_update); }
static bool no_gather(ls_plan *p, uint64_t s) { return drop_one(p, s, is_gather); }
static bool no_free(ls_plan *p, uint64_t s) { return drop_one(p, s, is_free); }
static bool two_backwards(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_backward); }
static bool two_squares(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_squares); }
static bool two_encodes(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_encode); }
static bool two_exchanges(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_exchange); }
static bool two_decodes(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_decode); }
static bool two_folds(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_add); }
static bool two_reductions(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_reduction); }
static bool two_updates(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_update); }
static bool two_gathers(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_gather); }
static bool two_frees(ls_plan *p, uint64_t s) { return repeat_one(p, s, is_free); }

/* The one after the next of a worker's calls comes before it. */
static bool swap_calls(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_forward), next = at + 1;
    if (at < 0) return false;
    while (p->actions[next].kind > LS_BACKWARD || p->actions[next].worker != p->actions[at].worker)
        next++;
    ls_action a = p->actions[at];
    const ls_layer *reader = &p->share.model->layers[p->actions[next].layer];
    bool reads = false;
    for (int k = 0; k < reader->ninputs; k++) reads = reads || reader->inputs[k] == a.layer;
    if (!reads) return false; /* their order does not matter */
    p->actions[at] = p->actions[next];
    p->actions[next] = a;
    return true;
}

static bool swap_micros(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_backward);
    for (int i = at < 0 ? 0 : at; at >= 0 && i < p->nactions; i++) {
        ls_action *a = &p->actions[at], *b = &p->actions[i];
        if (b->kind != LS_BACKWARD || b->layer != a->layer || b->vw != a->vw) continue;
        if (b->micro == a->micro) continue;
        int micro = a->micro;
        a->micro = b->micro;
        b->micro = micro;
        return true;
    }
    return false;
}

static bool other_vw(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, pick(seed, 51, 2) ? is_forward : is_backward);
    if (p->share.V < 2) return false;
    p->actions[at].vw = (p->actions[at].vw + 1) % p->share.V;
    return true;
}

static bool other_owner(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_update);
    if (p->share.nworkers < 2) return false;
    p->actions[at].worker = (p->actions[at].worker + 1) % p->share.nworkers;
    return true;
}

static bool other_bytes(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_comm);
    if (at < 0) return false;
    p->actions[at].comm.nbytes += pick(seed, 51, 2) ? 4 : -4;
    return true;
}

/* A worker sends 16 bits an element, the other expects 32. */
static bool other_dtype(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_comm);
    if (at < 0 || p->actions[at].comm.nbytes == 0) return false;
    p->actions[at].comm.nbytes *= 2;
    return true;
}

static bool other_bucket(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_reduction);
    if (at < 0 || p->share.nbuckets < 2) return false;
    p->actions[at].bucket = (p->actions[at].bucket + 1) % p->share.nbuckets;
    return true;
}

/* Two buckets share a block, or leave one out. */
static bool gap(ls_plan *p, uint64_t seed) {
    ls_bucket *b = &p->share.buckets[pick(seed, 51, p->share.nbuckets)];
    b->end += pick(seed, 52, 2) ? LS_BLOCK : (size_t)-LS_BLOCK;
    return true;
}

static bool other_cut(ls_plan *p, uint64_t seed) {
    int k = pick(seed, 51, p->share.nbuckets);
    if (k == p->share.nbuckets - 1) return false;
    p->share.buckets[k].first -= LS_BLOCK;
    p->share.buckets[k + 1].end -= LS_BLOCK;
    return true;
}

static bool other_sum(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_summing);
    if (p->share.nslots < 2) return false;
    p->actions[at].slot = (p->actions[at].slot + 1) % p->share.nslots;
    return true;
}

static bool other_fold(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_add);
    if (at >= 0) p->actions[at].slot++;
    return at >= 0;
}

static bool other_start(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_summing);
    p->actions[at].start = !p->actions[at].start;
    return true;
}

static bool other_last(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_backward);
    p->actions[at].last = !p->actions[at].last;
    return true;
}

static bool other_axis(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_comm);
    if (at < 0) return false;
    p->actions[at].comm.axis = (p->actions[at].comm.axis + 1 + (ls_axis)pick(seed, 51, 2)) % 3;
    return true;
}

/* The last worker is left out. */
static bool fewer_workers(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_comm);
    if (at < 0) return false;
    p->actions[at].comm.of.to--;
    return true;
}

static bool other_kind(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_reduction);
    if (at < 0) return false;
    ls_action *a = &p->actions[at];
    a->kind = a->kind == LS_ALL_REDUCE ? LS_REDUCE_SCATTER : LS_ALL_REDUCE;
    return true;
}

static bool other_round(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_reduction);
    if (at < 0) return false;
    p->actions[at].round++;
    return true;
}

static bool other_place(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_reduction);
    if (at < 0) return false;
    p->actions[at].slot++;
    return true;
}

/* Before the latest Backward that writes the bucket. */
static bool early_reduction(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_reduction), to = at;
    rules u = rules_of(p);
    if (at < 0 || p->actions[at].comm.axis == LS_AXIS_REPLICAS) return false;
    while (to >= 0 && (p->actions[to].kind != LS_BACKWARD ||
                       !rules_touches(&u, p->actions[to].layer, p->actions[at].bucket)))
        to--;
    if (to < 0) return false; /* padding alone */
    move(p, at, to);
    return true;
}

static bool early_update(ls_plan *p, uint64_t seed) {
    move(p, find(p, seed, is_update), find(p, seed, is_scalars));
    return true;
}

static bool early_scalars(ls_plan *p, uint64_t seed) {
    move(p, find(p, seed, is_scalars), find(p, seed, is_norm));
    return true;
}

/* Before an Update of its bucket. */
static bool early_gather(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_gather), to = at;
    if (at < 0 || p->share.buckets[p->actions[at].bucket].is_gathered) return false;
    while (p->actions[to].kind != LS_UPDATE) to--;
    move(p, at, to);
    return true;
}

/* Before what used it last. */
static bool early_free(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_free), to = at;
    if (at < 0) return false;
    while (p->actions[to].kind == LS_FREE) to--;
    move(p, at, to);
    return true;
}

static bool late_free(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_free);
    if (at < 0 || p->actions[p->nactions - 1].kind == LS_FREE) return false;
    move(p, at, p->nactions);
    return true;
}

static bool other_free(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_free);
    if (at < 0) return false;
    p->actions[at].buffer = (p->actions[at].buffer + 1) % ls_plan_nbuffers(p);
    return true;
}

/* Sharded parameters come two rounds of calls too soon. */
static bool soon_gather(ls_plan *p, uint64_t seed) {
    int at = find(p, seed, is_gather), to = at, calls = 0;
    if (at < 0 || !p->share.buckets[p->actions[at].bucket].is_gathered) return false;
    while (to > 0 && calls <= 2 * p->share.nworkers) {
        ls_action_kind kind = p->actions[--to].kind;
        calls += kind == LS_FORWARD || kind == LS_RECOMPUTE || kind == LS_BACKWARD;
    }
    if (calls <= 2 * p->share.nworkers) return false;
    move(p, at, to);
    return true;
}

static const struct {
    const char *name;
    bool (*apply)(ls_plan *, uint64_t seed); /* false: the plan has no place for it */
    bool memory; /* costs only memory or time: the verifier need not find it */
} mutants[] = {
    {"no Load", no_load, false},
    {"no Forward", no_forward, false},
    {"no Recompute", no_recompute, false},
    {"no Backward", no_backward, false},
    {"no Squares", no_squares, false},
    {"no Encode", no_encode, false},
    {"no Exchange", no_exchange, false},
    {"no Decode", no_decode, false},
    {"no Add", no_fold, false},
    {"no reduction", no_reduction, false},
    {"no Norm", no_norm, false},
    {"no norm over workers", no_scalars, false},
    {"no Update", no_update, false},
    {"no AllGather", no_gather, false},
    {"no Free", no_free, false},
    {"two Backwards", two_backwards, false},
    {"two Squares", two_squares, false},
    {"two Encodes", two_encodes, false},
    {"two Exchanges", two_exchanges, false},
    {"two Decodes", two_decodes, false},
    {"two Adds", two_folds, false},
    {"two reductions", two_reductions, false},
    {"two Updates", two_updates, false},
    {"two AllGathers", two_gathers, false},
    {"two Frees", two_frees, false},
    {"two calls of a worker change places", swap_calls, false},
    {"two micro-batches change places", swap_micros, false},
    {"another virtual worker", other_vw, false},
    {"Update by another worker", other_owner, false},
    {"other bytes", other_bytes, false},
    {"bytes of another dtype", other_dtype, false},
    {"reduction of another bucket", other_bucket, false},
    {"buckets do not join", gap, false},
    {"buckets are cut elsewhere", other_cut, false},
    {"Backward into another sum", other_sum, false},
    {"Add of other sums", other_fold, false},
    {"a chain starts, or continues, wrongly", other_start, false},
    {"another last micro-batch", other_last, false},
    {"other participants", other_axis, false},
    {"fewer participants", fewer_workers, false},
    {"AllReduce for ReduceScatter, or back", other_kind, false},
    {"another round", other_round, false},
    {"the sum goes elsewhere", other_place, false},
    {"reduction before a Backward", early_reduction, false},
    {"Update before the norm", early_update, false},
    {"norm over workers before a Norm", early_scalars, false},
    {"AllGather before an Update", early_gather, false},
    {"Free before the last use", early_free, false},
    {"Free of another buffer", other_free, false},
    {"Free later than it could be", late_free, true},
    {"AllGather sooner than `prefetch`", soon_gather, true},
};

enum { NMUTANTS = sizeof mutants / sizeof *mutants };

/* Applies a mutant to a plan that has a place for it: oracle and verifier must find the fault. */
static void try_mutant(int i, const ls_share_config *c, uint64_t seed, int *tried, int *verified) {
    ls_plan p;
    ls_error e = {0};
    oracle_result r;
    assert_ls_ok(ls_plan_make(c, &p, &e), e);
    if (mutants[i].apply(&p, seed)) {
        bool seen = ls_plan_verify(&p, LS_STAGE_WHOLE, &e) != LS_OK;
        oracle_run(&p, NULL, &r);
        if (!r.wrong[0])
            fail_msg("%s, seed %d: the oracle finds no fault", mutants[i].name, (int)seed);
        if (!seen && !mutants[i].memory)
            fail_msg("%s, seed %d: the verifier does not find what the oracle finds: %s",
                     mutants[i].name, (int)seed, r.wrong);
        ++*tried;
        *verified += seen;
    }
    ls_plan_free(&p);
}

static void test_mutants(void **state) {
    int tried[NMUTANTS] = {0}, verified[NMUTANTS] = {0};
    for (uint64_t seed = 0; seed < MUTANT_SEEDS; seed++) {
        int first[MAX_WORKERS + 1];
        ls_share_config c = pick_config(seed, *state, first);
        ls_plan p;
        ls_error e;
        if (ls_plan_make(&c, &p, &e) != LS_OK) continue;
        ls_plan_free(&p);
        for (int i = (int)(seed % 4); i < NMUTANTS; i += 4)
            if (tried[i] < SITES) try_mutant(i, &c, seed, &tried[i], &verified[i]);
    }
    for (int i = 0; i < NMUTANTS; i++) {
        print_message("%-40s %d plans, the verifier finds %d\n", mutants[i].name, tried[i],
                      verified[i]);
        assert_int_equal(tried[i], SITES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                       plain_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, open_models, close_models);
}
