/* vec_dot.h - products of bytes in 256-bit registers, for AVX2 and AVX-512F; see b_dot() in vec.h.
 *
 * VPMADDUBSW multiplies unsigned with signed bytes and adds pairs in 16 bits, where a sum above
 * 32767 would be cut: with bytes up to `most`, a pair is at most 2 * 127 * most, so some of them
 * are added before they are widened. Signed bytes w give |w| and x with the sign of w: |-128| is
 * 128 unsigned, x is never -128, and a pair is at most 2 * 127 * 128 = 32512.
 */
#ifndef LS_TENSOR_VEC_DOT_H
#define LS_TENSOR_VEC_DOT_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

/* Pairs that 16 bits can add. */
static inline int b_pairs(int most) { return 32767 / (2 * 127 * most); }

static inline __m256i b_word(const int8_t *x) {
    int word = 0;
    memcpy(&word, x, sizeof word);
    return _mm256_set1_epi32(word);
}

static inline __m256i b_pair_sums(int most, __m256i w, __m256i x) {
    if (most < 128) return _mm256_maddubs_epi16(w, x);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

static inline __m256i b_dot_256(int most, int n, const __m256i *w, const int8_t *x) {
    const __m256i ones = _mm256_set1_epi16(1);
    const int each = b_pairs(most);
    __m256i all = _mm256_setzero_si256(), pairs = all;
    _Pragma("GCC unroll 8") for (int k = 0; k < n; k++) {
        __m256i some = b_pair_sums(most, w[k], b_word(x + 4 * k));
        pairs = k % each ? _mm256_add_epi16(pairs, some) : some;
        if ((k + 1) % each == 0 || k + 1 == n)
            all = _mm256_add_epi32(all, _mm256_madd_epi16(pairs, ones));
    }
    return all;
}

#endif
