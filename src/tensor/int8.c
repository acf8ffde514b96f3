/* int8.c - see int8.h.
 *
 * Rows are quantized in panels: [panel][C / 32][rows of a panel], in the work memory of thread 0,
 * which all threads read. If not all rows fit, some are computed after the others. Threads cut the
 * result into a grid of panels and of rows of weights.
 */
#include "tensor/int8.h"

#include <assert.h>

#include "base/min.h"
#include "tensor/gemm.h"

enum {
    WORK = LS_GEMM_WORK * 4, /* bytes */
    FEW_OUTPUTS = 32,        /* of one row, which one thread computes */
    PRODUCTS = 64,           /* that take as long as an element of few operations */
    UNPACK = 3               /* as many rows of a panel take as long as unpacking the weights */
};

bool ls_int8_takes(ls_block_type t) { return ls_block_elements(t) > 1; }

/* Some rows, and the grid of threads that computes them. */
typedef struct part {
    const ls_compute *compute;
    const ls_int8_product *whole;
    int64_t first, n; /* rows */
    int64_t panel;    /* rows of a panel; the last may have fewer */
    int rows, columns;
    ls_int8_block *blocks;
} part;

static int64_t ceil_of(int64_t n, int64_t by) { return (n + by - 1) / by; }

static int64_t nblocks_of(const ls_int8_product *g) { return g->C / LS_INT8_GROUP; }

/* Rows of weights that a thread's share is a multiple of. */
static int64_t unit_of(const ls_int8_product *g) {
    return g->w.strips ? LS_GEMV_GROUP : LS_INT8_GROUP;
}

static void quantize_run(void *arg, int thread, int nthreads) {
    const part *p = arg;
    const ls_int8_product *g = p->whole;
    int64_t r = 0, end = 0;
    ls_pool_share(p->n, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        int64_t first = r / p->panel * p->panel, R = ls_min(p->panel, p->n - first);
        p->compute->k->int8_quantize(g->C, g->x + (p->first + r) * g->ldx,
                                     p->blocks + first * nblocks_of(g) + (r - first), R);
    }
}

static void product_run(void *arg, int thread, int nthreads) {
    const part *p = arg;
    const ls_int8_product *g = p->whole;
    int64_t v = 0, v_end = 0, panel = 0, panel_end = 0;
    (void)nthreads;
    ls_pool_share(g->V, unit_of(g), thread % p->columns, p->columns, &v, &v_end);
    ls_pool_share(ceil_of(p->n, p->panel), 1, thread / p->columns, p->rows, &panel, &panel_end);
    const char *strips = g->w.strips;
    ls_int8_job j = {.w = ls_stored_at(g->w, v * g->C),
                     .V = v_end - v,
                     .C = g->C,
                     .bias = g->bias ? g->bias + v : NULL,
                     .add = g->add,
                     .ldy = g->ldy};
    if (strips) j.w.strips = strips + ls_block_nbytes(g->w.type, v * g->C);
    for (; panel < panel_end && v < v_end; panel++) {
        int64_t first = panel * p->panel;
        j.R = ls_min(p->panel, p->n - first);
        j.x = p->blocks + first * nblocks_of(g);
        j.y = g->y + (p->first + first) * g->ldy + v;
        p->compute->k->int8_rows(&j);
    }
}

/* The grid whose largest part is done first, with panels that fill its rows. */
static void choose_grid(part *p, int most) {
    const ls_int8_product *g = p->whole;
    int64_t least = INT64_MAX;
    for (int rows = 1; rows <= most; rows++) {
        int columns = most / rows;
        int64_t each = ceil_of(ceil_of(p->n, rows), LS_INT8_ROWS); /* panels of a part */
        int64_t panel = ceil_of(p->n, each * rows);
        int64_t V = ceil_of(ceil_of(g->V, unit_of(g)), columns) * unit_of(g);
        int64_t time = V * each * (panel + UNPACK);
        if (time >= least) continue;
        least = time;
        p->rows = rows, p->columns = columns, p->panel = panel;
    }
}

void ls_int8_multiply(const ls_compute *c, const ls_int8_product *g) {
    const int64_t row_nbytes = nblocks_of(g) * (int64_t)sizeof(ls_int8_block);
    const int64_t fits = row_nbytes ? WORK / row_nbytes : g->M;
    assert(ls_int8_takes(g->w.type) && (fits > 0 || g->M == 0));
    for (int64_t first = 0; first < g->M; first += fits) {
        part p = {.compute = c,
                  .whole = g,
                  .first = first,
                  .n = ls_min(fits, g->M - first),
                  .blocks = (ls_int8_block *)(void *)ls_compute_gemm_work(c, 0)};
        double work = (double)p.n * (double)g->C * (double)g->V / PRODUCTS;
        int most =
            p.n == 1 && g->V > FEW_OUTPUTS ? c->nthreads : ls_pool_threads_for(c->pool, work);
        choose_grid(&p, most);
        ls_pool_run_sized(c->pool, p.n > 1 ? p.n * g->C : 0, quantize_run, &p);
        ls_pool_run_in(c->pool, p.rows * p.columns, product_run, &p);
    }
}
