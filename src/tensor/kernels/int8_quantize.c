/* int8_quantize.c - activations as int8, in blocks of 32: the rule is in tensor/int8.h. */
#include <float.h>

#include "tensor/kernels/variant.h"

enum { HALF = LS_INT8_GROUP / 2 };

static v16 magnitude(v16 x) { return v_max(x, v_sub(v_set1(0.0f), x)); }

static bool all_finite(v16 magnitudes) { return v_over(v_set1(INFINITY), magnitudes) == 0xffff; }

/* Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits. */
static void put_numbers(v16 x, float d, int8_t *q) {
    uint32_t bits[LS_LANES];
    float t[LS_LANES];
    v_store(t, v_add(v_div(x, v_set1(d)), v_set1(12582912.0f)));
    memcpy(bits, t, sizeof bits);
    for (int i = 0; i < LS_LANES; i++) q[i] = (int8_t)(uint8_t)(bits[i] & 255);
}

static int32_t sum_of(const int8_t *q) {
    int32_t sum = 0;
    for (int i = 0; i < HALF; i++) sum += q[i];
    return sum;
}

static void quantize(const float *x, ls_int8_block *b) {
    v16 lo = v_load(x), hi = v_load(x + HALF), most_lo = magnitude(lo), most_hi = magnitude(hi);
    float d = v_max_lane(v_max(most_lo, most_hi)) / 127.0f;
    *b = (ls_int8_block){.d = 0};
    if (!all_finite(most_lo) || !all_finite(most_hi)) {
        b->d = b->shift = NAN;
        return;
    }
    if (d < FLT_MIN) return;
    put_numbers(lo, d, b->q);
    put_numbers(hi, d, b->q + HALF);
    b->d = d;
    b->first = sum_of(b->q);
    b->sum = b->first + sum_of(b->q + HALF);
    b->shift = d * (float)b->sum;
}

void LS_K(int8_quantize)(int64_t C, const float *x, ls_int8_block *out, int64_t stride) {
    for (int64_t i = 0; i < C; i += LS_INT8_GROUP, out += stride) quantize(x + i, out);
}
