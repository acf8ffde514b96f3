/* chosen_test.c - messages of some rows: which there are, what the plan says of them, which bytes
 * are expected; and the verifier finds wrong ones. */
#include <math.h>

#include "chunked_model.h"
#include "plan/plan.h"
#include "share/config.h"

enum { ROWS = 6, WORDS = 40, EXPERTS = 5, PER_TOKEN = 2 };

static void make(ls_model *m, ls_plan *p) {
    ls_error e = {0};
    mixed_make(ROWS, WORDS, (mixed_parts){1, TOGETHER, 1, false}, true, m);
    const ls_share_config c = {.model = m,
                               .nworkers = TOGETHER,
                               .V = 2,
                               .batch = 2 * TOGETHER,
                               .micro_batch = TOGETHER,
                               .tree = true,
                               .bucket_nbytes = 20000,
                               .compute = LS_F32,
                               .reduce = LS_F32,
                               .context = TOGETHER};
    assert_ls_ok(ls_plan_make(&c, p, &e), e);
}

static void unmake(ls_model *m, ls_plan *p) {
    ls_plan_free(p);
    ls_model_free(m);
}

/* The part of all pairs of EXPERTS that have one of [first, end). */
static double part_of(int64_t first, int64_t end) {
    int pairs = 0, some = 0;
    for (int64_t a = 0; a < EXPERTS; a++)
        for (int64_t b = a + 1; b < EXPERTS; b++) {
            pairs++;
            some += (a >= first && a < end) || (b >= first && b < end);
        }
    return (double)some / pairs;
}

/* There are four messages for each layer, micro-batch, and pair of workers: rows and what is
 * computed from them, forward and backward. The sender has the scores for one of either two. */
static void test_messages(void **state) {
    (void)state;
    ls_model m;
    ls_plan p;
    int n = 0, scored = 0;
    make(&m, &p);
    for (int i = 0; i < p.nactions; i++) {
        const ls_action *a = &p.actions[i];
        const ls_chosen_rows *c = ls_plan_chosen(&p, a);
        if (!c) {
            if (a->kind == LS_SEND)
                assert_true(ls_plan_sent_nbytes(&p, a) == (double)a->comm.nbytes);
            continue;
        }
        ls_buf line = {0};
        char text[160];
        double rows = (double)a->comm.nbytes / (double)(c->width * 4);
        double most = (double)a->comm.nbytes, sent = part_of(c->first, c->end) * most + rows / 8;
        n++;
        scored += ls_plan_scores(&p, a) >= 0;
        assert_true(rows == ROWS);
        assert_true(fabs(ls_plan_sent_nbytes(&p, a) - fmin(sent, most)) < 1e-6);
        snprintf(text, sizeof text, "at most: rows that choose experts %d to %d by %s",
                 (int)c->first, (int)c->end - 1, m.layers[c->scores].name);
        ls_plan_print_action(&p, i, &line);
        assert_non_null(strstr(line.data, text));
        ls_buf_free(&line);
    }
    assert_int_equal(n, 2 * TOGETHER * 4 * 2); /* layers, workers, messages, virtual workers */
    assert_int_equal(scored, n / 2);
    unmake(&m, &p);
}

/* By worker 0, which chooses its rows. */
static int find_send(const ls_plan *p, bool gradient) {
    for (int i = 0; i < p->nactions; i++)
        if (p->actions[i].worker == 0 && ls_plan_scores(p, &p->actions[i]) >= 0 &&
            ls_plan_chosen(p, &p->actions[i])->gradient == gradient)
            return i;
    return -1;
}

static void test_wrong_scores(void **state) {
    (void)state;
    for (int gradient = 0; gradient < 2; gradient++) {
        ls_model m;
        ls_plan p;
        ls_error e = {0};
        make(&m, &p);
        ls_chosen_rows *c = &m.layers[p.actions[find_send(&p, gradient)].layer].chosen, good = *c;
        c->scores = p.actions[find_send(&p, gradient)].layer; /* has no scores */
        assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "wrong scores", e);
        *c = good;
        c->end = EXPERTS + 1;
        assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "wrong scores", e);
        *c = good;
        for (int i = 0; i < m.nlayers; i++) /* those of the other worker's sample */
            if (m.layers[i].ops == m.layers[good.scores].ops &&
                m.layers[i].chunk != m.layers[good.scores].chunk)
                c->scores = i;
        assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "wrong scores", e);
        *c = good;
        assert_ls_ok(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), e);
        unmake(&m, &p);
    }
}

/* What is sent, or chooses, is in use until then; and what was sent is packed. */
static void test_uses(void **state) {
    (void)state;
    ls_model m;
    ls_plan p;
    ls_error e = {0};
    make(&m, &p);
    int at = find_send(&p, true), end = at + 1;
    int scores = ls_plan_scores(&p, &p.actions[at]);
    while (p.actions[end].kind != LS_FREE || p.actions[end].buffer != scores ||
           p.actions[end].worker != p.actions[at].worker)
        end++;
    ls_action early = p.actions[end];
    memmove(&p.actions[at + 1], &p.actions[at], (size_t)(end - at) * sizeof early);
    p.actions[at] = early;
    assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "after its Free", e);
    unmake(&m, &p);
    make(&m, &p);
    at = find_send(&p, false);
    ls_action again = p.actions[at];
    ls_plan_append(&p, &again);
    memmove(&p.actions[at + 1], &p.actions[at], (size_t)(p.nactions - 1 - at) * sizeof again);
    assert_ls_fails(ls_plan_verify(&p, LS_STAGE_WHOLE, &e), LS_EINVAL, "after its Send", e);
    unmake(&m, &p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages),
                                       cmocka_unit_test(test_wrong_scores),
                                       cmocka_unit_test(test_uses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
