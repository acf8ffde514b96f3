/* sim_test.c - predicted steps of small plans on a machine with round numbers, against sums worked
 * out by hand. */
#include "perf/sim.h"

#include <math.h>
#include <string.h>

#include "mlp_model.h"
#include "networks/gpt2.h"
#include "perf/round_machine.h"
#include "share/config.h"
#include "test.h"

static void make_model(int64_t layers, int64_t width, ls_model *m) {
    ls_gpt_config c = {.layers = layers, .width = width, .heads = 2, .context = 4, .vocab = 256};
    ls_error e;
    assert_ls_ok(ls_gpt_create(&c, m, &e), e);
}

typedef struct setting {
    int n, V, zero, recompute;
    int64_t part; /* samples of a virtual worker */
    bool untree;
    size_t bucket;
    ls_dtype compute, reduce; /* 0: f32 */
} setting;

static ls_plan make(const ls_model *m, const setting *s) {
    ls_share_config c = {.model = m,
                         .nworkers = s->n,
                         .V = s->V,
                         .batch = (s->part ? s->part : 1) * s->V,
                         .micro_batch = 1,
                         .tree = !s->untree,
                         .bucket_nbytes = s->bucket ? s->bucket : 1 << 20,
                         .zero = s->zero,
                         .recompute = s->recompute,
                         .prefetch = 1,
                         .compute = s->compute ? s->compute : LS_F32,
                         .reduce = s->reduce ? s->reduce : LS_F32};
    ls_plan p;
    ls_error e;
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    return p;
}

static ls_site site_of(int host_workers) {
    return (ls_site){.machine = &machine,
                     .host_workers = host_workers,
                     .shared = host_workers == 0,
                     .threads = 1,
                     .one = host_workers == 0};
}

static ls_sim simulate(const ls_plan *p, const ls_site *site) {
    ls_sim s;
    ls_error e;
    assert_ls_ok(ls_sim_run(p, site, false, &s, &e), e);
    return s;
}

static double step_of(const ls_plan *p, const ls_site *site) {
    ls_sim s = simulate(p, site);
    double step_s = s.step_s;
    ls_sim_free(&s);
    return step_s;
}

/* In nanoseconds: all prices here are whole numbers of them. */
static void assert_ns(double seconds, double ns) {
    if (fabs(seconds * 1e9 - ns) > 1e-3) {
        print_error("%.6f ns, expected %.6f\n", seconds * 1e9, ns);
        fail();
    }
}

/* One block of width 8 with 2 heads, 4 positions, 256 words: operations and elements, by hand. */
enum {
    EMBED = 4 * 8,
    EMBED_BACK = 2 * EMBED,
    NORM = 4 * 8,
    NORM_BACK = 2 * NORM,
    QKV = 2 * 4 * 8 * 24,
    OUT = 2 * 4 * 8 * 8,
    SCORES = 2 * 2 * 4 * 4 * 4, /* of both heads; mixing takes as many */
    SEEN = 2 * (4 + 3 + 2 + 1),
    ATT = NORM + QKV + SCORES + SEEN + SCORES + OUT + 4 * 8,
    ATT_BACK = NORM_BACK + 2 * QKV + 4 * 24 + 2 * OUT + 4 * 8 + 5 * SCORES + 2 * SEEN,
    WIDE = 2 * 4 * 8 * 32,
    MLP = NORM + 2 * WIDE + 4 * 32 + 4 * 8,
    MLP_BACK = NORM_BACK + 4 * WIDE + 4 * 32 + 4 * 8 + 4 * 32,
    LOGITS = 2 * 4 * 8 * 256,
    HEAD = NORM + LOGITS + 4 * 256,
    HEAD_BACK = NORM_BACK + 2 * LOGITS + 4 * 256,
    FLOATS = 3 * 1024, /* 2968 parameters and padding */
    SAMPLE = EMBED + ATT + MLP + HEAD + HEAD_BACK + MLP_BACK + ATT_BACK + EMBED_BACK,
    SHARED = 1000 /* per call of two workers */
};

static void test_one(void **state) {
    (void)state;
    ls_model m;
    make_model(1, 8, &m);
    assert_int_equal(m.nfloats, FLOATS);
    ls_site site = site_of(0);
    for (int64_t part = 1; part <= 3; part++) {
        ls_plan p = make(&m, &(setting){.n = 1, .V = 1, .part = part});
        ls_sim s = simulate(&p, &site);
        assert_ns(s.step_s, (double)part * SAMPLE + 2 * FLOATS); /* norm, update */
        assert_ns(s.exposed_s, 0);
        assert_int_equal(s.nspans, p.nactions);
        ls_sim_free(&s);
        ls_plan_free(&p);
    }
    /* Two virtual workers: a fold of the tree. */
    ls_plan p = make(&m, &(setting){.n = 1, .V = 2});
    ls_sim s = simulate(&p, &site);
    assert_ns(s.step_s, 2 * SAMPLE + 3 * FLOATS);
    ls_sim_free(&s);
    ls_plan_free(&p);
    /* Attention and MLP are recomputed before their backward. */
    p = make(&m, &(setting){.n = 1, .V = 1, .recompute = 2});
    s = simulate(&p, &site);
    assert_ns(s.step_s, SAMPLE + ATT + MLP + 2 * FLOATS);
    ls_sim_free(&s);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* A graph: input -> fc1 -> gelu -> fc2, and the sum of both -> fc3 -> loss (mlp_model.h). Nothing
 * computes the gradient of the input. */
static void test_graph(void **state) {
    (void)state;
    ls_model m;
    mlp_make(&m);
    enum { IN = 2 * 13 * 20, MIDDLE = 2 * 20 * 20, LAST = 2 * 20 * 7 };
    double forward = 13 + IN + 20 + MIDDLE + 20 + LAST;
    double backward = 2 * 7 + 2 * LAST + 7 + 2 * 20 + 2 * MIDDLE + 20 + 20 + IN + 20;
    ls_site site = site_of(0);
    for (int64_t part = 1; part <= 3; part++) {
        ls_plan p = make(&m, &(setting){.n = 1, .V = 1, .part = part});
        ls_sim s = simulate(&p, &site);
        assert_ns(s.step_s, (double)part * (forward + backward) + 2 * (double)m.nfloats);
        ls_sim_free(&s);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* In bf16 products have speeds of their own; convolutions stay in f32. */
static void test_bf16(void **state) {
    (void)state;
    enum {
        ATT_PRODUCTS = 3 * (QKV + OUT) + 7 * SCORES,
        PRODUCTS = ATT_PRODUCTS + 3 * 2 * WIDE + 3 * LOGITS
    };
    ls_model m;
    ls_machine half = machine;
    ls_speed twice = {2e9, 2e9};
    for (int k = LS_WORK_PRODUCT_BF16; k < LS_NPRODUCTS; k++) half.speeds[k].points = &twice;
    ls_site site = site_of(0), fast = site;
    fast.machine = &half;
    make_model(1, 8, &m);
    ls_plan p = make(&m, &(setting){.n = 1, .V = 1});
    ls_plan bf16 = make(&m, &(setting){.n = 1, .V = 1, .compute = LS_BF16});
    double exact = step_of(&p, &site), slow = step_of(&bf16, &site);
    assert_ns(step_of(&p, &fast), exact * 1e9);
    assert_true(slow > exact); /* conversions */
    assert_ns(step_of(&bf16, &fast), slow * 1e9 - PRODUCTS / 2.0);
    ls_plan_free(&p);
    ls_plan_free(&bf16);
    /* conversions alone: the weights that the update rounds are the last */
    ls_speed none = {1e30, 1e30};
    half = machine;
    half.speeds[LS_WORK_WIDEN].points = half.speeds[LS_WORK_NARROW].points = &none;
    for (int t = LS_BF16; t <= LS_F16; t++) {
        p = make(&m, &(setting){.n = 1, .V = 1, .compute = (ls_dtype)t, .reduce = (ls_dtype)t});
        assert_ns(step_of(&p, &fast), exact * 1e9);
        assert_true(step_of(&p, &site) > exact);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

static void test_convolution(void **state) {
    (void)state;
    ls_error e = {0};
    ls_model m = {0};
    ls_value *x = ls_input(&m, "image", LS_F32, LS_DIMS(5, 5, 3));
    ls_value *class = ls_input(&m, "class", LS_I32, LS_SCALAR);
    x = ls_reshape(&m, ls_conv2d(&m, x, .channels = 4, .kernel = 3), LS_DIMS(25, 4));
    ls_cross_entropy(&m, ls_mean(&m, x, 0), class, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    ls_machine fast = machine;
    ls_speed twice = {2e9, 2e9};
    for (int k = LS_WORK_PRODUCT_BF16; k < LS_NPRODUCTS; k++) fast.speeds[k].points = &twice;
    ls_site site = site_of(0);
    ls_plan p = make(&m, &(setting){.n = 1, .V = 1, .compute = LS_BF16});
    double slow = step_of(&p, &site);
    site.machine = &fast;
    assert_ns(step_of(&p, &site), slow * 1e9);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Threads split wide operations; the heads are divided among them. */
static void test_threads(void **state) {
    (void)state;
    ls_model m;
    make_model(1, 8, &m);
    ls_site site = site_of(0);
    site.threads = 2;
    ls_plan p = make(&m, &(setting){.n = 1, .V = 1});
    ls_sim s = simulate(&p, &site);
    assert_ns(s.step_s, (SAMPLE + 2 * FLOATS) / 2.0);
    ls_sim_free(&s);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Scalars: norms of 3 blocks and 2 losses, 8 bytes each, half of them each worker's. */
enum { SCALARS = SHARED + 6 * 4 * 2 + 6 * 4, HALF = FLOATS * 4 / 2 };

static void test_shared(void **state) {
    (void)state;
    ls_model m;
    make_model(1, 8, &m);
    ls_site site = site_of(0);
    /* All-reduce: each adds its half of two, and writes it to the other; then all is updated. The
     * larger shard has two of three blocks. */
    ls_plan p = make(&m, &(setting){.n = 2, .V = 2, .zero = 0});
    ls_sim s = simulate(&p, &site);
    assert_ns(s.exposed_s, SHARED + 3 * HALF + SCALARS);
    assert_ns(s.step_s, SAMPLE + SHARED + 3 * HALF + 2048 + SCALARS + FLOATS);
    assert_ns(s.comm_s, s.exposed_s * 1e9);
    ls_sim_free(&s);
    ls_plan_free(&p);
    /* Shards: sums go to their owner, parameters are one copy. */
    p = make(&m, &(setting){.n = 2, .V = 2, .zero = 1});
    s = simulate(&p, &site);
    assert_ns(s.step_s, SAMPLE + SHARED + 2 * HALF + 2048 + SCALARS + 2048 + SHARED);
    ls_sim_free(&s);
    site.one = false; /* the other's half is copied */
    s = simulate(&p, &site);
    assert_ns(s.step_s, SAMPLE + SHARED + 2 * HALF + 2048 + SCALARS + 2048 + SHARED + HALF);
    ls_sim_free(&s);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Eight workers on four cores: everything takes twice as long. */
static void test_crowd(void **state) {
    (void)state;
    ls_model m;
    make_model(1, 8, &m);
    ls_site site = site_of(0);
    ls_plan p = make(&m, &(setting){.n = 8, .V = 8, .zero = 0});
    ls_sim s = simulate(&p, &site);
    assert_ns(s.compute_s, 2 * (SAMPLE + 1024 + FLOATS));
    ls_sim_free(&s);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Two layers, small buckets, a slow card: from the first bucket on, communication never pauses; it
 * continues beside computation if it has a thread. */
static void test_overlap(void **state) {
    (void)state;
    ls_model m;
    make_model(2, 8, &m);
    ls_plan p = make(&m, &(setting){.n = 2, .V = 2, .bucket = 4096});
    ls_site site = site_of(1);
    site.byte_s = 1e-6;
    site.algorithm = "direct";
    site.overlap = true;
    double floats = (double)m.nfloats, later = HEAD_BACK;
    /* The last bucket ends with the last block's MLP, or with its attention. */
    int writer = p.share.buckets[0].writer;
    assert_true(writer == 3 || writer == 4);
    later += MLP_BACK + (writer == 3 ? ATT_BACK : 0);
    double forward = EMBED + 2 * ATT + 2 * MLP + HEAD;
    /* A bucket's vector once through the card, there and back, at a chain and a card that are the
     * same: a quarter more. */
    double sums = 1.25 * floats * 4 * 1000, scalars = 1.25 * 8 * (floats / 1024 + 2 + 1) * 1000;
    double shard = 0;
    for (int k = 0; k < p.share.nbuckets; k++) {
        ls_range b = ls_share_shard(&p.share, k, 1);
        shard += (double)(b.end - b.first);
    }
    ls_sim s = simulate(&p, &site);
    assert_ns(s.step_s, forward + later + sums + shard + scalars + floats);
    double overlapped = s.step_s;
    ls_sim_free(&s);
    /* One thread: no communication needs it, so nothing changes. */
    site.overlap = false;
    s = simulate(&p, &site);
    assert_true(s.step_s >= overlapped);
    assert_true(s.step_s <= s.compute_s + s.comm_s + 1e-12);
    ls_sim_free(&s);
    /* A fast card hides all but the last bucket's and the scalars' communication. */
    site.overlap = true;
    site.byte_s = 1e-12;
    s = simulate(&p, &site);
    assert_true(s.exposed_s < 1e-7);
    ls_sim_free(&s);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* Where two threads a worker are more than the cores, both lanes run at half speed while they
 * run at once. */
static void test_crowded_lanes(void **state) {
    (void)state;
    ls_model m;
    make_model(2, 8, &m);
    ls_plan p = make(&m, &(setting){.n = 4, .V = 4, .bucket = 4096});
    ls_machine eight = machine; /* as fast, with twice as many cores */
    eight.cores = 8;
    ls_site site = site_of(0);
    double step_s[2][2]; /* [overlap][cores: 4, 8] */
    for (int overlap = 0; overlap <= 1; overlap++)
        for (int free = 0; free <= 1; free++) {
            site.overlap = overlap;
            site.machine = free ? &eight : &machine;
            ls_sim s = simulate(&p, &site);
            step_s[overlap][free] = s.step_s;
            ls_sim_free(&s);
        }
    assert_ns(step_s[0][0], step_s[0][1] * 1e9);
    assert_true(step_s[1][1] < step_s[1][0]);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* The time of the largest communication alone, in times of a byte, for the hosts' cards. */
static double card_time(int n, int host, const char *algorithm, bool untree) {
    ls_model m;
    make_model(1, 8, &m);
    ls_plan p = make(&m, &(setting){.n = n, .V = n, .untree = untree});
    ls_site site = site_of(host);
    ls_pricer pricer;
    ls_error e;
    double most = 0;
    site.byte_s = 1e-6;
    site.algorithm = algorithm;
    assert_ls_ok(ls_pricer_open(&p, &site, &pricer, &e), e);
    for (int i = 0; i < p.nactions; i++) {
        ls_price x = ls_price_action(&pricer, &p.actions[i], 0);
        if (p.actions[i].worker == LS_ALL_WORKERS && x.wire_s > most) most = x.wire_s;
    }
    ls_plan_free(&p);
    ls_model_free(&m);
    return most / (FLOATS * 4 * 1e-6);
}

static void assert_close(double a, double b) { assert_true(fabs(a - b) < 1e-9 * b); }

static void test_card(void **state) {
    (void)state;
    /* Direct, 4 workers: each sends 3/4 twice. Where two share a card, 2 of each one's 3 messages
     * go through it. Both bounds count: the longer, and a quarter of the shorter. */
    assert_close(card_time(4, 1, "direct", false), 1.5 + 0.25 * 1.5);
    assert_close(card_time(4, 2, "direct", false), 1.5 * 4 / 3 + 0.25 * 1.5);
    /* A ring crosses a card once, however many are on the host. */
    assert_close(card_time(4, 2, "ring", true), 1.5 + 0.25 * 1.5);
    assert_close(card_time(8, 4, "ring", true), 1.75 + 0.25 * 1.75);
    /* Between hosts each part once there and back; inside, links are free. */
    assert_close(card_time(8, 4, "hierarchical", true), 1);
    assert_true(card_time(8, 4, "direct", true) > 2 * card_time(8, 4, "ring", true));
    /* Four hosts of one worker, chosen: no worse than direct. */
    assert_true(card_time(4, 1, NULL, false) <= 1.875 + 1e-9);
}

static void test_kinds(void **state) {
    (void)state;
    ls_model m;
    make_model(1, 8, &m);
    ls_site site = site_of(0);
    const struct {
        int n, V, followed;
    } cases[] = {{1, 1, 1}, {2, 3, 2}, {4, 4, 1}, {5, 8, 2}, {1024, 1024, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_plan p = make(&m, &(setting){.n = cases[i].n, .V = cases[i].V, .zero = 3});
        ls_sim s = simulate(&p, &site);
        assert_in_range(s.nfollowed, cases[i].followed, cases[i].followed + 1);
        assert_true(s.step_s > 0 && s.exposed_s >= -1e-12 && s.exposed_s < s.step_s);
        ls_sim_free(&s);
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

/* The spans of every worker: each lane in order, no action before those that it waits for. */
static void check_spans(const ls_plan *p, const ls_sim *s, int worker) {
    ls_lanes lanes;
    int64_t *ends[LS_NLANES];
    int n[LS_NLANES] = {0};
    ls_plan_project(p, worker, &lanes);
    for (int l = 0; l < LS_NLANES; l++) ends[l] = LS_NEW_ARRAY(int64_t, (size_t)lanes.n[l] + 1);
    for (int i = 0; i < s->nspans; i++) {
        const ls_span *x = &s->spans[i];
        if (x->worker != worker) continue;
        int at = n[x->lane]++;
        assert_int_equal(x->action, lanes.steps[x->lane][at].action);
        assert_true(x->begin_ns <= x->end_ns);
        if (at) assert_true(x->begin_ns >= ends[x->lane][at - 1]);
        ends[x->lane][at] = x->end_ns;
    }
    for (int i = 0, k[LS_NLANES] = {0}; i < s->nspans; i++) {
        const ls_span *x = &s->spans[i];
        if (x->worker != worker) continue;
        int wait = lanes.steps[x->lane][k[x->lane]++].wait;
        if (wait) assert_true(x->begin_ns >= ends[!x->lane][wait - 1]);
    }
    for (int l = 0; l < LS_NLANES; l++) {
        assert_int_equal(n[l], lanes.n[l]);
        free(ends[l]);
    }
    ls_lanes_free(&lanes);
}

static void test_spans(void **state) {
    (void)state;
    ls_model m;
    ls_error e;
    make_model(2, 8, &m);
    for (int zero = 0; zero <= 3; zero++)
        for (int n = 1; n <= 5; n++)
            for (int overlap = 0; overlap <= 1; overlap++) {
                ls_plan p =
                    make(&m, &(setting){.n = n, .V = 5, .zero = zero, .bucket = 8192, .part = 2});
                ls_site site = site_of(n > 2 ? 1 : 0);
                ls_sim s;
                site.byte_s = 1e-9;
                site.overlap = overlap;
                assert_ls_ok(ls_sim_run(&p, &site, true, &s, &e), e);
                assert_int_equal(s.nfollowed, n);
                for (int w = 0; w < n; w++) check_spans(&p, &s, w);
                ls_sim_free(&s);
                ls_plan_free(&p);
            }
    ls_model_free(&m);
}

/* A faster card, or fewer workers at it, never makes a step longer. */
static void test_monotone(void **state) {
    (void)state;
    ls_model m;
    make_model(2, 8, &m);
    for (int zero = 0; zero <= 3; zero++) {
        ls_plan p = make(&m, &(setting){.n = 8, .V = 8, .zero = zero, .bucket = 8192});
        double before = INFINITY;
        for (double byte_s = 1e-6; byte_s > 1e-13; byte_s /= 10) {
            ls_site site = site_of(1);
            site.byte_s = byte_s;
            site.overlap = true;
            ls_sim s = simulate(&p, &site);
            assert_true(s.step_s <= before * (1 + 1e-9));
            before = s.step_s;
            ls_sim_free(&s);
        }
        ls_plan_free(&p);
    }
    ls_model_free(&m);
}

static void test_hosts(void **state) {
    (void)state;
    ls_model m;
    ls_sim s;
    ls_error e;
    make_model(1, 8, &m);
    ls_plan p = make(&m, &(setting){.n = 8, .V = 8});
    ls_site site = site_of(3);
    assert_ls_fails(ls_sim_run(&p, &site, false, &s, &e), LS_EINVAL,
                    "8 workers don't fill a whole number of hosts with 3 workers each", e);
    ls_plan_free(&p);
    ls_model_free(&m);
}

/* ---- pipelines ---- */

/* Seconds of a pass through a stage. */
static double pass_s(const ls_plan *p, const ls_site *site, int stage, bool backward) {
    ls_pricer pricer;
    ls_error e;
    double sum = 0;
    assert_ls_ok(ls_pricer_open(p, site, &pricer, &e), e);
    for (int i = 0; i < p->nactions; i++) {
        const ls_action *a = &p->actions[i];
        bool call = a->kind == (backward ? LS_BACKWARD : LS_FORWARD);
        if (call && p->share.stage_of[a->layer] == stage && a->vw == 0 && a->micro <= 0)
            sum += ls_price_action(&pricer, a, a->worker).cpu_s;
    }
    return sum;
}

/* When the last pass ends, if each begins as soon as its worker and its input are there. */
static double passes_s(const ls_plan *p, const ls_site *site, int micros) {
    enum { MOST = 4, MICROS = 16 };
    ls_pipe_schedule s = {p->share.config->schedule, p->share.config->pipe, 1, micros};
    ls_pass lists[MOST][2 * MICROS];
    double done[2][MOST][MICROS], free_at[MOST] = {0}, last = 0;
    int at[MOST] = {0};
    memset(done, 0, sizeof done);
    for (int r = 0; r < s.workers; r++) ls_pipe_list(&s, r, lists[r]);
    for (int left = 2 * micros * s.workers; left > 0;)
        for (int r = 0; r < s.workers; r++) {
            if (at[r] == 2 * micros) continue;
            ls_pass x = lists[r][at[r]];
            int end = s.workers - 1;
            double ready = x.backward ? done[r < end][r < end ? r + 1 : r][x.micro]
                           : r > 0    ? done[0][r - 1][x.micro]
                                      : 1e-30;
            if (ready == 0) continue;
            double begin = fmax(ready, free_at[r]);
            free_at[r] = begin + pass_s(p, site, r, x.backward);
            done[x.backward][r][x.micro] = free_at[r];
            last = fmax(last, free_at[r]);
            at[r]++;
            left--;
        }
    return last;
}

/* Compares the least and the most computing time of the three workers. */
static void check_computing(const ls_sim *sim) {
    double seconds[3] = {0}, least = INFINITY, most = 0;
    for (int i = 0; i < sim->nspans; i++) {
        const ls_span *x = &sim->spans[i];
        if (x->lane == LS_LANE_COMPUTE)
            seconds[x->worker] += (double)(x->end_ns - x->begin_ns) / 1e9;
    }
    for (int i = 0; i < 3; i++) {
        least = fmin(least, seconds[i]);
        most = fmax(most, seconds[i]);
    }
    assert_true(fabs(sim->least_s - least) < 1e-3 * least);
    assert_true(fabs(sim->most_s - most) < 1e-3 * most);
    assert_true(sim->most_s < sim->step_s && sim->least_s < sim->most_s);
}

/* The simulated passes take as long as their schedule says: messages and what follows the passes
 * add little, as a layer is large here. With more micro-batches the bubble is a smaller part. */
static void test_pipelines(void **state) {
    (void)state;
    ls_model m;
    make_model(6, 128, &m);
    double share[2] = {0, 0};
    for (int way = 0; way < 4; way++) {
        int micros = way % 2 ? 16 : 4;
        ls_share_config c = {.model = &m,
                             .nworkers = 3,
                             .V = 1,
                             .batch = micros,
                             .micro_batch = 1,
                             .tree = true,
                             .bucket_nbytes = 1 << 20,
                             .compute = LS_F32,
                             .reduce = LS_F32,
                             .pipe = 3,
                             .schedule = way / 2 ? LS_PIPE_GPIPE : LS_PIPE_1F1B};
        ls_plan p;
        ls_error e;
        assert_ls_ok(ls_plan_make(&c, &p, &e), e);
        ls_site site = site_of(0);
        ls_sim sim = simulate(&p, &site);
        double want = passes_s(&p, &site, micros), end = 0;
        for (int i = 0; i < sim.nspans; i++)
            if (p.actions[sim.spans[i].action].kind == LS_BACKWARD)
                end = fmax(end, (double)sim.spans[i].end_ns / 1e9);
        if (end < want * 0.999 || end > want * 1.1)
            fail_msg("schedule %d, %d micro-batches: %g s, expected %g", way / 2, micros, end,
                     want);
        share[way % 2] = (end - sim.compute_s) / end;
        check_computing(&sim);
        /* messages in flight at the same time count once */
        assert_true(sim.kinds_s[LS_SEND] > 0 && sim.kinds_s[LS_SEND] <= sim.comm_s);
        assert_true(sim.comm_s <= sim.step_s);
        ls_sim_free(&sim);
        ls_plan_free(&p);
    }
    assert_true(share[1] < share[0]);
    ls_model_free(&m);
}

/* ---- devices ---- */

static ls_plan make_on_device(ls_model *m, bool state, ls_dtype type) {
    ls_share_config c = {.model = m,
                         .optim = ls_optim_usual(),
                         .nworkers = 1,
                         .V = 2,
                         .batch = 2,
                         .micro_batch = 1,
                         .tree = true,
                         .bucket_nbytes = 1 << 20,
                         .compute = type,
                         .reduce = type,
                         .on_device = true,
                         .state_on_device = state};
    ls_plan p;
    ls_error e;
    for (int i = 0; i < m->nlayers; i++) m->layers[i].traits.on_device = true;
    assert_ls_ok(ls_plan_make(&c, &p, &e), e);
    return p;
}

/* Seconds of all actions of a kind. */
static double kind_s(const ls_plan *p, ls_action_kind kind) {
    ls_site site = site_of(0);
    ls_sim s = simulate(p, &site);
    double seconds = s.kinds_s[kind];
    ls_sim_free(&s);
    return seconds;
}

/* Without a device's figures all is priced as if it ran on cores. With them each product takes a
 * nanosecond an operation, each pass one a byte, each kernel and each copy 1000 more. */
static void test_device(void **state) {
    enum { LAUNCH = 1000, BYTES = 4 * FLOATS };
    ls_model m;
    (void)state;
    make_model(1, 8, &m);
    ls_plan p = make_on_device(&m, false, LS_F32), all = make_on_device(&m, true, LS_F32);
    assert_ns(kind_s(&p, LS_FORWARD), 2 * (EMBED + ATT + MLP)); /* a head is a Backward */
    assert_ns(kind_s(&p, LS_UPDATE), FLOATS);
    machine.device = (ls_machine_device){
        .product = 1e9, .memory = 1e15, .to = 1e9, .from = 0.5e9, .launch_s = LAUNCH / 1e9};
    double kernels = 0;
    for (int i = 0; i + 1 < m.nlayers; i++) kernels += 2.0 * m.layers[i].cost.forward.n;
    double products = 2 * (QKV + 2 * SCORES + OUT + 2 * WIDE);
    double forward = 1e9 * kind_s(&p, LS_FORWARD);
    assert_true(forward > products + LAUNCH * kernels && forward < products + LAUNCH * kernels + 1);
    assert_ns(kind_s(&p, LS_UPDATE), FLOATS);                      /* still on cores */
    assert_ns(kind_s(&p, LS_TO_DEVICE), 2 * LAUNCH + BYTES);       /* and samples */
    assert_ns(kind_s(&p, LS_FROM_DEVICE), 2 * LAUNCH + 2 * BYTES); /* and losses */
    machine.device.memory = 1e9;
    assert_ns(kind_s(&p, LS_ADD), LAUNCH + 3 * BYTES);
    assert_ns(kind_s(&all, LS_UPDATE), LAUNCH + 7 * BYTES);
    assert_ns(kind_s(&all, LS_NORM), LAUNCH + BYTES);
    machine.device = (ls_machine_device){0};
    ls_plan_free(&p);
    ls_plan_free(&all);
    ls_model_free(&m);
}

/* In bf16 a product takes two nanoseconds an operation here; what layers write, and save but for
 * means, is rounded in place, and so are sums and, after a copy, new parameters. Half the bytes are
 * copied, and converted there. */
static void test_device_in_bf16(void **state) {
    enum { LAUNCH = 1000, BYTES = 4 * FLOATS };
    enum {
        ROUNDS = 5
    }; /* the embedding's output, and of attention and of an MLP two buffers each */
    ls_model m;
    (void)state;
    make_model(1, 8, &m);
    ls_plan p = make_on_device(&m, false, LS_BF16), all = make_on_device(&m, true, LS_BF16);
    machine.device = (ls_machine_device){.product = 1e9,
                                         .product_bf16 = 0.5e9,
                                         .memory = 1e15,
                                         .to = 1e9,
                                         .from = 0.5e9,
                                         .launch_s = LAUNCH / 1e9};
    double kernels = 2 * ROUNDS;
    for (int i = 0; i + 1 < m.nlayers; i++) kernels += 2.0 * m.layers[i].cost.forward.n;
    double products = 2 * 2 * (QKV + 2 * SCORES + OUT + 2 * WIDE);
    double forward = 1e9 * kind_s(&p, LS_FORWARD);
    assert_true(forward > products + LAUNCH * kernels && forward < products + LAUNCH * kernels + 1);
    double to = 1e9 * kind_s(&p, LS_TO_DEVICE), from = 1e9 * kind_s(&p, LS_FROM_DEVICE);
    assert_true(fabs(to - (3.0 * LAUNCH + BYTES / 2.0)) < 1);
    assert_true(fabs(from - (3.0 * LAUNCH + BYTES)) < 1);
    machine.device.memory = 1e9;
    assert_ns(kind_s(&p, LS_ADD), 2 * LAUNCH + 3 * BYTES + 2 * BYTES);
    assert_ns(kind_s(&all, LS_UPDATE), 3 * LAUNCH + 7 * BYTES + 2 * 2 * BYTES);
    machine.device.product_bf16 = 0;
    ls_site site = site_of(0);
    ls_pricer r;
    ls_error e;
    assert_ls_fails(ls_pricer_open(&p, &site, &r, &e), LS_EINVAL, "device.product_bf16_gflops", e);
    machine.device = (ls_machine_device){0};
    ls_plan_free(&p);
    ls_plan_free(&all);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),           cmocka_unit_test(test_graph),
        cmocka_unit_test(test_bf16),          cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_shared),
        cmocka_unit_test(test_crowd),         cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_card),          cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_spans),         cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_hosts),         cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_crowded_lanes), cmocka_unit_test(test_device),
        cmocka_unit_test(test_device_in_bf16)};
    return cmocka_run_group_tests(tests, make_machine, free_machine);
}
