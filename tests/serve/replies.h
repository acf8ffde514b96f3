/* replies.h - replies of an engine, for tests: waiting for them, and comparing them. */
#ifndef LS_TEST_SERVE_REPLIES_H
#define LS_TEST_SERVE_REPLIES_H

#include <unistd.h>

#include "serve/engine.h"
#include "test.h"

/* ls_engine_options.progress */
static inline void nothing(void *arg) { (void)arg; }

/* ls_reply.left: counts in an int. */
static inline void count_left(void *arg, ls_reply *r) {
    (void)r;
    ++*(int *)arg;
}

/* Until *left_p, which is changed with the engine's lock, is n. */
static inline void wait_until_left(ls_engine *g, const int *left_p, int n) {
    ls_error e = {0};
    for (int i = 0;; i++) {
        ls_engine_lock(g);
        bool done = *left_p == n, failed = ls_engine_failed(g, &e);
        ls_engine_unlock(g);
        assert_ls_ok(failed ? e.code : LS_OK, e);
        if (done) return;
        assert_true(i < 60000);
        usleep(1000);
    }
}

static inline void same_reply(const ls_reply *a, const ls_reply *b) {
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->n * sizeof *a->tokens);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->text.len, b->text.len);
    if (a->text.len) assert_memory_equal(a->text.data, b->text.data, a->text.len);
    assert_int_equal(a->nnotes, b->nnotes);
    for (size_t i = 0; i < a->nnotes; i++) {
        const ls_reply_note *p = &a->notes[i], *q = &b->notes[i];
        assert_int_equal(p->token, q->token);
        assert_memory_equal(&p->logprob, &q->logprob, sizeof p->logprob);
        assert_int_equal(p->ntop, q->ntop);
        assert_memory_equal(p->logprobs, q->logprobs, (size_t)p->ntop * sizeof *p->logprobs);
    }
}

#endif
