/* vocabulary_device.c - see vocabulary_device.h. */
#include "layers/vocabulary_device.h"

#include <assert.h>

void ls_vocabulary_device_losses(const ls_vocabulary *b) {
    const ls_vocabulary_targets *t = &b->targets;
    assert(t->p);
    LS_LAUNCH(b->c->compute, LS_KERNEL_cross_entropy, b->rows, 1, {.l = b->l->V},
              {.from = b->logits}, {.from = t->p}, {.l = t->row}, {.l = t->T}, {.l = t->first},
              {.from = t->list}, {.p = b->stat}, {.p = b->losses}, {.l = t->token}, {.p = b->sums});
}

void ls_vocabulary_device_dlogits(const ls_vocabulary *b) {
    enum { COLUMNS = 1024 }; /* of a group */
    const ls_vocabulary_targets *t = &b->targets;
    assert(t->p);
    if (b->gradient) {
        LS_LAUNCH(b->c->compute, LS_KERNEL_cross_entropy_part_dx, b->rows, 1, {.l = b->l->V},
                  {.p = b->logits}, {.from = t->p}, {.l = t->row}, {.l = t->T}, {.l = t->token},
                  {.p = b->stat}, {.from = b->gradient});
        return;
    }
    LS_LAUNCH(b->c->compute, LS_KERNEL_cross_entropy_dx, b->rows,
              ls_device_groups(b->l->V, COLUMNS), {.l = b->l->V}, {.p = b->logits}, {.from = t->p},
              {.l = t->row}, {.l = t->T}, {.l = t->first}, {.from = t->list}, {.from = b->stat},
              {.f = b->c->loss_scale}, {.from = t->scales}, {.from = t->begins});
}

void ls_vocabulary_device_sum(const ls_vocabulary *b, double *losses) {
    const ls_vocabulary_targets *t = &b->targets;
    int64_t samples = b->rows ? (t->first + b->rows - 1) / t->T - t->first / t->T + 1 : 0;
    LS_LAUNCH(b->c->compute, LS_KERNEL_sum_losses, samples, 1, {.l = b->rows}, {.l = t->T},
              {.l = t->first}, {.from = b->losses}, {.p = losses});
}
