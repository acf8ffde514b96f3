/* real.h - numbers with fractions as samples have them: f64, f32 or f16. */
#ifndef LS_SOURCE_REAL_H
#define LS_SOURCE_REAL_H

#include <assert.h>
#include <string.h>

#include "tensor/dtype.h"

static inline bool ls_is_real(ls_dtype t) { return t == LS_F64 || t == LS_F32 || t == LS_F16; }

double ls_real_of_f16(uint16_t bits);

/* Inline, since each value of a sample that is read goes through it. */
static inline double ls_real_at(ls_dtype t, const void *from) {
    double f64 = 0;
    float f32 = 0;
    uint16_t f16 = 0;
    assert(ls_is_real(t));
    if (t == LS_F32) {
        memcpy(&f32, from, sizeof f32);
        return (double)f32;
    }
    if (t == LS_F16) {
        memcpy(&f16, from, sizeof f16);
        return ls_real_of_f16(f16);
    }
    memcpy(&f64, from, sizeof f64);
    return f64;
}

/* Writes the nearest one. */
void ls_real_set(ls_dtype, double x, void *to);

#endif
