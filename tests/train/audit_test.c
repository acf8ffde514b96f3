/* audit_test.c - an audit names the worker with other parameters, or other data. */
#include "train/audit.h"

#include "base/mem.h"
#include "test.h"

enum { N = 3, CULPRIT = 1 };

typedef struct job {
    ls_host host; /* first */
    ls_run run;
    ls_dataset data;
    bool bad_params, bad_data;
    ls_verdict verdicts[N][8]; /* after steps 0 .. 7 */
} job;

/* Tokens that differ from those of the other workers. */
static uint32_t *damaged(const ls_corpus *c) {
    uint32_t *ids = LS_NEW_ARRAY(uint32_t, c->tokens.n);
    memcpy(ids, c->encoded, c->tokens.n * sizeof *ids);
    for (size_t i = 0; i < c->tokens.n; i++) ids[i] ^= i % 5 == 0;
    return ids;
}

static ls_status audits(ls_member *m, job *j, ls_error *e) {
    LS_TRY(ls_member_join(m, e));
    LS_TRY(ls_member_begin(m, 0, NULL, e));
    if (j->bad_params && m->worker == CULPRIT)
        ((float *)m->worlds[0].params)[j->host.layout.model.params[4].offset] += 1;
    for (int64_t steps = 0; steps < 8; steps++)
        LS_TRY(ls_audit(m, steps, &j->verdicts[m->worker][steps], e));
    return LS_OK;
}

static ls_status worker(ls_group *g, ls_board_slot *me, void *arg, ls_error *e) {
    job *j = arg;
    ls_dataset data = j->data;
    ls_member m = ls_member_of(&j->host, g, me, &data);
    uint32_t *ids = damaged(&j->data.text);
    if (j->bad_data && ls_group_rank(g) == CULPRIT) data.text.tokens.ids = ids;
    ls_status s = audits(&m, j, e);
    ls_member_leave(&m);
    free(ids);
    return s;
}

static job run(bool bad_params, bool bad_data, int zero) {
    static job j;
    char set[32];
    ls_error e = {0};
    j = (job){.bad_params = bad_params, .bad_data = bad_data};
    snprintf(set, sizeof set, "parallel.zero=%d", zero);
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &j.run.config, &e), e);
    assert_ls_ok(ls_config_set(&j.run.config, "parallel.transport=thread", &e), e);
    assert_ls_ok(ls_config_set(&j.run.config, "survival.audit=1", &e), e);
    assert_ls_ok(ls_config_set(&j.run.config, set, &e), e);
    j.run.nworkers = N;
    assert_ls_ok(ls_host_open(&j.host, &j.run, &e), e);
    assert_ls_ok(ls_dataset_make(&j.data, &j.run.config, &j.host.layout.model, &e), e);
    assert_ls_ok(ls_host_launch(&j.host, worker, &j, &e), e);
    ls_dataset_free(&j.data);
    return j;
}

static void test_good(void **state) {
    (void)state;
    for (int zero = 0; zero <= 3; zero += 3) {
        job j = run(false, false, zero);
        for (int w = 0; w < N; w++)
            for (int i = 0; i < 8; i++) assert_true(j.verdicts[w][i].good);
        ls_host_free(&j.host);
    }
}

static void test_bad_params(void **state) {
    (void)state;
    job j = run(true, false, 0);
    for (int w = 0; w < N; w++)
        for (int i = 0; i < 8; i++) {
            const ls_verdict *v = &j.verdicts[w][i];
            assert_false(v->good);
            assert_true(v->parameters);
            assert_int_equal(v->culprit, CULPRIT);
            assert_string_equal(v->tensor, j.host.layout.model.params[4].name);
        }
    ls_host_free(&j.host);
}

/* The difference shows when the culprit is one of the two workers that compute the gradient. */
static void test_bad_gradient(void **state) {
    (void)state;
    for (int zero = 0; zero <= 3; zero += 3) {
        job j = run(false, true, zero);
        int found = 0;
        for (int i = 0; i < 8; i++) {
            const ls_verdict *v = &j.verdicts[0][i];
            for (int w = 1; w < N; w++) {
                assert_int_equal(j.verdicts[w][i].good, v->good);
                assert_int_equal(j.verdicts[w][i].culprit, v->culprit);
            }
            assert_int_equal(v->vw, i);
            if (v->good) continue;
            found++;
            assert_false(v->parameters);
            assert_int_equal(v->culprit, CULPRIT);
        }
        assert_in_range(found, 4, 7); /* of 8, with 3 + 3 + 2 virtual workers */
        ls_host_free(&j.host);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad_params),
        cmocka_unit_test(test_bad_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
