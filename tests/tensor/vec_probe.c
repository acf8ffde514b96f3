/* vec_probe.c - see vec_probe.h. */
#include "tensor/vec_probe.h"

#include "tensor/kernels/variant.h"

vec_probe_fn LS_K(vec_probe);

static float *put(float *out, v16 x) {
    v_store(out, x);
    return out + LS_LANES;
}

void LS_K(vec_probe)(const float *a, const float *b, const float *c, const float *rows,
                     float *out) {
    v16 x = v_load(a), y = v_load(b), z = v_load(c);
    out = put(out, v_max(x, y));
    out = put(out, v_min(x, y));
    out = put(out, v_select(x, y, z, x));
    out = put(out, v_set1((float)v_over(x, y)));
    out = put(out, v_pow2(x));
    out = put(out, v_set1(v_max_lane(x)));
    out = put(out, v_keep(v_load_n(a, 5), 11, b[0]));
    out = put(out, v_add(x, y));
    out = put(out, v_sub(x, y));
    out = put(out, v_mul(x, y));
    out = put(out, v_div(x, y));
    out = put(out, v_sqrt(x));
    out = put(out, v_fma(x, y, z));
    out = put(out, v_fma(v_set1(-a[1]), y, z));
    out = put(out, v_exp(x));
    out = put(out, v_exp(v_mul(x, v_set1(1e-3f))));
    out = put(out, v_set1(v_sum(x)));
    out = put(out, v_set1(v_sum(v_mul(x, y))));
    const float *const lines[4] = {rows, rows + 9, rows + 18, rows + 27};
    v_transpose4(lines, out, 16);
    v_transpose4(lines, out + PROBE_PACKED, 4);
}
