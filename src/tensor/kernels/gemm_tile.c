/* gemm_tile.c - the innermost part of the GEMM and the packing that feeds it.
 *
 * A tile of c [6, 16] is held in registers while k runs over the panel: each element is one chain
 * of multiply-adds over k, in order, continued from `start` or from what c holds.
 *
 * Packed a: [K][6], packed b: [K][16]; rows and columns beyond the matrix are zeros.
 */
#include "tensor/kernels/variant.h"

/* start: NULL continues from c; else 16 values that every row begins with (a bias, or zeros). */
void LS_K(gemm_tile)(int64_t K, const float *restrict a, const float *restrict b,
                     const float *start, float *restrict c, int64_t ldc) {
    v16 c0, c1, c2, c3, c4, c5;
    if (start) {
        c0 = c1 = c2 = c3 = c4 = c5 = v_load(start);
    } else {
        c0 = v_load(c), c1 = v_load(c + ldc), c2 = v_load(c + 2 * ldc);
        c3 = v_load(c + 3 * ldc), c4 = v_load(c + 4 * ldc), c5 = v_load(c + 5 * ldc);
    }
    for (int64_t k = 0; k < K; k++) {
        v16 bk = v_load(b);
        c0 = v_fma(v_set1(a[0]), bk, c0);
        c1 = v_fma(v_set1(a[1]), bk, c1);
        c2 = v_fma(v_set1(a[2]), bk, c2);
        c3 = v_fma(v_set1(a[3]), bk, c3);
        c4 = v_fma(v_set1(a[4]), bk, c4);
        c5 = v_fma(v_set1(a[5]), bk, c5);
        a += LS_TILE_M;
        b += LS_TILE_N;
    }
    v_store(c, c0), v_store(c + ldc, c1), v_store(c + 2 * ldc, c2);
    v_store(c + 3 * ldc, c3), v_store(c + 4 * ldc, c4), v_store(c + 5 * ldc, c5);
}

/* Full lines whose values follow each other. Of 6 lines the last two are taken twice, and what is
 * written beyond a row is overwritten by the next; so the last rows are copied one by one. */
static inline void pack_lines(int64_t depth, const float *p, int64_t line, int64_t width,
                              float *restrict out) {
    int64_t k = 0;
    for (; k + 8 < depth; k += 8)
        for (int64_t first = 0; first < width; first += 8) {
            const float *lines[8];
            for (int64_t i = 0; i < 8; i++)
                lines[i] = p + (first + i < width ? first + i : width - 1) * line + k;
            v_transpose8(lines, out + k * width + first, width);
        }
    for (; k < depth; k++)
        for (int64_t i = 0; i < width; i++) out[k * width + i] = p[i * line + k];
}

/* One strip of `width` (6 or 16) lines of `depth` values, interleaved: out[k * width + i] is value
 * k of line i. Lines are `line` apart, values `step`; lines from `n` on are zeros. */
static inline void pack_strip(int64_t n, int64_t depth, const float *p, int64_t line, int64_t step,
                              int64_t width, float *restrict out) {
    if (n == width && line == 1) {
        for (int64_t k = 0; k < depth; k++)
            memcpy(out + k * width, p + k * step, (size_t)width * sizeof *out);
        return;
    }
    if (n == width && step == 1) {
        pack_lines(depth, p, line, width, out);
        return;
    }
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < width; i++)
            out[k * width + i] = i < n ? p[i * line + k * step] : 0.0f;
}

/* a [M, K] with strides rs, cs -> strips of 6 rows. */
void LS_K(pack_a)(int64_t M, int64_t K, const float *a, int64_t rs, int64_t cs, float *out) {
    for (int64_t i = 0; i < M; i += LS_TILE_M, out += K * LS_TILE_M)
        pack_strip(M - i < LS_TILE_M ? M - i : LS_TILE_M, K, a + i * rs, rs, cs, LS_TILE_M, out);
}

/* b [K, N] with strides rs, cs -> strips of 16 columns. */
void LS_K(pack_b)(int64_t K, int64_t N, const float *b, int64_t rs, int64_t cs, float *out) {
    for (int64_t j = 0; j < N; j += LS_TILE_N, out += K * LS_TILE_N)
        pack_strip(N - j < LS_TILE_N ? N - j : LS_TILE_N, K, b + j * cs, cs, rs, LS_TILE_N, out);
}

float LS_K(fma_peak)(int64_t rounds) {
    const v16 x = v_set1(0.999999f), y = v_set1(1e-7f);
    float begin[6 * LS_LANES]; /* all different, or the compiler would compute equal chains once */
    for (int i = 0; i < 6 * LS_LANES; i++) begin[i] = 0.01f * (float)i;
    v16 c0 = v_load(begin), c1 = v_load(begin + 16), c2 = v_load(begin + 32);
    v16 c3 = v_load(begin + 48), c4 = v_load(begin + 64), c5 = v_load(begin + 80);
    for (int64_t i = 0; i < rounds; i++) {
        for (int j = 0; j < 32; j++) {
            c0 = v_fma(c0, x, y), c1 = v_fma(c1, x, y), c2 = v_fma(c2, x, y);
            c3 = v_fma(c3, x, y), c4 = v_fma(c4, x, y), c5 = v_fma(c5, x, y);
        }
    }
    return v_sum(v_add(v_add(v_add(c0, c1), v_add(c2, c3)), v_add(c4, c5)));
}
