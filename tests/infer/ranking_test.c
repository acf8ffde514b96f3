/* ranking_test.c - HR@k and NDCG@k of a model with random weights, against a plain count. */
#include "infer/ranking.h"

#include <math.h>

#include "config/relations.h"
#include "folder.h"
#include "networks/network.h"
#include "storage/origin.h"
#include "test.h"

enum { USERS = 13, ITEMS = 37, WIDTH = 4, K = 5 };

typedef struct setup {
    ls_config config;
    ls_model model;
    ls_dataset data;
    ls_compute compute;
    float *params;
    ls_infer infer;
} setup;

static void write_data(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/x.csv", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "u,i\n");
    for (int i = 0; i < ITEMS; i++) fprintf(f, "%d,%d\n", i % USERS, i);
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < 9; k++) fprintf(f, "%d,%d\n", u, (11 * u + 3 * k) % ITEMS);
    assert_int_equal(fclose(f), 0);
}

static void set(ls_config *c, const char *assignment) {
    ls_error e = {0};
    assert_ls_ok(ls_config_set(c, assignment, &e), e);
}

static setup *make(const char *metrics) {
    setup *s = LS_NEW(setup);
    ls_error e = {0};
    char path[160];
    write_data();
    ls_config_defaults(&s->config);
    snprintf(path, sizeof path, "data.path=%s/x.csv", folder);
    set(&s->config, path);
    set(&s->config, "model.kind=factors");
    set(&s->config, "model.width=4");
    set(&s->config, "model.loss={bpr: {target: clicked}}");
    set(&s->config, "data.ratings={user: u, item: i, negatives: 2}");
    set(&s->config, "data.val_fraction=0.3");
    set(&s->config, metrics);
    assert_ls_ok(ls_config_check(&s->config, "x.yaml", &e), e);
    assert_ls_ok(ls_origin_complete(&s->config, NULL, &e), e);
    assert_ls_ok(ls_network_create(&s->config, &s->model, &e), e);
    assert_ls_ok(ls_dataset_make(&s->data, &s->config, &s->model, &e), e);
    assert_ls_ok(ls_compute_init(&s->compute, 1, ls_model_scratch_floats(&s->model), &e), e);
    s->params = LS_NEW_ARRAY(float, s->model.nfloats);
    for (size_t i = 0; i < s->model.nfloats; i++) /* few values: many equal scores */
        s->params[i] = (float)((int)(i * 2654435761u >> 7 & 3) - 1);
    s->infer = (ls_infer){
        .model = &s->model, .compute = &s->compute, .dtype = LS_F32, .params = s->params};
    return s;
}

static void end(setup *s) {
    ls_dataset_free(&s->data);
    ls_model_free(&s->model);
    ls_compute_close(&s->compute);
    free(s->params);
    free(s);
}

static const float *table_of(const setup *s, const char *name) {
    for (int i = 0; i < s->model.nparams; i++)
        if (strcmp(s->model.params[i].name, name) == 0)
            return s->params + s->model.params[i].offset;
    fail_msg("no parameter %s", name);
    return NULL;
}

static double score_of(const setup *s, int32_t user, int32_t item) {
    const float *u = table_of(s, "user.weight") + user * WIDTH;
    const float *v = table_of(s, "item.weight") + item * WIDTH;
    double sum = (double)table_of(s, "item_bias.weight")[item];
    for (int i = 0; i < WIDTH; i++) sum += (double)u[i] * (double)v[i];
    return sum;
}

static bool is_before(const setup *s, int32_t user, int32_t a, int32_t b) {
    double x = score_of(s, user, a), y = score_of(s, user, b);
    return x > y || (x == y && a < b);
}

static double value_of(const ls_evaluation *v, const char *name) {
    for (int i = 0; i < v->nmetrics; i++)
        if (strcmp(v->metrics[i].name, name) == 0) return v->metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static ls_evaluation evaluate(setup *s, uint64_t nusers) {
    ls_ranking *r = NULL;
    ls_error e = {0};
    ls_evaluation v = {0};
    assert_ls_ok(ls_ranking_open(&s->infer, &s->data, nusers, &r, &e), e);
    if (nusers) assert_int_equal(ls_ranking_users(r), nusers);
    double *records = LS_NEW_ARRAY(double, ls_ranking_users(r) * ls_ranking_size(r));
    for (uint64_t i = 0; i < ls_ranking_users(r); i++)
        assert_ls_ok(ls_ranking_record(r, i, records + i * ls_ranking_size(r), &e), e);
    ls_ranking_add(r, records, &v);
    free(records);
    ls_ranking_close(r);
    return v;
}

static void test_full(void **state) {
    (void)state;
    setup *s = make("model.metrics=[hr: 5, ndcg: 5, ndcg: {k: 100}]");
    const ls_ratings *r = s->data.samples->ratings;
    double hits = 0, ndcg = 0, all = 0;
    int n = 0;
    for (int32_t u = 0; u < r->nusers; u++) {
        double gain = 0, gain_all = 0, best = 0, best_all = 0;
        int held = 0;
        for (uint64_t h = r->held_out.begins[u]; h < r->held_out.begins[u + 1]; h++, held++) {
            int rank = 1;
            for (int32_t i = 0; i < r->nitems; i++)
                rank +=
                    !ls_ratings_has(&r->training, u, i) && is_before(s, u, i, r->held_out.items[h]);
            gain_all += 1 / log2(rank + 1.0);
            best_all += 1 / log2(held + 2.0);
            if (rank <= K) gain += 1 / log2(rank + 1.0);
            if (held < K) best += 1 / log2(held + 2.0);
        }
        if (!held) continue;
        n++;
        hits += gain > 0;
        ndcg += gain / best;
        all += gain_all / best_all;
    }
    assert_int_equal(n, USERS);
    ls_evaluation v = evaluate(s, 0);
    assert_int_equal(v.nmetrics, 3);
    assert_true(fabs(value_of(&v, "hr5_full") - hits / n) < 1e-12);
    assert_true(fabs(value_of(&v, "ndcg5_full") - ndcg / n) < 1e-12);
    assert_true(fabs(value_of(&v, "ndcg100_full") - all / n) < 1e-12);
    assert_true(hits > 0 && hits < n);
    evaluate(s, 4);
    end(s);
}

/* Without training, a held-out item has a place among 9 drawn ones that is as good as theirs. */
static void test_sampled(void **state) {
    (void)state;
    setup *s = make("model.metrics=[hr: {k: 1, candidates: 9}, hr: {k: 10, candidates: 9}]");
    ls_evaluation v = evaluate(s, 0);
    assert_true(value_of(&v, "hr10_sampled9") == 1);
    assert_in_range((int)(1000 * value_of(&v, "hr1_sampled9")), 10, 300);
    end(s);
}

static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_model m;
    setup *s = make("model.metrics=[hr: 5]");
    ls_samples *samples = s->data.samples;
    ls_ranking *r = NULL;
    s->data.samples = NULL;
    assert_ls_fails(ls_ranking_open(&s->infer, &s->data, 0, &r, &e), LS_EINVAL,
                    "hr5_full needs interactions of users", e);
    s->data.samples = samples;
    set(&s->config, "model.kind=mlp");
    set(&s->config, "data.ratings=");
    assert_ls_fails(ls_network_create(&s->config, &m, &e), LS_EINVAL,
                    "hr ranks items of users: set data.ratings", e);
    end(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
