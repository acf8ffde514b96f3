/* evaluate.c - see evaluate.h. */
#include "train/evaluate.h"

#include <stdlib.h>

static const double LN2 = 0.69314718055994530942;

ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t T) {
    return (ls_evaluation){.loss = nats / ((double)nsamples * (double)T),
                           .bits_per_byte = nats / LN2 / nbytes,
                           .nsamples = nsamples};
}

/* The i-th of n samples out of `all`: spread evenly over the validation part. */
static uint64_t sample_at(uint64_t i, uint64_t n, uint64_t all) { return i * all / n; }

ls_status ls_evaluate(ls_member *m, uint64_t n, ls_evaluation *v_p, ls_error *e) {
    const ls_run *r = m->run;
    const ls_corpus *c = &r->corpus;
    int64_t T = r->model.config.context;
    if (n == 0 || n > c->nval) n = c->nval;
    uint64_t size = (uint64_t)m->local.size, w = (uint64_t)m->worker;
    uint64_t first = n * w / size, end = n * (w + 1) / size, part = (uint64_t)m->infer.n;
    uint32_t *tokens = LS_NEW_ARRAY(uint32_t, part * (uint64_t)(T + 1));
    for (uint64_t i = first; i < end; i += part) {
        uint64_t k = end - i < part ? end - i : part;
        for (uint64_t j = 0; j < k; j++)
            ls_sample_copy(c->val, T, sample_at(i + j, n, c->nval), tokens + j * (uint64_t)(T + 1));
        ls_infer_losses(&m->infer, (int64_t)k, tokens, r->val_losses + i);
    }
    free(tokens);
    LS_TRY(ls_local_barrier(&m->local, e));
    double nats = 0, nbytes = 0;
    for (uint64_t i = 0; i < n; i++) {
        nats += r->val_losses[i];
        nbytes += ls_corpus_sample_bytes(c, c->val + sample_at(i, n, c->nval) * (uint64_t)T, T);
    }
    *v_p = ls_evaluation_of(nats, nbytes, n, T);
    return ls_local_barrier(&m->local, e); /* the losses may be written again */
}
