/* vec_avx512bf16.h - the instruction for pairs of bf16, with AVX-512; see vec.h. Needs AVX512_BF16:
 * only kernels that use_pairs() or use_amx() chooses may call what is here.
 *
 * VDPBF16PS does two multiply-adds, first of the high halves, then of the low ones; operands and
 * results below 1.2e-38 are zeros, whatever the processor's mode is. Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, VDPBF16PS.
 */
#ifndef LS_TENSOR_VEC_AVX512BF16_H
#define LS_TENSOR_VEC_AVX512BF16_H

#define V_PAIRS
/* vr and __m512bh only differ in name, and compilers differ in whether a cast converts one into the
 * other. */
static inline __m512bh r_as_pairs(vr a) {
    __m512bh pairs;
    memcpy(&pairs, &a, sizeof pairs);
    return pairs;
}
static inline __m512i r_words(__m512bh pairs) {
    __m512i words;
    memcpy(&words, &pairs, sizeof words);
    return words;
}
static inline vr r_dot(vr a, vr b, vr c) {
    return _mm512_dpbf16_ps(c, r_as_pairs(a), r_as_pairs(b));
}

/* Halves i and 16 + i become a pair, the second being its high half. */
static inline vr r_interleave(__m512i both) {
    const __m512i order =
        _mm512_set_epi32(0x001f000f, 0x001e000e, 0x001d000d, 0x001c000c, 0x001b000b, 0x001a000a,
                         0x00190009, 0x00180008, 0x00170007, 0x00160006, 0x00150005, 0x00140004,
                         0x00130003, 0x00120002, 0x00110001, 0x00100000);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, both));
}
static inline vr r_pairs_f32(vr high, vr low) {
    return r_interleave(r_words(_mm512_cvtne2ps_pbh(high, low)));
}
static inline vr r_pairs_bf16(__m256i high, __m256i low) {
    return r_interleave(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
/* 32 values in memory order: the words of values 0 and 2, 1 and 3, 4 and 6 ...; the first value in
 * the high half. */
static inline vr r_block_words(__m512i values) {
    const __m512i order =
        _mm512_set_epi32(0x001d001f, 0x001c001e, 0x0019001b, 0x0018001a, 0x00150017, 0x00140016,
                         0x00110013, 0x00100012, 0x000d000f, 0x000c000e, 0x0009000b, 0x0008000a,
                         0x00050007, 0x00040006, 0x00010003, 0x00000002);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, values));
}
static inline vr r_line_f32(const float *p) {
    return r_block_words(r_words(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(p + 16), _mm512_loadu_ps(p))));
}
static inline vr r_line_bf16(const uint16_t *p) { return r_block_words(_mm512_loadu_si512(p)); }
/* Of words of two values in memory order, k and k + 1 in a, k + 2 and k + 3 in b: the words of k
 * and k + 2, and of k + 1 and k + 3. */
static inline vr r_even_words(v16 a, v16 b) {
    __m512i first = _mm512_castps_si512(a.all), second = _mm512_castps_si512(b.all);
    return _mm512_castsi512_ps(
        _mm512_mask_blend_epi16(0x55555555, _mm512_slli_epi32(first, 16), second));
}
static inline vr r_odd_words(v16 a, v16 b) {
    __m512i first = _mm512_castps_si512(a.all), second = _mm512_castps_si512(b.all);
    return _mm512_castsi512_ps(
        _mm512_mask_blend_epi16(0x55555555, first, _mm512_srli_epi32(second, 16)));
}
static inline void r_store_line_bf16(const float *x, void *p) {
    __m512i words = r_words(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x)));
    memcpy(p, &words, sizeof words);
}
static inline void r_stream_bf16(const float *x, uint16_t *p) {
    __m512 low = _mm512_loadu_ps(x), high = _mm512_loadu_ps(x + 16);
    uint32_t nan = (uint32_t)_mm512_cmp_ps_mask(low, low, _CMP_UNORD_Q) |
                   (uint32_t)_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q) << 16;
    __m512i words = r_words(_mm512_cvtne2ps_pbh(high, low));
    words = _mm512_mask_blend_epi16(nan, words, _mm512_set1_epi32(0x7fc07fc0));
    _mm512_stream_si512((__m512i *)(void *)p, words);
}
static inline void v_stream_end(void) { _mm_sfence(); }
static inline vr r_rows_f32(const float *high, const float *low) {
    return r_pairs_f32(_mm512_loadu_ps(high), _mm512_loadu_ps(low));
}
static inline vr r_rows_bf16(const uint16_t *high, const uint16_t *low) {
    return r_pairs_bf16(_mm256_loadu_si256((const __m256i *)high),
                        _mm256_loadu_si256((const __m256i *)low));
}
/* The word of x[0] and x[2], which have bf16 values, in all lanes. */
static inline vr r_set1_word(const float *x) {
    uint32_t first, second;
    memcpy(&first, x, sizeof first);
    memcpy(&second, x + 2, sizeof second);
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)(first | second >> 16)));
}
/* sum + x[0] * w0, then + x[2] * w2, the weights rounded to bf16; x has bf16 values. */
static inline v16 r_add_two(const float *x, v16 w0, v16 w2, v16 sum) {
    return (v16){r_dot(r_set1_word(x), r_pairs_f32(w0.all, w2.all), sum.all)};
}
static inline void r_store_half(float *p, vr a, int half) {
    __m512i all = _mm512_castps_si512(a);
    __m256i part = half ? _mm512_extracti64x4_epi64(all, 1) : _mm512_castsi512_si256(all);
    _mm256_storeu_si256((__m256i *)(void *)p, part);
}

#endif
