/* rowwise.c - row-wise Adagrad: one sum of squares for each row of a table, in place of one an
 * element.
 *
 * As in FBGEMM and TorchRec: G += mean(g^2) over the row, then w -= lr g / (sqrt(G) + eps); g has
 * the weight decay in it. A row of zeros leaves its row of the table as it is, without decay.
 */
#include "optim/rowwise.h"

#include <math.h>

#include "optim/whole.h"

static float gradient(const ls_update_scalars *s, float grad, float param) {
    return grad * s->grad_scale + s->weight_decay * param;
}

static float rate_of(const ls_update_scalars *s, float squares) {
    return s->lr / (sqrtf(squares) + s->eps);
}

void ls_rowwise_update(const ls_kernels *k, const ls_update_scalars *s, size_t width, float *g,
                       float *row, float *squares) {
    double sum = 0;
    for (size_t i = 0; s->weight_decay != 0 && i < width; i++) g[i] = gradient(s, g[i], row[i]);
    for (size_t at = 0; at < width; at += LS_BLOCK)
        sum += (double)k->sum_squares(width - at < LS_BLOCK ? (int64_t)(width - at) : LS_BLOCK,
                                      g + at);
    *squares += (float)(sum / (double)width);
    float rate = rate_of(s, *squares);
    for (size_t i = 0; i < width; i++) row[i] -= rate * g[i];
}

/* ---- as a rule of whole parameters ---- */

static size_t width_of(const ls_param *p) { return (size_t)p->dims[p->ndims - 1]; }

/* The new sums of all rows. */
static size_t values(const ls_param *p) { return p->count / width_of(p); }

static float mean_square(const ls_whole_call *c, size_t first, size_t width) {
    float g[LS_BLOCK];
    double sum = 0;
    for (size_t at = first, end = first + width; at < end; at += LS_BLOCK) {
        size_t n = end - at < LS_BLOCK ? end - at : LS_BLOCK;
        for (size_t i = 0; i < n; i++) g[i] = gradient(&c->s, c->grads[at + i], c->params[at + i]);
        sum += (double)c->c->k->sum_squares((int64_t)n, g);
    }
    return (float)(sum / (double)width);
}

static void rows_run(void *arg, int thread, int nthreads) {
    const ls_whole_call *c = arg;
    size_t width = width_of(c->p);
    int64_t first = 0, end = 0;
    ls_pool_share((int64_t)values(c->p), 1, thread, nthreads, &first, &end);
    for (size_t r = (size_t)first; r < (size_t)end; r++)
        c->values[r] = c->states[0][r] + mean_square(c, r * width, width);
}

static void compute(const ls_whole_call *c) {
    ls_whole_call call = *c;
    ls_pool_run(c->c->pool, rows_run, &call);
}

static void apply(const ls_whole_call *c, size_t from, size_t n) {
    size_t width = width_of(c->p), nrows = values(c->p);
    for (size_t i = from, end; i < from + n; i = end) {
        size_t row = i / width;
        float rate = rate_of(&c->s, c->values[row]);
        end = (row + 1) * width < from + n ? (row + 1) * width : from + n;
        for (size_t j = i; j < end; j++)
            c->params[j] -= rate * gradient(&c->s, c->grads[j], c->params[j]);
    }
    for (size_t r = from; r < from + n && r < nrows; r++) c->states[0][r] = c->values[r];
}

const ls_whole_rule ls_rowwise = {values, ls_whole_none, compute, apply, ls_whole_no_products};
