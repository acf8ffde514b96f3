/* print.c - prints a plan, one line an action (action.c), and hashes it. */
#include "plan/plan.h"
#include "share/config.h"
#include "tensor/sum_order.h"

enum { SOME_NBYTES = 1 << 16 };

int ls_plan_print_some(const ls_plan *p, int worker, int first, ls_buf *out) {
    int i = first;
    for (; i < p->nactions && out->len < SOME_NBYTES; i++)
        if (worker == LS_ALL_WORKERS || ls_action_concerns(&p->actions[i], worker))
            ls_plan_print_action(p, i, out);
    return i;
}

ls_hash ls_plan_hash(const ls_plan *p) {
    const ls_share *sh = &p->share;
    ls_buf text = {0};
    ls_hasher *h = ls_hasher_new();
    ls_buf_printf(&text, "n %d V %d batch %lld micro %lld tree %d compute %s reduce %s\n",
                  sh->nworkers, sh->V, (long long)sh->batch, (long long)sh->micro_batch,
                  sh->config->tree, ls_dtype_name(sh->compute), ls_dtype_name(sh->reduce));
    if (ls_sum_order(sh->compute)) ls_buf_printf(&text, "sum %s\n", ls_sum_order(sh->compute));
    for (int w = 0; sh->ranges && w < sh->nworkers; w++)
        ls_buf_printf(&text, "worker %d from %d\n", w, sh->ranges[w]);
    if (sh->ncells > 1)
        ls_buf_printf(&text, "pipe %d tensor %d chunks %d\n", sh->pipe, sh->tensor,
                      sh->config->chunks);
    if (sh->nchunks > 1)
        ls_buf_printf(&text, "%s %d of %d\n", ls_share_context_name(sh->model), sh->context,
                      sh->nchunks);
    const ls_share_compress *z = &sh->compress;
    if (z->on)
        ls_buf_printf(
            &text,
            "compress %s feedback %d ratio %g block %zu rank %d warmup %lld min %zu momentum %g\n",
            ls_compression_name(z->how.kind), (int)z->how.feedback, z->how.ratio, z->how.block,
            z->how.rank, (long long)z->warmup, z->min_count, z->momentum);
    for (int at = 0; at < p->nactions; text.len = 0) {
        at = ls_plan_print_some(p, LS_ALL_WORKERS, at, &text);
        ls_hasher_add(h, text.data, text.len);
    }
    ls_buf_free(&text);
    return ls_hasher_finish(h);
}
