/* bucket.c - cuts the flat gradient into buckets, and lists the buckets of each layer.
 *
 * Buckets are cut from the end of the flat gradient, in the order in which Backward fills it. Each
 * has as many blocks as fit into bucket_nbytes, but at least one; where gradients are compressed, as
 * many chunks of pieces (piece.c). So all have the same size, only
 * the last may be smaller, and the buckets of a parameter follow from its offset. The list of each
 * layer is made once, since passes and readers need it at every action.
 */
#include <stdlib.h>

#include "plan/plan.h"

size_t ls_plan_bucket_floats(const ls_plan_config *c) {
    size_t unit = c->compress.on ? ls_plan_chunk(c) : LS_BLOCK;
    size_t size = c->bucket_nbytes / sizeof(float) / unit * unit;
    return size < unit ? unit : size;
}

/* The buckets of a layer's parameter. */
static void buckets_of(const ls_plan *p, const ls_layer *l, int param, int *first_p, int *last_p) {
    size_t size = ls_plan_bucket_floats(&p->c), end = p->c.model->nfloats - 1;
    *first_p = (int)((end - (l->offsets[param] + l->counts[param] - 1)) / size);
    *last_p = (int)((end - l->offsets[param]) / size);
}

static int by_number(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Appends the buckets of one layer, each once, to p->touched. seen [nbuckets]: 1 + the latest layer
 * that has the bucket. */
static void list_layer(ls_plan *p, int layer, int *seen, int *capacity_p) {
    const ls_layer *l = &p->c.model->layers[layer];
    int begin = p->touched_from[layer], n = begin;
    for (int i = 0; i < l->nparams; i++) {
        int first = 0, last = 0;
        if (l->frozen[i]) continue;
        buckets_of(p, l, i, &first, &last);
        for (int k = first; k <= last; k++) {
            if (seen[k] == layer + 1) continue;
            seen[k] = layer + 1;
            if (n == *capacity_p) {
                *capacity_p = *capacity_p ? 2 * *capacity_p : 64;
                p->touched = ls_realloc(p->touched, (size_t)*capacity_p * sizeof *p->touched);
            }
            p->touched[n++] = k;
        }
    }
    if (n > begin) qsort(p->touched + begin, (size_t)(n - begin), sizeof *p->touched, by_number);
    p->touched_from[layer + 1] = n;
}

static void list_touched(ls_plan *p) {
    int nlayers = p->c.model->nlayers, capacity = 0;
    int *seen = LS_NEW_ARRAY(int, (size_t)p->nbuckets);
    p->touched_from = LS_NEW_ARRAY(int, (size_t)nlayers + 1);
    for (int layer = 0; layer < nlayers; layer++) list_layer(p, layer, seen, &capacity);
    free(seen);
}

void ls_plan_cut_buckets(ls_plan *p) {
    const ls_model *m = p->c.model;
    size_t size = ls_plan_bucket_floats(&p->c);
    p->buckets = LS_NEW_ARRAY(ls_bucket, m->nfloats / size + 1);
    for (size_t end = m->nfloats; end > 0;) {
        size_t first = end > size ? end - size : 0;
        p->buckets[p->nbuckets++] = (ls_bucket){.first = first, .end = end, .writer = m->nlayers};
        end = first;
    }
    list_touched(p);
    for (int layer = 0; layer < m->nlayers; layer++)
        for (int i = p->touched_from[layer]; i < p->touched_from[layer + 1]; i++) {
            ls_bucket *b = &p->buckets[p->touched[i]];
            b->opener = layer;
            if (layer < b->writer) b->writer = layer;
        }
}

int ls_plan_touched(const ls_plan *p, int layer, const int **buckets_p) {
    *buckets_p = p->touched + p->touched_from[layer];
    return p->touched_from[layer + 1] - p->touched_from[layer];
}
