/* mesh_search_test.c - parallel.mesh: auto: a trial of a mesh predicts what its whole plan does;
 * the first mesh is about as fast as the fastest of all; limits hold; what can't be met is refused
 * with the nearest that can.
 */
/* ctest: seconds=12 */
/* ctest: long-asan: search/methods and plan/plan run the same code */
#include "perf/mesh_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/relations.h"
#include "networks/network.h"
#include "perf/mesh_trial.h"
#include "perf/typical.h"
#include "plan/pick.h"
#include "share/stages.h"
#include "test.h"
#include "train/layout.h"

enum { WORKERS = 8 };

static ls_machine typical;

static int make_machine(void **state) {
    (void)state;
    ls_machine_typical(WORKERS, &typical);
    return 0;
}

static int free_machine(void **state) {
    (void)state;
    ls_machine_free(&typical);
    return 0;
}

static void set(ls_config *c, const char *text) {
    ls_error e;
    assert_ls_ok(ls_config_set(c, text, &e), e);
}

/* A GPT that can be cut into nine stages. */
static ls_config config_of(const char *batch, const char *V) {
    ls_config c;
    ls_error e;
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    set(&c, "model.layers=4");
    set(&c, batch);
    set(&c, V);
    return c;
}

/* The whole plan's step and memory; false: there is none. */
static bool forecast(const ls_config *c, const ls_mesh *m, const ls_forecast_world *w,
                     ls_forecast *f_p) {
    ls_config with = *c;
    ls_layout l;
    ls_error e;
    ls_mesh_set(&with, m);
    if (ls_layout_make(&with, WORKERS, NULL, &l, &e) != LS_OK) return false;
    assert_ls_ok(ls_forecast_plan(&with, &l.plan, w, f_p, &e), e);
    ls_layout_free(&l);
    return true;
}

/* A config whose products are cut into four slices. */
static ls_config sliced_config_of(const char *batch, const char *V) {
    ls_config c = config_of(batch, V);
    set(&c, "model.width=64");
    set(&c, "model.heads=4");
    set(&c, "parallel.tensor_virtual=4");
    return c;
}

static int list_of(const ls_config *c, ls_mesh **list_p) {
    ls_model m;
    ls_error e;
    int n = 0;
    assert_ls_ok(ls_network_create_cut(c, &m, &e), e);
    ls_mesh_list(c, WORKERS, ls_stages_most(&m), list_p, &n);
    ls_model_free(&m);
    return n;
}

static void check_near(const ls_config *c, double got, double want, double part, const char *what,
                       const ls_mesh *m) {
    ls_buf text = {0};
    ls_mesh_text(c, m, &text);
    if (fabs(got - want) > part * want) fail_msg("%s %g, not %g:%s", what, got, want, text.data);
    ls_buf_free(&text);
}

/* Each listed mesh (in make check every sixth) as a trial, beside its whole plan: within parts of
 * its step and memory. Messages that a worker sends one after the other to workers of its stage are
 * in flight together in a simulated plan, and not in a trial: over a slow link that shows. */
static void check_trials(const ls_config *c, const ls_forecast_world *w, double step,
                         double memory) {
    ls_mesh *list = NULL;
    int n = list_of(c, &list), tried = 0, compared = 0;
    for (int i = 0; i < n; i++) {
        if (!runs_case(i, 6)) continue;
        tried++;
        bool possible = false;
        ls_forecast f;
        ls_error e;
        ls_status s = ls_mesh_try(c, WORKERS, w, &list[i], &possible, &e);
        assert_ls_ok(s, e);
        assert_int_equal(possible, forecast(c, &list[i], w, &f));
        if (!possible) continue;
        compared++;
        check_near(c, list[i].step_s, f.step_s, step, "step", &list[i]);
        check_near(c, (double)list[i].memory_nbytes, (double)f.memory_nbytes, memory, "memory",
                   &list[i]);
    }
    assert_true(compared > tried / 2);
    free(list);
}

static void test_trials(void **state) {
    (void)state;
    const ls_forecast_world one = {.machine = &typical}, apart = {.machine = &typical,
                                                                  .host_workers = 2,
                                                                  .latency_s = 1e-5,
                                                                  .byte_s = 1e-8};
    ls_config few = config_of("train.batch=16", "train.virtual_workers=8"),
              many = config_of("train.batch=256", "train.virtual_workers=64");
    check_trials(&few, &one, 0.05, 0.05);
    check_trials(&few, &apart, 0.2, 0.05);
    check_trials(&many, &one, 0.08, 0.12);
}

/* The first mesh of a choice is about the fastest of all by its whole plan. Returns how many meshes
 * there are. */
static int choose_fastest(const ls_config *c, const ls_forecast_world *w, ls_mesh_choice *choice) {
    ls_mesh *list = NULL;
    ls_forecast f;
    ls_error e;
    double least = INFINITY;
    int n = list_of(c, &list);
    for (int i = 0; i < n; i++)
        if (forecast(c, &list[i], w, &f) && f.step_s < least) least = f.step_s;
    free(list);
    assert_ls_ok(ls_mesh_choose(c, WORKERS, 0, w, choice, &e), e);
    assert_true(forecast(c, &choice->best[0], w, &f));
    assert_true(f.step_s <= 1.05 * least);
    return n;
}

/* One sample: as much as the slices allow is divided, and that is about the fastest of all. */
static void test_sliced_first(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    ls_config c = sliced_config_of("train.batch=1", "train.virtual_workers=1");
    ls_mesh_choice choice;
    ls_error e;
    choose_fastest(&c, &w, &choice);
    assert_int_equal(choice.best[0].tensor, 4);
    assert_int_equal(choice.best[0].pipe, 2);
    assert_int_equal(ls_mesh_choose(&c, 53, 0, &w, &choice, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "13 stages and 4 slices at most"));
    assert_non_null(strstr(e.msg, "the nearest numbers of workers: 52"));
}

/* Workers that divide slices as well: on one host, and on hosts of two. */
static void test_sliced_trials(void **state) {
    (void)state;
    const ls_forecast_world one = {.machine = &typical}, apart = {.machine = &typical,
                                                                  .host_workers = 2,
                                                                  .latency_s = 1e-5,
                                                                  .byte_s = 1e-8};
    ls_config few = sliced_config_of("train.batch=8", "train.virtual_workers=4");
    set(&few, "model.layers=2");
    check_trials(&few, &one, 0.05, 0.05);
    check_trials(&few, &apart, 0.2, 0.05);
}

/* Workers that divide the chunks of sequences, or samples and experts. */
static ls_config chunked_config_of(const char *parts) {
    ls_config c = config_of("train.batch=16", "train.virtual_workers=4");
    set(&c, "model.kind=llama");
    set(&c, "model.layers=2");
    set(&c, parts);
    return c;
}

static void test_chunked_trials(void **state) {
    (void)state;
    const ls_forecast_world one = {.machine = &typical}, apart = {.machine = &typical,
                                                                  .host_workers = 2,
                                                                  .latency_s = 1e-5,
                                                                  .byte_s = 1e-8};
    ls_config chunks = chunked_config_of("parallel.context_virtual=4"),
              groups = chunked_config_of("model.experts=4");
    set(&groups, "model.ffn=64");
    set(&groups, "train.micro_batch=4");
    set(&groups, "parallel.expert_virtual=4");
    if (all_cases()) check_trials(&chunks, &one, 0.05, 0.05);
    check_trials(&chunks, &apart, 0.2, 0.05);
    if (all_cases()) check_trials(&groups, &one, 0.05, 0.05);
    set(&groups, "parallel.expert_virtual=2");
    set(&groups, "parallel.context_virtual=2");
    set(&groups, "parallel.tensor_virtual=2");
    set(&groups, "model.layers=1");
    set(&groups, "train.batch=8");
    check_trials(&groups, &one, 0.05, 0.05);
}

/* Workers divide samples before the chunks of each: of two meshes with the same product of both
 * degrees one is listed. */
static void test_parts_listed(void **state) {
    (void)state;
    ls_config c = chunked_config_of("model.experts=4");
    ls_mesh *list = NULL;
    int products[5] = {0};
    set(&c, "train.micro_batch=2");
    set(&c, "parallel.expert_virtual=2");
    set(&c, "parallel.context_virtual=2");
    int n = list_of(&c, &list);
    for (int i = 0; i < n; i++) {
        assert_true(list[i].expert == 2 || list[i].context == 1);
        products[list[i].expert * list[i].context]++;
    }
    assert_true(products[1] > 0 && products[2] > 0 && products[4] > 0);
    free(list);
}

/* One sample: workers that divide its sequence are the only ones but pipelines, and faster. */
static void test_chunked_first(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    ls_config c = chunked_config_of("parallel.context_virtual=8");
    ls_mesh_choice choice;
    ls_error e;
    set(&c, "train.batch=1");
    set(&c, "train.virtual_workers=1");
    set(&c, "model.context=512");
    assert_ls_ok(ls_mesh_choose(&c, WORKERS, 0, &w, &choice, &e), e);
    assert_true(choice.best[0].context > 1);
}

/* Groups of heads of one sequence are computed at the same time, forward and backward. */
static void test_chunks_at_once(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    const ls_mesh m = {.pipe = 1,
                       .tensor = 1,
                       .context = 2,
                       .expert = 1,
                       .data = 4,
                       .stages_each = 1,
                       .zero = 1,
                       .micro_batch = 1};
    ls_config c = chunked_config_of("parallel.context_virtual=2");
    ls_forecast f;
    set(&c, "model.width=256");
    set(&c, "model.heads=4");
    set(&c, "model.context=2048");
    set(&c, "train.batch=4");
    set(&c, "train.micro_batch=1");
    assert_true(forecast(&c, &m, &w, &f));
    assert_true(f.most_wait < 0.2);
}

/* ---- drawn cases ---- */

enum { FEW_CASES = 3, CASES = 200 };

/* A random config that forms meshes, often of parts; n_p: of how many workers. */
static ls_config draw_config(uint64_t seed, int *n_p) {
    static const char *const kinds[] = {"model.kind=gpt2", "model.kind=llama"};
    char text[64];
    int V = 1 << pick(seed, 0, 5), samples = 1 << pick(seed, 1, 3), parts = pick(seed, 2, 4);
    ls_config c;
    ls_error e;
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    const struct {
        const char *key;
        int value;
    } sets[] = {{"model.layers", 1 + pick(seed, 3, 4)},
                {"model.width", 32 << pick(seed, 4, 2)},
                {"model.heads", 4},
                {"train.batch", V * samples},
                {"train.virtual_workers", V},
                {"train.micro_batch", samples},
                {"parallel.tensor_virtual", parts > 1 ? 2 << (pick(seed, 5, 4) == 0) : 1}};
    set(&c, kinds[parts == 3]);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(text, sizeof text, "%s=%d", sets[i].key, sets[i].value);
        set(&c, text);
    }
    if (parts == 3) set(&c, "parallel.context_virtual=2");
    *n_p = 1 << (1 + pick(seed, 6, 5));
    return c;
}

/* What `lockstep plan` predicts with the keys that are printed for a mesh. */
static ls_forecast plan_printed(const ls_config *c, const ls_mesh *m, int n,
                                const ls_forecast_world *w) {
    ls_config with = *c;
    ls_buf text = {0};
    ls_layout l;
    ls_forecast f;
    ls_error e;
    ls_mesh_text(c, m, &text);
    for (char *rest = text.data, *key; (key = strtok_r(rest, " ", &rest));) set(&with, key);
    ls_buf_free(&text);
    assert_ls_ok(ls_layout_make(&with, n, NULL, &l, &e), e);
    assert_ls_ok(ls_forecast_plan(&with, &l.plan, w, &f, &e), e);
    ls_layout_free(&l);
    return f;
}

/* Memory within 2%, the step within 5%; all fit, and the first is the fastest. */
static void check_rows(const ls_config *c, int n, size_t limit, const ls_forecast_world *w,
                       const ls_mesh_choice *choice) {
    double first = 0;
    for (int i = 0; i < choice->n; i++) {
        const ls_mesh *m = &choice->best[i];
        ls_forecast f = plan_printed(c, m, n, w);
        check_near(c, m->step_s, f.step_s, 0.05, "step", m);
        check_near(c, (double)m->memory_nbytes, (double)f.memory_nbytes, 0.02, "memory", m);
        assert_true(!limit || f.memory_nbytes <= limit);
        if (i == 0) first = f.step_s;
        assert_true(first <= f.step_s);
    }
}

/* Returns whether there is a choice. With a limit that the first of all meshes is over, if it can
 * be, others are chosen. */
static bool try_case(uint64_t seed) {
    int n = 0;
    ls_config c = draw_config(seed, &n);
    ls_forecast_world w = {.machine = &typical};
    ls_mesh_choice all, some;
    ls_error e;
    if (pick(seed, 7, 2)) {
        w.host_workers = n < 8 ? n : 1 << pick(seed, 8, 4);
        w.latency_s = 5e-6;
        w.byte_s = 1e-10 * (1 << pick(seed, 9, 5));
    }
    if (ls_mesh_choose(&c, n, 0, &w, &all, &e) != LS_OK) return false;
    check_rows(&c, n, 0, &w, &all);
    size_t limit = all.best[0].memory_nbytes - 1;
    if (ls_mesh_choose(&c, n, limit, &w, &some, &e) == LS_OK) check_rows(&c, n, limit, &w, &some);
    return true;
}

static void test_drawn(void **state) {
    (void)state;
    const int count = ncases(FEW_CASES, CASES);
    int chosen = 0;
    for (int i = 0; i < count; i++) chosen += try_case((uint64_t)i);
    assert_true(chosen > count / 2);
}

/* A degree of 1 is left out where the config has it, too. */
static void test_text(void **state) {
    (void)state;
    const ls_mesh m = {
        .pipe = 1, .tensor = 1, .context = 1, .expert = 1, .data = 4, .stages_each = 1};
    ls_config c = chunked_config_of("parallel.context_virtual=2");
    ls_buf one = {0}, two = {0};
    ls_mesh_text(&c, &m, &one);
    assert_null(strstr(one.data, "parallel.mesh.context"));
    set(&c, "parallel.mesh.context=2");
    ls_mesh_text(&c, &m, &two);
    assert_non_null(strstr(two.data, " parallel.mesh.context=1"));
    ls_buf_free(&one);
    ls_buf_free(&two);
}

static void test_first(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    ls_config c = config_of("train.batch=32", "train.virtual_workers=4");
    ls_mesh_choice choice;
    int n = choose_fastest(&c, &w, &choice);
    assert_true(choice.best[0].pipe > 1); /* four virtual workers, eight workers */
    for (int i = 1; i < choice.n; i++)
        assert_true(choice.best[i].step_s >= choice.best[i - 1].step_s);
    assert_int_equal(choice.listed, n);
}

static void test_limit(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    ls_config c = config_of("train.batch=32", "train.virtual_workers=8");
    ls_mesh_choice all, some;
    ls_error e;
    size_t least = SIZE_MAX;
    assert_ls_ok(ls_mesh_choose(&c, WORKERS, 0, &w, &all, &e), e);
    for (int i = 0; i < all.n; i++)
        if (all.best[i].memory_nbytes < least) least = all.best[i].memory_nbytes;
    size_t limit = (least + all.best[0].memory_nbytes) / 2;
    assert_true(least < limit && limit < all.best[0].memory_nbytes);
    assert_ls_ok(ls_mesh_choose(&c, WORKERS, limit, &w, &some, &e), e);
    assert_true(some.over > 0 && some.n > 0);
    for (int i = 0; i < some.n; i++) assert_true(some.best[i].memory_nbytes <= limit);
    assert_int_equal(ls_mesh_choose(&c, WORKERS, 1000, &w, &some, &e), LS_ENOMEM);
    assert_non_null(strstr(e.msg, "fits into 0.0 MB a worker; the nearest needs"));
    assert_non_null(strstr(e.msg, "parallel.mesh.pipe="));
}

static void test_refused(void **state) {
    (void)state;
    const ls_forecast_world w = {.machine = &typical};
    ls_config c = config_of("train.batch=8", "train.virtual_workers=2");
    ls_mesh_choice choice;
    ls_error e;
    assert_int_equal(ls_mesh_choose(&c, 23, 0, &w, &choice, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "23 workers form no mesh: the model can be cut into 9 stages"));
    assert_non_null(strstr(e.msg, "the nearest numbers of workers: 18"));
    set(&c, "parallel.mesh=auto");
    set(&c, "parallel.shard_group=2");
    assert_int_equal(ls_config_check(&c, "here", &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "parallel.shard_group"));
}

/* The same number of workers gets the same mesh, and the config keeps what decides the bits. */
static void test_auto(void **state) {
    (void)state;
    ls_config c = config_of("train.batch=32", "train.virtual_workers=4"), again = c;
    ls_error e;
    set(&c, "parallel.mesh=auto");
    set(&again, "parallel.mesh=auto");
    assert_ls_ok(ls_mesh_auto(&c, WORKERS, false, &e), e);
    assert_ls_ok(ls_mesh_auto(&again, WORKERS, false, &e), e);
    assert_memory_equal(&c, &again, sizeof c);
    assert_int_equal(c.parallel.mesh_pipe * c.parallel.mesh_data, WORKERS);
    assert_int_equal(c.train.virtual_workers, 4);
    assert_int_equal(c.train.batch, 32);
    assert_int_equal(c.parallel.mesh, LS_MESH_AUTO);
    set(&c, "parallel.mesh.pipe=2"); /* a mesh of one's own */
    assert_int_equal(c.parallel.mesh, LS_MESH_GIVEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trials),         cmocka_unit_test(test_sliced_trials),
        cmocka_unit_test(test_sliced_first),   cmocka_unit_test(test_first),
        cmocka_unit_test(test_limit),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_auto),           cmocka_unit_test(test_chunked_trials),
        cmocka_unit_test(test_parts_listed),   cmocka_unit_test(test_chunked_first),
        cmocka_unit_test(test_chunks_at_once), cmocka_unit_test(test_text),
        cmocka_unit_test(test_drawn),
    };
    return cmocka_run_group_tests(tests, make_machine, free_machine);
}
