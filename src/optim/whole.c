/* whole.c - see whole.h. */
#include "optim/whole.h"

size_t ls_whole_none(const ls_param *p) {
    (void)p;
    return 0;
}

void ls_whole_no_products(const ls_param *p, ls_whole_product *list) {
    (void)p;
    (void)list;
}

typedef struct blocks {
    const ls_whole_call *call;
    ls_whole_block_fn *fn;
    void *arg;
} blocks;

static void blocks_run(void *arg, int thread, int nthreads) {
    const blocks *b = arg;
    size_t count = b->call->p->count;
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)count, LS_BLOCK, thread, nthreads, &first, &end);
    for (size_t at = (size_t)first; at < (size_t)end; at += LS_BLOCK)
        b->fn(b->call, b->arg, at, count - at < LS_BLOCK ? count - at : LS_BLOCK);
}

void ls_whole_each_block(const ls_whole_call *c, ls_whole_block_fn *fn, void *arg) {
    blocks b = {c, fn, arg};
    ls_pool_run(c->c->pool, blocks_run, &b);
}

double ls_whole_total(const ls_whole_call *c, const double *sums) {
    double total = 0;
    for (size_t i = 0; i * LS_BLOCK < c->p->count; i++) total += sums[i];
    return total;
}
