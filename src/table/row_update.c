/* row_update.c - see row_update.h. */
#include "table/row_update.h"

#include <math.h>

#include "base/math.h"

ls_row_update ls_row_update_at(const ls_table_config *c, int64_t clock, double lr) {
    ls_row_update u = {.c = c,
                       .eps = (float)c->eps,
                       .decay = (float)c->weight_decay,
                       .beta1 = (float)c->beta1,
                       .beta2 = (float)c->beta2,
                       .rest1 = (float)(1 - c->beta1),
                       .rest2 = (float)(1 - c->beta2)};
    uint64_t t = (uint64_t)clock + 1;
    if (c->optimizer == LS_ROW_ADAGRAD) lr /= 1 + (double)clock * c->lr_decay;
    if (c->optimizer == LS_ROW_ADAM)
        lr *= sqrt(1 - ls_math_pow_int(c->beta2, t)) / (1 - ls_math_pow_int(c->beta1, t));
    u.lr = (float)lr;
    return u;
}

/* In 16 lanes, which are then added in order: the bits don't depend on the processor. */
static float mean_of_squares(const float *g, int n) {
    float lanes[16] = {0}, sum = 0;
    int i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++) lanes[k] += g[i + k] * g[i + k];
    for (int k = 0; i + k < n; k++) lanes[k] += g[i + k] * g[i + k];
    for (int k = 0; k < 16; k++) sum += lanes[k];
    return sum / (float)n;
}

static void adam(const ls_row_update *u, const ls_row *row, const float *g) {
    float *m = row->states, *v = row->states + u->c->width;
    for (int i = 0; i < u->c->width; i++) {
        m[i] = u->beta1 * m[i] + u->rest1 * g[i];
        v[i] = u->beta2 * v[i] + u->rest2 * (g[i] * g[i]);
        row->values[i] -= u->lr * m[i] / (sqrtf(v[i]) + u->eps);
    }
}

void ls_row_update_run(const ls_row_update *u, const ls_row *row, float *g) {
    int n = u->c->width;
    float lr = u->lr;
    if (u->decay != 0)
        for (int i = 0; i < n; i++) g[i] += u->decay * row->values[i];
    if (u->c->optimizer == LS_ROW_ADAM) {
        adam(u, row, g);
        return;
    }
    if (u->c->optimizer == LS_ROW_ADAGRAD) {
        row->states[0] += mean_of_squares(g, n);
        lr /= sqrtf(row->states[0]) + u->eps;
    }
    for (int i = 0; i < n; i++) row->values[i] -= lr * g[i];
}
