/* rope.c - turns pairs of numbers by angles: positions for attention.
 *
 * Su, Lu, Pan, Murtadha, Wen & Liu, "RoFormer: enhanced transformer with rotary position
 * embedding", Neurocomputing 568 (2024), with the pairs of GPT-NeoX: element i with element D / 2 +
 * i. */
#include "tensor/kernels/variant.h"

void LS_K(rope)(int64_t heads, int64_t D, const float *turn, bool back, const float *x, float *y) {
    const v16 sign = v_set1(back ? -1.0f : 1.0f);
    int64_t half = D / 2;
    for (int64_t h = 0; h < heads; h++, x += D, y += D)
        for (int64_t i = 0; i < half; i += LS_LANES) {
            v16 c = v_load_n(turn + i, half - i);
            v16 s = v_mul(v_load_n(turn + half + i, half - i), sign);
            v16 a = v_load_n(x + i, half - i), b = v_load_n(x + half + i, half - i);
            v16 first = v_fma(a, c, v_sub(v_set1(0.0f), v_mul(b, s)));
            v16 second = v_fma(b, c, v_mul(a, s));
            v_store_n(y + i, first, half - i);
            v_store_n(y + half + i, second, half - i);
        }
}
