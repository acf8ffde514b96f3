/* vec_transpose.h - turns four rows into four columns in 256-bit registers, for AVX2 and
 * AVX-512. */
#ifndef LS_TENSOR_VEC_TRANSPOSE_H
#define LS_TENSOR_VEC_TRANSPOSE_H

#include <immintrin.h>
#include <stdint.h>

/* out[k * row + i] = p[i][k] for i in 0..3, k in 0..7. */
static inline void v_transpose4(const float *const p[4], float *out, int64_t row) {
    __m256 a[4];
    for (int i = 0; i < 4; i += 2) {
        __m256 x = _mm256_loadu_ps(p[i]), y = _mm256_loadu_ps(p[i + 1]);
        a[i] = _mm256_unpacklo_ps(x, y);
        a[i + 1] = _mm256_unpackhi_ps(x, y);
    }
    for (int k = 0; k < 4; k++) {
        __m256 t = k & 1 ? _mm256_shuffle_ps(a[k / 2], a[k / 2 + 2], 0xee)
                         : _mm256_shuffle_ps(a[k / 2], a[k / 2 + 2], 0x44);
        _mm_storeu_ps(out + k * row, _mm256_castps256_ps128(t));
        _mm_storeu_ps(out + (k + 4) * row, _mm256_extractf128_ps(t, 1));
    }
}

#endif
