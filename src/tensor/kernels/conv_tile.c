/* conv_tile.c - the innermost part of convolutions (tensor/conv.c).
 *
 * A tile is held in registers while two nested loops run over the multiply-adds of its chains. Its
 * rows are pixels of an image or taps of a kernel, its columns are channels. conv_tile multiplies
 * one value of a with a row of b; conv_each, for channels that are convolved separately, multiplies
 * 16 channels of a with 16 of b.
 */
#include "tensor/kernels/conv_tile.h"

#include "tensor/kernels/each.h"

#define UNROLL _Pragma("GCC unroll 16")

typedef struct tile {
    vr c[LS_CONV_ROWS][LS_CONV_REGS];
} tile;

/* Known at compile time: rows and registers in a row; whether a's step over k is 1 (else the step
 * between its rows is). */
typedef struct shape {
    int rows, regs;
    bool along;
} shape;

/* Every fourth row of a has a pointer, so that 16 rows need 4 pointers and 2 multiples of the
 * distance between rows: more would not fit into registers. Compilers would compute one for each
 * row, did the assembly not hide where the pointers come from. */
INLINE void add_steps(tile *t, const ls_conv_tile *w, const shape s, const float *a,
                      const float *b) {
    const int64_t a_inner = s.along ? 1 : w->a_inner, a_row = s.along ? w->a_row : 1;
    const int64_t b_inner = w->b_inner;
    const int fourths = s.along ? (s.rows + 3) / 4 : 1;
    for (int64_t o = 0; o < w->outer; o++) {
        const float *y = b + o * w->b_outer, *x[LS_CONV_ROWS / 4];
        UNROLL for (int f = 0; f < fourths; f++) x[f] = a + o * w->a_outer + 4 * f * a_row;
        for (int64_t i = w->inner; i > 0; i--, y += b_inner) {
            vr columns[LS_CONV_REGS];
            UNROLL for (int q = 0; q < s.regs; q++) columns[q] = r_load(y + q * LS_VR);
            UNROLL for (int p = 0; p < s.rows; p++) {
                vr v = r_set1(s.along ? x[p / 4][p % 4 * a_row] : x[0][p]);
                UNROLL for (int q = 0; q < s.regs; q++) t->c[p][q] =
                    r_fma(v, columns[q], t->c[p][q]);
            }
            UNROLL for (int f = 0; f < fourths; f++) {
                x[f] += a_inner;
                __asm__("" : "+r"(x[f]));
            }
        }
    }
}

INLINE void run_tile(const ls_conv_tile *w, const int rows, const int regs, const float *a,
                     const float *b, float *c) {
    if (rows * regs > LS_CONV_CELLS) return; /* never called: ls_kernels.conv_cells */
    tile t;
    const float *from = w->start ? w->start : c;
    const int64_t step = w->start ? 0 : w->c_row;
    UNROLL for (int p = 0; p < rows; p++) UNROLL for (int q = 0; q < regs; q++) t.c[p][q] =
        r_load(from + p * step + q * LS_VR);
    if (w->a_inner == 1)
        add_steps(&t, w, (shape){rows, regs, true}, a, b);
    else
        add_steps(&t, w, (shape){rows, regs, false}, a, b);
    UNROLL for (int p = 0; p < rows; p++) UNROLL for (int q = 0; q < regs; q++)
        r_store(c + p * w->c_row + q * LS_VR, t.c[p][q]);
}

static void run_narrow(const ls_conv_tile *w, const float *a, const float *b, float *c) {
    switch (w->rows) {
    case 1: run_tile(w, 1, 1, a, b, c); break;
    case 2: run_tile(w, 2, 1, a, b, c); break;
    case 3: run_tile(w, 3, 1, a, b, c); break;
    case 4: run_tile(w, 4, 1, a, b, c); break;
    case 5: run_tile(w, 5, 1, a, b, c); break;
    case 6: run_tile(w, 6, 1, a, b, c); break;
    case 7: run_tile(w, 7, 1, a, b, c); break;
    case 8: run_tile(w, 8, 1, a, b, c); break;
    case 9: run_tile(w, 9, 1, a, b, c); break;
    case 10: run_tile(w, 10, 1, a, b, c); break;
    case 11: run_tile(w, 11, 1, a, b, c); break;
    case 12: run_tile(w, 12, 1, a, b, c); break;
    case 13: run_tile(w, 13, 1, a, b, c); break;
    case 14: run_tile(w, 14, 1, a, b, c); break;
    case 15: run_tile(w, 15, 1, a, b, c); break;
    default: run_tile(w, 16, 1, a, b, c); break;
    }
}

static void run_wide(const ls_conv_tile *w, const float *a, const float *b, float *c) {
    switch (w->rows) {
    case 1: run_tile(w, 1, 2, a, b, c); break;
    case 2: run_tile(w, 2, 2, a, b, c); break;
    case 3: run_tile(w, 3, 2, a, b, c); break;
    case 4: run_tile(w, 4, 2, a, b, c); break;
    case 5: run_tile(w, 5, 2, a, b, c); break;
    case 6: run_tile(w, 6, 2, a, b, c); break;
    case 7: run_tile(w, 7, 2, a, b, c); break;
    default: run_tile(w, 8, 2, a, b, c); break;
    }
}

void LS_K(conv_tile)(const ls_conv_tile *w, const float *a, const float *b, float *c) {
    if (w->regs == 1)
        run_narrow(w, a, b, c);
    else
        run_wide(w, a, b, c);
}

INLINE void run_each(const ls_conv_tile *w, const int rows, const float *a, const float *b,
                     float *c) {
    v16 t[LS_CONV_EACH];
    const float *from = w->start ? w->start : c;
    const int64_t step = w->start ? 0 : w->c_row, a_row = w->a_row;
    UNROLL for (int p = 0; p < rows; p++) t[p] = v_load(from + p * step);
    for (int64_t o = 0; o < w->outer; o++) {
        const float *x = a + o * w->a_outer, *y = b + o * w->b_outer;
        for (int64_t i = w->inner; i > 0; i--, x += w->a_inner, y += w->b_inner) {
            v16 column = v_load(y);
            UNROLL for (int p = 0; p < rows; p++) t[p] = v_fma(v_load(x + p * a_row), column, t[p]);
        }
    }
    UNROLL for (int p = 0; p < rows; p++) v_store(c + p * w->c_row, t[p]);
}

void LS_K(conv_each)(const ls_conv_tile *w, const float *a, const float *b, float *c) {
    switch (w->rows) {
    case 1: run_each(w, 1, a, b, c); break;
    case 2: run_each(w, 2, a, b, c); break;
    case 3: run_each(w, 3, a, b, c); break;
    case 4: run_each(w, 4, a, b, c); break;
    case 5: run_each(w, 5, a, b, c); break;
    default: run_each(w, 6, a, b, c); break;
    }
}
