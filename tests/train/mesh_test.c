/* mesh_test.c - every mesh of 1 to 8 workers, with every schedule, gives the bits of one worker:
 * GPT-2, Llama, and Llama with experts.
 *
 * A model is cut in each way that is possible (parallel.tensor_virtual, context_virtual,
 * expert_virtual); a cut that another one contains is left out. For each cut all meshes are listed
 * that fit it, and for each mesh all schedules. What does not decide how workers divide the model
 * (ZeRO, recomputation, micro-batches, types, optimizers, transport) is chosen such that every two
 * values of any two keys meet in some run. What is possible the program itself says
 * (ls_config_load(), ls_layout_make()): nothing here knows what goes with what. The last lines
 * printed say what ran, and how often what was refused.
 *
 * `make check` runs a few of these. */
/* ctest: busy seconds=10 */
#include <ctype.h>

#include "config/relations.h"
#include "plan/pick.h"
#include "train/layout.h"
#include "train/tiny_run.h"

/* In make check one of EACH meshes; under a sanitizer, which is many times slower, one of ALL_EACH
 * in check-slow. */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 200, ALL_EACH = 20 };
#else
enum { EACH = 96, ALL_EACH = 1 };
#endif

enum { WORKERS = 8, TRIES = 8, MOST_VALUES = 5, MOST_SETS = 32, TEXT = 160, MOST_REASONS = 40 };
enum {
    PIPE,
    TENSOR,
    CONTEXT,
    EXPERT,
    DATA,
    SCHEDULE,
    ZERO,
    RECOMPUTE,
    MICRO,
    COMPUTE,
    OPTIMIZER,
    TRANSPORT,
    NKEYS,
    FIRST_FREE = ZERO /* the keys before are enumerated, the others chosen */
};

typedef struct key {
    const char *name, *values[MOST_VALUES];
} key;

static const key keys[NKEYS] = {
    [PIPE] = {"parallel.mesh.pipe", {"1", "2", "3", "4"}},
    [TENSOR] = {"parallel.mesh.tensor", {"1", "2", "3", "4"}},
    [CONTEXT] = {"parallel.mesh.context", {"1", "2"}},
    [EXPERT] = {"parallel.mesh.expert", {"1", "2"}},
    [DATA] = {"parallel.mesh.data", {"1", "2", "3", "4"}},
    [SCHEDULE] = {"parallel.schedule", {"1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"}},
    [ZERO] = {"parallel.zero", {"0", "1", "2", "3"}},
    [RECOMPUTE] = {"parallel.recompute", {"0", "2"}},
    [MICRO] = {"train.micro_batch", {"1", "2"}},
    [COMPUTE] = {"train.compute", {"f32", "bf16"}},
    [OPTIMIZER] = {"optim.optimizer", {"adamw", "muon", "lamb"}},
#ifdef __SANITIZE_ADDRESS__
    [TRANSPORT] = {"parallel.transport", {"thread"}},
#else
    [TRANSPORT] = {"parallel.transport", {"thread", "shm", "tcp"}},
#endif
};

/* A value for each key, as its place in keys[]. */
typedef struct choice {
    int of[NKEYS];
} choice;

/* Keys of four virtual workers. */
static const char *const common[] = {
    "train.steps=2", "train.eval_every=0", "train.virtual_workers=4",
    "train.batch=8", "optim.warmup=1",     "log.every=1000",
    "model.heads=4"};

enum { MOST_OWN = 10, NCUTS = 3 };
static const char *const cuts[NCUTS] = {"parallel.tensor_virtual=4", "parallel.context_virtual=2",
                                        "parallel.expert_virtual=2"};

typedef struct model {
    const char *name, *sets[MOST_OWN];
} model;

/* With layers for eight stages. */
static const model models[] = {
    {"gpt2", {"model.kind=gpt2", "model.layers=6"}},
    {"llama",
     {"model.kind=llama", "model.layers=6", "model.kv_heads=2", "model.head=own",
      "model.qk_norm=true", "model.no_rope_every=4", "model.rope_dims=2", "parallel.sequence=on",
      "model.dropout=0.1"}},
    {"experts",
     {"model.kind=llama", "model.layers=6", "model.experts=5", "model.ffn=20",
      "model.shared_experts=1", "model.expert_capacity=1", "model.router_bias_rate=0.02",
      "model.dropout=0.1"}},
};

/* A model with a set of cuts, a bit each. */
typedef struct subject {
    const model *m;
    int cut;
    bool met[NKEYS][MOST_VALUES][NKEYS][MOST_VALUES]; /* values that have met in a run */
    bool known[2][3];                                 /* of each type and optimizer: */
    result of_one[2][3];                              /* the hashes of one worker */
    int nruns, nmeshes;
} subject;

/* ---- what is refused ---- */

typedef struct reason {
    char text[TEXT];
    int times;
} reason;

static reason reasons[MOST_REASONS];
static int nreasons;

/* Counts a refusal by its message; numbers in it don't matter. */
static void count_refusal(const char *message) {
    char text[TEXT];
    size_t n = 0;
    const char *at = strstr(message, ".yaml: ");
    for (at = at ? at + 7 : message; *at && n + 1 < sizeof text; at++) {
        if (!isdigit((unsigned char)*at)) text[n++] = *at;
        if (isdigit((unsigned char)*at) && (n == 0 || text[n - 1] != '#')) text[n++] = '#';
    }
    text[n] = 0;
    for (int i = 0; i < nreasons; i++)
        if (strcmp(reasons[i].text, text) == 0) {
            reasons[i].times++;
            return;
        }
    assert_true(nreasons < MOST_REASONS);
    memcpy(reasons[nreasons].text, text, sizeof text);
    reasons[nreasons++].times = 1;
}

/* ---- one run ---- */

typedef struct settings {
    char text[NKEYS][64];
    const char *of[MOST_SETS];
    int n, nworkers;
} settings;

static int size_of(int k) {
    int n = 0;
    while (n < MOST_VALUES && keys[k].values[n]) n++;
    return n;
}

static int degree_of(const choice *c, int k) { return atoi(keys[k].values[c->of[k]]); }

static void fill_in(const subject *s, const choice *c, settings *t) {
    *t = (settings){.nworkers = 1};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) t->of[t->n++] = common[i];
    for (int i = 0; i < MOST_OWN && s->m->sets[i]; i++) t->of[t->n++] = s->m->sets[i];
    for (int i = 0; i < NCUTS; i++)
        if (s->cut & 1 << i) t->of[t->n++] = cuts[i];
    for (int k = 0; k < NKEYS; k++) {
        if (k == SCHEDULE && c->of[PIPE] == 0) continue; /* it is refused where it can't act */
        snprintf(t->text[k], sizeof t->text[k], "%s=%s", keys[k].name, keys[k].values[c->of[k]]);
        t->of[t->n++] = t->text[k];
    }
    for (int k = PIPE; k <= DATA; k++) t->nworkers *= degree_of(c, k);
    const char *schedule = keys[SCHEDULE].values[c->of[SCHEDULE]];
    if (strcmp(schedule, "interleaved") == 0 || strcmp(schedule, "zb-v") == 0)
        t->of[t->n++] = "parallel.chunks=2";
}

/* Does the program take these settings? */
static bool is_possible(const subject *s, const choice *c, ls_error *e) {
    settings t;
    ls_config config;
    ls_layout l;
    fill_in(s, c, &t);
    *e = (ls_error){0};
    if (ls_config_load("configs/tiny.yaml", t.of, t.n, &config, e) != LS_OK) return false;
    if (ls_layout_make(&config, t.nworkers, NULL, &l, e) != LS_OK) return false;
    ls_layout_free(&l);
    return true;
}

static result run(const subject *s, const choice *c) {
    static int number;
    char path[128];
    settings t;
    ls_error e = {0};
    fill_in(s, c, &t);
    snprintf(path, sizeof path, "%s/run-%d", folder, number++);
    train_short(path, t.nworkers, t.of, t.n);
    result r = last_of(path);
    assert_ls_ok(ls_file_remove_tree(path, &e), e);
    return r;
}

static void print_choice(const subject *s, const choice *c) {
    print_message("%s, cut", s->m->name);
    for (int i = 0; i < NCUTS; i++)
        if (s->cut & 1 << i) print_message(" %s", cuts[i] + sizeof "parallel." - 1);
    for (int k = 0; k < NKEYS; k++)
        print_message("%s %s %s", k ? "," : ":", strrchr(keys[k].name, '.') + 1,
                      keys[k].values[c->of[k]]);
    print_message("\n");
}

/* The hashes of one worker, of the same type and optimizer. */
static const result *of_one(subject *s, const choice *c) {
    int compute = c->of[COMPUTE], optimizer = c->of[OPTIMIZER];
    choice one = {.of = {[ZERO] = 1, [COMPUTE] = compute, [OPTIMIZER] = optimizer}};
    ls_error e;
    while (!is_possible(s, &one, &e) && one.of[MICRO] + 1 < size_of(MICRO)) one.of[MICRO]++;
    if (!s->known[compute][optimizer]) s->of_one[compute][optimizer] = run(s, &one);
    s->known[compute][optimizer] = true;
    return &s->of_one[compute][optimizer];
}

static void run_same(subject *s, const choice *c) {
    const result *want = of_one(s, c);
    print_choice(s, c);
    result got = run(s, c);
    assert_string_equal(got.weights, want->weights);
    assert_string_equal(got.states, want->states);
    for (int k = 0; k < NKEYS; k++)
        for (int j = 0; j < NKEYS; j++) s->met[k][c->of[k]][j][c->of[j]] = true;
    s->nruns++;
}

/* ---- what is chosen ---- */

/* How many pairs of values of a choice have not met; many where none of its free values was
 * refused. Runs of threads take the least time. */
static int score_of(const subject *s, const choice *c, int refused[NKEYS][MOST_VALUES]) {
    int score = c->of[TRANSPORT] == 0;
    for (int k = FIRST_FREE; k < NKEYS; k++) {
        for (int j = 0; j < k; j++) score += 4 * !s->met[k][c->of[k]][j][c->of[j]];
        score -= 1000 * refused[k][c->of[k]];
    }
    return score;
}

/* The best free values for the others of *c; equally good ones differ by `seed`. */
static choice best_of(const subject *s, const choice *c, int refused[NKEYS][MOST_VALUES],
                      unsigned seed) {
    choice best = *c, at = *c;
    int most = INT32_MIN, n = 1;
    for (int k = FIRST_FREE; k < NKEYS; k++) n *= size_of(k);
    for (int i = 0; i < n; i++) {
        int rest = (int)((unsigned)i + seed * 7919u) % n;
        for (int k = FIRST_FREE; k < NKEYS; k++) {
            at.of[k] = rest % size_of(k);
            rest /= size_of(k);
        }
        int score = score_of(s, &at, refused);
        if (score <= most) continue;
        most = score;
        best = at;
    }
    return best;
}

/* Runs the mesh and schedule of *c with the best free values that are possible. */
static bool run_best(subject *s, const choice *c, unsigned seed) {
    int refused[NKEYS][MOST_VALUES] = {0};
    ls_error e = {0};
    for (int i = 0; i < TRIES; i++) {
        choice with = best_of(s, c, refused, seed);
        if (is_possible(s, &with, &e)) {
            run_same(s, &with);
            return true;
        }
        for (int k = FIRST_FREE; k < NKEYS; k++) refused[k][with.of[k]]++;
    }
    count_refusal(e.msg);
    return false;
}

/* ---- all meshes ---- */

/* Is it of at most WORKERS workers, which divide nothing that is not cut? */
static bool fits(const subject *s, const choice *c) {
    int workers = 1;
    for (int k = PIPE; k <= DATA; k++) workers *= degree_of(c, k);
    for (int i = 0; i < NCUTS; i++)
        if (c->of[TENSOR + i] > 0 && !(s->cut & 1 << i)) return false;
    return workers <= WORKERS;
}

/* The next mesh and schedule; without a pipeline there is one schedule. false: there is none. */
static bool next_mesh(const subject *s, choice *c) {
    do {
        int k = SCHEDULE;
        while (k >= 0 && ++c->of[k] == size_of(k)) c->of[k--] = 0;
        if (k < 0) return false;
    } while (!fits(s, c) || (c->of[PIPE] == 0 && c->of[SCHEDULE] > 0));
    return true;
}

/* A run in which the values of k and j in *pair meet: the first of some draws of the others that is
 * possible. */
static bool run_pair(subject *s, const choice *pair, int k, int j, ls_error *e) {
    static uint64_t draw;
    for (int asked = 0; asked < TRIES; draw++) {
        choice with = *pair;
        for (int o = 0; o < NKEYS; o++)
            if (o != k && o != j)
                with.of[o] = pick(draw, (uint64_t)o, o < SCHEDULE ? 2 : size_of(o));
        if (!fits(s, &with)) continue;
        asked++;
        if (!is_possible(s, &with, e)) continue;
        run_same(s, &with);
        return true;
    }
    return false;
}

static bool has_run(const subject *s, int k, int value) { return s->met[k][value][k][value]; }

/* Runs for a pair of values that have not met; k == j: for a value. */
static void run_missing(subject *s, int k, int a, int j, int b) {
    ls_error e = {0};
    choice pair = {0};
    pair.of[k] = a;
    pair.of[j] = b;
    if (s->met[k][a][j][b] || !fits(s, &pair) || run_pair(s, &pair, k, j, &e)) return;
    print_message("no run has %s=%s", keys[k].name, keys[k].values[a]);
    if (k != j) print_message(" with %s=%s", keys[j].name, keys[j].values[b]);
    print_message(": %.*s\n", TEXT, e.msg);
}

static void run_pairs(subject *s) {
    for (int k = 0; k < NKEYS; k++)
        for (int a = 0; a < size_of(k); a++) {
            run_missing(s, k, a, k, a);
            for (int j = 0; j < k && has_run(s, k, a); j++)
                for (int b = 0; b < size_of(j); b++)
                    if (has_run(s, j, b)) run_missing(s, k, a, j, b);
        }
}

static void run_meshes(subject *s) {
    static int number;
    int each = all_cases() ? ALL_EACH : EACH, nrefused = 0;
    choice c = {0};
    do {
        unsigned i = (unsigned)number++;
        if (i % (unsigned)each != (unsigned)each / 2) continue;
        if (run_best(s, &c, i))
            s->nmeshes++;
        else
            nrefused++;
    } while (next_mesh(s, &c));
    if (each == 1) run_pairs(s);
    assert_true(each > 1 || s->nmeshes > 10 * nrefused);
    print_message("%s, cut %d: %d meshes with a schedule, %d runs; refused: %d\n", s->m->name,
                  s->cut, s->nmeshes, s->nruns, nrefused);
}

/* The cuts of a model that are possible, and that no other possible one contains. */
static int run_model(const model *m) {
    static int possible[1 << NCUTS];
    ls_error e;
    int runs = 0;
    for (int cut = (1 << NCUTS) - 1; cut >= 0; cut--) {
        subject *s = calloc(1, sizeof *s);
        *s = (subject){.m = m, .cut = cut};
        choice one = {.of = {[MICRO] = 1}};
        bool contained = false;
        possible[cut] = is_possible(s, &one, &e);
        if (!possible[cut]) count_refusal(e.msg);
        for (int other = cut + 1; other < 1 << NCUTS; other++)
            contained = contained || (possible[other] && (other & cut) == cut);
        if (possible[cut] && !contained) run_meshes(s);
        runs += s->nruns;
        free(s);
    }
    return runs;
}

static void test_meshes(void **state) {
    (void)state;
    bool each = EACH < 100; /* with a sanitizer a model may have none of the few runs */
    int all = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        int runs = run_model(&models[i]);
        assert_true(!each || runs > 0);
        all += runs;
    }
    assert_true(all > 0);
    for (int i = 0; i < nreasons; i++)
        print_message("refused %d times: %s\n", reasons[i].times, reasons[i].text);
}

/* One process plays all workers of two pipelines, whose stages have one copy of the state. */
static void test_one_process(void **state) {
    (void)state;
    static const char *const usual[] = {"train.steps=3", "optim.warmup=1", NULL};
    static const char *const none[] = {NULL};
    static const char *const ways[][4] = {
        {"parallel.executor=sequential", "parallel.mesh.pipe=2", "parallel.zero=0"},
        {"parallel.executor=sequential", "parallel.mesh.pipe=2", "parallel.zero=2"}};
    result one = train_new(1, usual, none);
    for (int i = 0; i < 2; i++) same(train_new(4, usual, ways[i]), one);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meshes),
                                       cmocka_unit_test(test_one_process)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
