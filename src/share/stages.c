/* stages.c - see stages.h.
 *
 * Stages are cut where one value is all that later layers read of earlier ones, or one of each
 * slice or chunk (ls_model_cut()): it is the message to the next stage, and its gradient the
 * message back. Among all such cuts those are chosen whose largest stage has the least work, by
 * dynamic programming.
 */
#include "share/stages.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Does Backward of a layer from this one on, which reads the value, run for all micro-batches at
 * once? */
static bool is_read_whole(const ls_model *m, int layer, int value) {
    for (int l = layer; l < m->nlayers; l++)
        for (int k = 0; m->layers[l].traits.backward_whole && k < m->layers[l].ninputs; k++)
            if (m->layers[l].inputs[k] == value) return true;
    return false;
}

/* May a stage begin with this layer? The gradient of what it reads goes back one micro-batch at a
 * time. */
bool ls_stages_may_begin(const ls_model *m, int layer) {
    int *values = LS_NEW_ARRAY(int, (size_t)ls_model_parts(m)), n = ls_model_cut(m, layer, values);
    bool may = n > 0 && !m->layers[layer].traits.backward_whole;
    for (int i = 0; may && i < n; i++) {
        const ls_layer *below = &m->layers[values[i]];
        may = !below->link.is_constant && !below->traits.backward_whole && !below->traits.loss &&
              !is_read_whole(m, layer, values[i]);
    }
    free(values);
    return may;
}

static double work_of(const ls_model *m, int layer) {
    const ls_layer *l = &m->layers[layer];
    return l->cost.flops + ls_model_backward_flops(m, l);
}

/* Stages consist of blocks: the layers from one that may begin a stage up to the next. */
typedef struct cutting {
    int n;        /* stages */
    int nblocks;  /* at most the model's layers */
    int *first;   /* [nblocks + 1] the first layer of each, and the end */
    double *work; /* [nblocks] */
    double *most; /* [n + 1][nblocks + 1] the largest stage, of the first i stages up to a block */
    int *begins;  /* [n + 1][nblocks + 1] the first block of the i-th stage */
} cutting;

static void list_blocks(cutting *c, const ls_model *m) {
    for (int l = 0; l < m->nlayers; l++) {
        if (l == 0 || ls_stages_may_begin(m, l)) c->first[c->nblocks++] = l;
        c->work[c->nblocks - 1] += work_of(m, l);
    }
    c->first[c->nblocks] = m->nlayers;
}

/* The i-th stage up to a block: it begins where the largest of the first i stages is smallest. A
 * stage that is larger than the best so far need not grow. */
static void cut_stage(cutting *c, int i, int end) {
    int row = c->nblocks + 1;
    double work = 0, *best = &c->most[i * row + end];
    for (int begin = end - 1; begin >= 0 && work < *best; begin--) {
        work += c->work[begin];
        double before = c->most[(i - 1) * row + begin];
        double most = work > before ? work : before;
        if (most >= *best) continue;
        *best = most;
        c->begins[i * row + end] = begin;
    }
}

static void cut_best(cutting *c) {
    for (int i = 0; i < (c->n + 1) * (c->nblocks + 1); i++) c->most[i] = INFINITY;
    c->most[0] = 0;
    for (int i = 1; i <= c->n; i++)
        for (int end = 1; end <= c->nblocks; end++) cut_stage(c, i, end);
}

int ls_stages_most(const ls_model *m) {
    int n = 1;
    for (int l = 1; l < m->nlayers; l++) n += ls_stages_may_begin(m, l);
    return n;
}

bool ls_stages_cut(const ls_model *m, int n, int *stage_of) {
    size_t most = (size_t)m->nlayers;
    cutting c = {.n = n, .first = LS_NEW_ARRAY(int, most + 1), .work = LS_NEW_ARRAY(double, most)};
    list_blocks(&c, m);
    int row = c.nblocks + 1, end = c.nblocks;
    c.most = LS_NEW_ARRAY(double, (size_t)((n + 1) * row));
    c.begins = LS_NEW_ARRAY(int, (size_t)((n + 1) * row));
    cut_best(&c);
    bool can = isfinite(c.most[n * row + end]);
    for (int i = n; can && i > 0; i--) {
        int begin = c.begins[i * row + end];
        for (int l = c.first[begin]; l < c.first[end]; l++) stage_of[l] = i - 1;
        end = begin;
    }
    free(c.first);
    free(c.work);
    free(c.most);
    free(c.begins);
    return can;
}
