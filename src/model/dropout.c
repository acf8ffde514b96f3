/* dropout.c - see dropout.h. */
#include "model/dropout.h"

#include <string.h>

#include "model/rows.h"

/* Numbers of a sample that a thread computes at a time, a multiple of the kernel's block. */
enum { PART = 4096 };

typedef struct job {
    const ls_dropout_mask *mask;
    const ls_layer_call *c;
    int64_t count, parts; /* of a sample */
    ls_matrix x;
    float *y;
} job;

bool ls_dropout_acts(const ls_dropout_mask *mask, const ls_layer_call *c) {
    return c->training && mask->rate > 0;
}

ls_dropout_place ls_dropout_place_of(const ls_dropout_mask *mask, const ls_layer_call *c,
                                     int64_t sample) {
    int64_t of = mask->together ? sample * mask->together + mask->which : sample;
    return (ls_dropout_place){.seed = c->seed,
                              .step = (uint32_t)c->step,
                              .sample = (uint32_t)(c->first_sample + (uint64_t)of),
                              .layer = mask->number,
                              .p = mask->rate};
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_kernels *k = j->c->compute->k;
    bool acts = ls_dropout_acts(j->mask, j->c);
    int64_t i = 0, end = 0;
    ls_pool_share(j->c->n * j->parts, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t sample = i / j->parts, first = i % j->parts * PART, left = j->count - first;
        int64_t n = left < PART ? left : PART;
        float *y = j->y + sample * j->count + first;
        const float *x = ls_part_read(k, j->x, 0, sample * j->count + first, n, y);
        ls_dropout_place place = ls_dropout_place_of(j->mask, j->c, sample);
        if (acts)
            k->dropout(&place, j->mask->first + first, n, x, y);
        else if (x != y)
            memcpy(y, x, (size_t)n * sizeof *y);
    }
}

void ls_dropout_run(const ls_dropout_mask *mask, const ls_layer_call *c, int64_t count, ls_matrix x,
                    float *y) {
    job j = {mask, c, count, (count + PART - 1) / PART, x, y};
    ls_pool_run_sized(c->compute->pool, c->n * count, run, &j);
}

void ls_dropout_rows(const ls_layer_call *c, const ls_dropout_mask *mask, int64_t C, float *y) {
    if (ls_dropout_acts(mask, c)) ls_dropout_run(mask, c, c->T * C, ls_matrix_of(y, C), y);
}

ls_matrix ls_dropout_of_dy(const ls_layer *l, const ls_layer_call *c, const ls_dropout_mask *mask,
                           float *room) {
    ls_matrix dy = ls_rows_dy(l, c, l->C);
    if (!ls_dropout_acts(mask, c)) return dy;
    ls_dropout_run(mask, c, c->T * l->C, dy, room);
    return ls_matrix_of(room, l->C);
}

void ls_dropout_declare_rows(ls_layer *l) {
    int64_t n = l->T * l->C;
    l->work_floats += (size_t)n;
    ls_works_dropout(&l->forward_work, n);
    ls_works_dropout(&l->backward_work, n);
    ls_conversions_add(&l->backward_conversions,
                       (ls_conversion){.operand = LS_OPERAND_DY, .numbers = n});
}
