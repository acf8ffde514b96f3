/* store_test.c - the store is repaired after the death of its workers, and any number of others
 * take it over. */
#include "state/store.h"

#include <math.h>

#include "base/mem.h"
#include "optim/apply.h"
#include "small_plan.h"
#include "state/store_backup.h"
#include "state/store_blocks.h"
#include "state/store_repair.h"
#include "test.h"

enum { MOST = 4 };

static ls_model model;

static int set_up(void **state) {
    (void)state;
    small_model(&model);
    model.params[5].momentum = 0.25f; /* a running value, whose update reads the batch's samples */
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ls_model_free(&model);
    return 0;
}

/* Places workers in areas: one for all, or one each. */
static void place(ls_store *s, const ls_plan *p, bool one) {
    for (int w = 0; w < p->share.nworkers; w++) ls_store_place(s, w, one ? 0 : w);
}

static float value(size_t i, int what) { return (float)(i % 977) / 977.0f - (float)what; }

/* Weights and moments after step 0; each worker fills its part. */
static void fill(ls_store *s, const ls_plan *p, bool one) {
    size_t n = model.nfloats;
    ls_scaler scaler = {0};
    for (int w = 0; w < p->share.nworkers; w++) {
        float *params = ls_store_params(s, one ? 0 : w), *m = ls_store_state(s, one ? 0 : w);
        for (int k = 0; k < p->share.nbuckets; k++) {
            ls_range b = ls_share_owned(&p->share, k, w);
            for (size_t i = b.first; i < b.end; i++) {
                params[i] = value(i, 0);
                m[i] = value(i, 1);
                m[n + i] = -value(i, 1);
            }
        }
        ls_store_mark_filled(s, &p->share, w, 0);
    }
    ls_store_begin(s, 0, &scaler);
}

static ls_store_note note_of(int64_t steps) {
    ls_store_note n = {
        .steps = steps,
        .update = {
            .updates = steps - 1, .lr = 1e-2, .grad_scale = 1, .samples = 8 + (double)steps}};
    n.scaler.good = steps;
    return n;
}

/* Repairs the store as a supervisor does. */
static void repair(ls_store *s, const ls_plan *p) {
    ls_error e = {0};
    ls_store_note n;
    ls_store_decided d;
    ls_store_find_decided(s, &p->share, 0, p->share.nworkers, &d);
    assert_ls_ok(ls_store_repair(s, &p->share, 0, p->share.nworkers, &d, &e), e);
    assert_false(ls_store_unfinished_note(s, &n));
}

static void adopt(ls_store *s, const ls_plan *p, int worker) {
    size_t nblocks = model.nfloats / LS_BLOCK;
    unsigned char *missing = ls_alloc(nblocks);
    ls_store_adopt(s, &p->share, worker, missing);
    for (size_t i = 0; i < nblocks; i++) assert_int_equal(missing[i], 0);
    free(missing);
}

/* Writes the reduced gradient of a step where each worker reads it. */
static void reduce(ls_store *s, const ls_plan *p, int64_t step) {
    for (int w = 0; w < p->share.nworkers; w++) {
        float *g = ls_store_grads(s, w);
        for (size_t i = 0; i < model.nfloats; i++) g[i] = sinf((float)(i + (size_t)step * 31));
    }
}

/* The state after `steps` steps, computed without interruption. */
static float *expected(int64_t steps) {
    ls_plan p = small_plan(&model, 1, 0, 0);
    ls_error e = {0};
    ls_store *s = NULL;
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = 1, .threads = 1}, &s, &e), e);
    place(s, &p, true);
    fill(s, &p, true);
    for (int64_t step = 0; step < steps; step++) {
        ls_store_note n = note_of(step + 1);
        reduce(s, &p, step);
        ls_store_decide(s, 0, &n);
        repair(s, &p);
    }
    size_t n = model.nfloats;
    float *all = LS_NEW_ARRAY(float, 3 * n);
    assert_ls_ok(ls_store_copy(s, steps, all, &e), e);
    ls_store_free(s);
    ls_plan_free(&p);
    return all;
}

static void check(ls_store *s, int64_t steps) {
    size_t n = model.nfloats;
    float *want = expected(steps), *got = LS_NEW_ARRAY(float, 3 * n);
    ls_error e = {0};
    assert_int_equal(ls_store_steps(s), steps);
    assert_ls_ok(ls_store_copy(s, steps, got, &e), e);
    assert_memory_equal(got, want, 3 * n * sizeof(float));
    assert_int_equal(ls_store_scaler_after(s, steps).good, steps);
    free(want);
    free(got);
}

/* Each worker has updated some blocks already, others than the other workers. */
static void begin_update(ls_store *s, const ls_plan *p, bool one, const ls_store_note *n,
                         unsigned seed) {
    ls_error e = {0};
    ls_compute c;
    assert_ls_ok(ls_compute_init(&c, 1, 16, &e), e);
    for (int w = 0; w < p->share.nworkers; w++) {
        ls_journal j = ls_store_journal(s, w);
        float *params = ls_store_params(s, one ? 0 : w), *m = ls_store_state(s, one ? 0 : w);
        const ls_optim_update u = {.optim = &p->share.optim,
                                   .model = &model,
                                   .step = n->update,
                                   .grads_type = LS_F32,
                                   .params_type = LS_F32,
                                   .grads = ls_store_grads(s, w),
                                   .params = params,
                                   .flat = ls_flat_of_state(m, params, 2, model.nfloats),
                                   .journal = &j,
                                   .steps = ls_store_mark(n->steps)};
        size_t last = SIZE_MAX;
        for (int k = 0; k < p->share.nbuckets; k++) {
            ls_range b = ls_share_owned(&p->share, k, w);
            for (size_t at = b.first; at < b.end; at += LS_BLOCK) {
                seed = seed * 1103515245u + 12345u;
                if (seed >> 16 & 1)
                    ls_optim_apply(&u, &c, at, at + LS_BLOCK);
                else
                    last = at;
            }
        }
        if (last == SIZE_MAX) continue;
        ls_journal_begin(&j, 0, last, &u.flat); /* it dies in this block */
        for (size_t i = 0; i < LS_BLOCK; i += 2) params[last + i] = NAN;
    }
    ls_compute_close(&c);
}

static void survive(int zero, bool one) {
    static const int sizes[] = {2, 3, 1, 4, 4, 2};
    ls_error e = {0};
    ls_plan p = small_plan(&model, 2, zero, 0);
    ls_store *s = NULL;
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = MOST, .threads = 1}, &s, &e),
                 e);
    assert_int_equal(ls_store_steps(s), -1);
    assert_ls_ok(ls_store_repair(s, &p.share, 0, 2, &(ls_store_decided){0}, &e),
                 e); /* no state yet */
    place(s, &p, one);
    fill(s, &p, one);
    for (int64_t step = 0; step < 6; step++) {
        ls_store_note n = note_of(step + 1), latest;
        reduce(s, &p, step);
        repair(s, &p); /* not decided: nothing changes */
        check(s, step);
        ls_store_decide(s, (int)step % p.share.nworkers, &n);
        begin_update(s, &p, one, &n, (unsigned)step + 1);
        repair(s, &p);
        check(s, step + 1);
        assert_true(ls_store_last_note(s, &latest) && latest.steps == step + 1);
        ls_plan_free(&p);
        p = small_plan(&model, sizes[step], zero, 0);
        place(s, &p, one);
        for (int w = 0; w < p.share.nworkers; w++) adopt(s, &p, w);
        check(s, step + 1);
    }
    ls_store_free(s);
    ls_plan_free(&p);
}

static void test_survive(void **state) {
    (void)state;
    survive(0, false); /* replicas */
    survive(1, true);  /* one copy */
    survive(1, false); /* shards, each in memory of its own */
    survive(3, true);
    survive(3, false);
}

/* A skipped step changes nothing but the count. */
static void test_skipped(void **state) {
    (void)state;
    ls_error e = {0};
    ls_plan p = small_plan(&model, 2, 1, 0);
    ls_store *s = NULL;
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = 2, .threads = 1}, &s, &e), e);
    place(s, &p, true);
    fill(s, &p, true);
    size_t n = model.nfloats;
    float *before = LS_NEW_ARRAY(float, 3 * n), *after = LS_NEW_ARRAY(float, 3 * n);
    assert_ls_ok(ls_store_copy(s, 0, before, &e), e);
    ls_store_note note = note_of(1);
    note.out.skipped = true;
    ls_store_decide(s, 1, &note);
    repair(s, &p);
    assert_int_equal(ls_store_steps(s), 1);
    assert_ls_ok(ls_store_copy(s, 1, after, &e), e);
    assert_memory_equal(before, after, 3 * n * sizeof(float));
    assert_ls_fails(ls_store_copy(s, 2, after, &e), LS_EINVAL, "is incomplete", e);
    free(before);
    free(after);
    ls_store_free(s);
    ls_plan_free(&p);
}

/* A replica that may be wrong is copied from another. */
static void test_void(void **state) {
    (void)state;
    ls_error e = {0};
    ls_plan p = small_plan(&model, 3, 0, 0);
    ls_store *s = NULL;
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = 3, .threads = 1}, &s, &e), e);
    place(s, &p, false);
    fill(s, &p, false);
    ls_store_note n = note_of(1);
    reduce(s, &p, 0);
    ls_store_decide(s, 0, &n);
    ((float *)ls_store_params(s, 0))[77] += 1;
    ls_store_distrust(s, 0);
    repair(s, &p);
    for (int w = 0; w < 3; w++) adopt(s, &p, w);
    check(s, 1);
    size_t nbytes = model.nfloats * sizeof(float);
    assert_memory_equal(ls_store_params(s, 0), ls_store_params(s, 1), nbytes);
    assert_memory_equal(ls_store_params(s, 0), ls_store_params(s, 2), nbytes);
    ls_store_free(s);
    ls_plan_free(&p);
}

/* In a step each virtual worker is claimed at most once, `most` of them, each with its own place.
 */
static void test_claims(void **state) {
    (void)state;
    ls_error e = {0};
    ls_plan p = small_plan(&model, 2, 1, 0);
    ls_store *s = NULL;
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = 2, .threads = 1}, &s, &e), e);
    for (int64_t step = 0; step < 3; step++) {
        assert_false(ls_store_backup_is_claimed(s, 5, step));
        assert_int_equal(ls_store_backup_claim(s, 5, step, 2), 0);
        assert_int_equal(ls_store_backup_claim(s, 5, step, 2), -1);
        assert_true(ls_store_backup_is_claimed(s, 5, step));
        assert_int_equal(ls_store_backup_find(s, 5, step), -1); /* not yet */
        assert_int_equal(ls_store_backup_claim(s, 3, step, 2), 1);
        assert_int_equal(ls_store_backup_claim(s, 4, step, 2), -1); /* no place left */
        ls_store_backup_finish(s, 5, step);
        assert_int_equal(ls_store_backup_find(s, 5, step), 0);
        assert_int_equal(ls_store_backup_find(s, 3, step), -1);
        assert_int_equal(ls_store_backup_find(s, 5, step + 1), -1);
    }
    assert_int_equal(ls_store_backup_claim(s, 4, 1, 2), -1); /* the step is over */
    assert_int_equal(ls_store_nbackups(s), 3);
    ls_scaler scaler = {0};
    ls_store_restart(s, -1, &scaler);
    assert_false(ls_store_backup_is_claimed(s, 5, 2));
    ls_store_free(s);
    ls_plan_free(&p);
}

/* Another host knows how many steps the state has had; blocks with another number are discarded. */
static void test_restart(void **state) {
    (void)state;
    ls_error e = {0};
    ls_plan p = small_plan(&model, 2, 0, 0);
    ls_store *s = NULL;
    size_t nblocks = model.nfloats / LS_BLOCK;
    unsigned char *has = ls_alloc(nblocks), *missing = ls_alloc(nblocks);
    float block[3 * LS_BLOCK];
    ls_scaler scaler = {.scale = 8};
    assert_ls_ok(ls_store_make(&p.share, &(ls_store_config){.most = 2, .threads = 1}, &s, &e), e);
    place(s, &p, false);
    fill(s, &p, false);
    ls_store_note ahead = note_of(1), note;
    ls_store_decide(s, 1, &ahead);
    ls_store_restart(s, 0, &scaler); /* no other host knows of step 1 */
    assert_false(ls_store_unfinished_note(s, &note));
    check(s, 0);
    ls_store_restart(s, 7, &scaler);
    assert_int_equal(ls_store_steps(s), 7);
    assert_true(ls_store_scaler(s).scale == 8);
    ls_store_list_blocks(s, has);
    ls_store_adopt(s, &p.share, 0, missing);
    for (size_t i = 0; i < nblocks; i++) assert_true(!has[i] && missing[i]);
    for (size_t i = 0; i < 3 * LS_BLOCK; i++) block[i] = value(i, 2);
    ls_store_write_block(s, 0, 1, block); /* block 1 comes from another host */
    ls_store_adopt(s, &p.share, 1, missing);
    assert_true(missing[0] && !missing[1]);
    float *params = ls_store_params(s, 1);
    assert_memory_equal(params + LS_BLOCK, block, LS_BLOCK * sizeof(float));
    ls_store_restart(s, -1, &scaler); /* from a checkpoint, or from the start: all is 0 */
    assert_int_equal(ls_store_steps(s), -1);
    for (size_t i = 0; i < model.nfloats; i++) assert_true(params[i] == 0);
    free(has);
    free(missing);
    ls_store_free(s);
    ls_plan_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survive), cmocka_unit_test(test_claims),
        cmocka_unit_test(test_restart), cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_void),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
