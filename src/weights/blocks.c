/* blocks.c - see blocks.h. */
#include "weights/blocks.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { SMALL = 32 }; /* elements of the smaller blocks */

/* ---- 16-bit floats ---- */

/* The kernel rounds to nearest, ties to even. */
static bool pack_half(ls_dtype type, int64_t n, const float *x, uint8_t *y) {
    const unsigned infinity = type == LS_F16 ? 0x7c00 : 0x7f80;
    const ls_kernels *k = ls_kernels_at(0);
    bool finite = true;
    k->narrow(type, (size_t)n, x, y);
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, y + 2 * i, sizeof h);
        finite &= (h & infinity) != infinity;
    }
    return finite;
}

static bool pack_f16(int64_t n, const float *x, uint8_t *y) { return pack_half(LS_F16, n, x, y); }
static bool pack_bf16(int64_t n, const float *x, uint8_t *y) { return pack_half(LS_BF16, n, x, y); }

static bool pack_f32(int64_t n, const float *x, uint8_t *y) {
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= isfinite(x[i]) != 0;
    if (n > 0) memcpy(y, x, (size_t)n * sizeof *x);
    return finite;
}

/* ---- blocks of 32 ---- */

static bool all_finite(const float x[SMALL]) {
    bool finite = true;
    for (int i = 0; i < SMALL; i++) finite &= isfinite(x[i]) != 0;
    return finite;
}

/* 1 / d, and 0 where that is not a number: such a scale is 0 as f16 as well. */
static float inverse(float d) {
    float inverse = 1.0f / d;
    return isfinite(inverse) ? inverse : 0.0f;
}

/* An integer from 0 to `most`; x is at least 0.5. */
static uint8_t truncate_to(float x, int most) {
    int i = (int)x;
    return (uint8_t)(i < most ? i : most);
}

/* Numbers of up to five bits: the low nibbles belong to the first half; a fifth bit to `fifth`. */
static void put_numbers(const uint8_t q[SMALL], uint8_t *fifth, uint8_t *y) {
    for (int i = 0; i < SMALL / 2; i++)
        y[i] = (uint8_t)((q[i] & 15) | (q[i + SMALL / 2] & 15) << 4);
    if (!fifth) return;
    memset(fifth, 0, SMALL / 8);
    for (int i = 0; i < SMALL; i++) fifth[i / 8] = (uint8_t)(fifth[i / 8] | (q[i] >> 4) << i % 8);
}

static bool pack_q8_0(int64_t n, const float *x, uint8_t *y) {
    for (; n-- > 0; x += SMALL, y += 34) {
        float most = 0;
        for (int i = 0; i < SMALL; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        float d = most / 127.0f, by = inverse(d);
        if (!all_finite(x) || !pack_f16(1, &d, y)) return false;
        for (int i = 0; i < SMALL; i++) y[2 + i] = (uint8_t)(int8_t)roundf(x[i] * by);
    }
    return true;
}

/* The number of the largest magnitude, the first of equals, becomes -middle. */
static bool pack_centred(const float x[SMALL], int middle, uint8_t *scale, uint8_t q[SMALL]) {
    float most = 0, largest = x[0];
    for (int i = 0; i < SMALL; i++)
        if (fabsf(x[i]) > most) most = fabsf(x[i]), largest = x[i];
    float d = largest / (float)-middle, by = inverse(d);
    if (!all_finite(x) || !pack_f16(1, &d, scale)) return false;
    for (int i = 0; i < SMALL; i++)
        q[i] = truncate_to(x[i] * by + ((float)middle + 0.5f), 2 * middle - 1);
    return true;
}

/* The least number becomes 0, the greatest `most`. */
static bool pack_affine(const float x[SMALL], int most, uint8_t *scales, uint8_t q[SMALL]) {
    float ends[2] = {x[0], x[0]}; /* greatest, least */
    for (int i = 0; i < SMALL; i++) {
        ends[0] = x[i] > ends[0] ? x[i] : ends[0];
        ends[1] = x[i] < ends[1] ? x[i] : ends[1];
    }
    float least = ends[1], d = (ends[0] - least) / (float)most, by = inverse(d);
    ends[0] = d;
    if (!all_finite(x) || !pack_f16(2, ends, scales)) return false;
    for (int i = 0; i < SMALL; i++) q[i] = truncate_to((x[i] - least) * by + 0.5f, most);
    return true;
}

static bool pack_q4_0(int64_t n, const float *x, uint8_t *y) {
    uint8_t q[SMALL];
    for (; n-- > 0; x += SMALL, y += 18) {
        if (!pack_centred(x, 8, y, q)) return false;
        put_numbers(q, NULL, y + 2);
    }
    return true;
}

static bool pack_q4_1(int64_t n, const float *x, uint8_t *y) {
    uint8_t q[SMALL];
    for (; n-- > 0; x += SMALL, y += 20) {
        if (!pack_affine(x, 15, y, q)) return false;
        put_numbers(q, NULL, y + 4);
    }
    return true;
}

static bool pack_q5_0(int64_t n, const float *x, uint8_t *y) {
    uint8_t q[SMALL];
    for (; n-- > 0; x += SMALL, y += 22) {
        if (!pack_centred(x, 16, y, q)) return false;
        put_numbers(q, y + 2, y + 6);
    }
    return true;
}

static bool pack_q5_1(int64_t n, const float *x, uint8_t *y) {
    uint8_t q[SMALL];
    for (; n-- > 0; x += SMALL, y += 24) {
        if (!pack_affine(x, 31, y, q)) return false;
        put_numbers(q, y + 4, y + 8);
    }
    return true;
}

/* ---- the table ---- */

static const ls_block_info table[LS_NBLOCK_TYPES] = {
    [LS_BLOCK_F32] = {"F32", 0, 1, 4, pack_f32},
    [LS_BLOCK_F16] = {"F16", 1, 1, 2, pack_f16},
    [LS_BLOCK_BF16] = {"BF16", 30, 1, 2, pack_bf16},
    [LS_BLOCK_Q8_0] = {"Q8_0", 8, SMALL, 34, pack_q8_0},
    [LS_BLOCK_Q4_0] = {"Q4_0", 2, SMALL, 18, pack_q4_0},
    [LS_BLOCK_Q4_1] = {"Q4_1", 3, SMALL, 20, pack_q4_1},
    [LS_BLOCK_Q5_0] = {"Q5_0", 6, SMALL, 22, pack_q5_0},
    [LS_BLOCK_Q5_1] = {"Q5_1", 7, SMALL, 24, pack_q5_1},
    [LS_BLOCK_Q4_K] = {"Q4_K", 12, LS_BLOCK_MOST, 144, NULL},
    [LS_BLOCK_Q5_K] = {"Q5_K", 13, LS_BLOCK_MOST, 176, NULL},
    [LS_BLOCK_Q6_K] = {"Q6_K", 14, LS_BLOCK_MOST, 210, NULL},
    [LS_BLOCK_Q3_K] = {"Q3_K", 11, LS_BLOCK_MOST, 110, NULL},
    [LS_BLOCK_Q2_K] = {"Q2_K", 10, LS_BLOCK_MOST, 84, NULL},
    [LS_BLOCK_IQ4_NL] = {"IQ4_NL", 20, SMALL, 18, NULL},
    [LS_BLOCK_IQ4_XS] = {"IQ4_XS", 23, LS_BLOCK_MOST, 136, NULL},
};

const ls_block_info *ls_block_of(ls_block_type t) {
    assert((unsigned)t < LS_NBLOCK_TYPES);
    return &table[t];
}

bool ls_block_named(const char *name, ls_block_type *t_p) {
    for (int t = 0; t < LS_NBLOCK_TYPES; t++)
        if (strcasecmp(table[t].name, name) == 0) {
            *t_p = (ls_block_type)t;
            return true;
        }
    return false;
}

bool ls_block_of_gguf(uint32_t number, ls_block_type *t_p) {
    for (int t = 0; t < LS_NBLOCK_TYPES; t++)
        if (table[t].gguf == number) {
            *t_p = (ls_block_type)t;
            return true;
        }
    return false;
}

/* ggml_type and its sizes in ggml.h and ggml-common.h. */
const ls_gguf_type *ls_gguf_type_of(uint32_t number) {
    static const ls_gguf_type types[] = {
        [0] = {"F32", 1, 4},         [1] = {"F16", 1, 2},         [2] = {"Q4_0", 32, 18},
        [3] = {"Q4_1", 32, 20},      [6] = {"Q5_0", 32, 22},      [7] = {"Q5_1", 32, 24},
        [8] = {"Q8_0", 32, 34},      [9] = {"Q8_1", 32, 40},      [10] = {"Q2_K", 256, 84},
        [11] = {"Q3_K", 256, 110},   [12] = {"Q4_K", 256, 144},   [13] = {"Q5_K", 256, 176},
        [14] = {"Q6_K", 256, 210},   [15] = {"Q8_K", 256, 292},   [16] = {"IQ2_XXS", 256, 66},
        [17] = {"IQ2_XS", 256, 74},  [18] = {"IQ3_XXS", 256, 98}, [19] = {"IQ1_S", 256, 50},
        [20] = {"IQ4_NL", 32, 18},   [21] = {"IQ3_S", 256, 110},  [22] = {"IQ2_S", 256, 82},
        [23] = {"IQ4_XS", 256, 136}, [24] = {"I8", 1, 1},         [25] = {"I16", 1, 2},
        [26] = {"I32", 1, 4},        [27] = {"I64", 1, 8},        [28] = {"F64", 1, 8},
        [29] = {"IQ1_M", 256, 56},   [30] = {"BF16", 1, 2},       [34] = {"TQ1_0", 256, 54},
        [35] = {"TQ2_0", 256, 66},   [39] = {"MXFP4", 32, 17},    [40] = {"NVFP4", 64, 36},
        [41] = {"Q1_0", 128, 18}};
    return number < sizeof types / sizeof *types && types[number].name ? &types[number] : NULL;
}

void ls_block_put_writable(ls_buf *out) {
    int left = 0;
    for (int t = 0; t < LS_NBLOCK_TYPES; t++) left += table[t].pack != NULL;
    for (int t = 0; t < LS_NBLOCK_TYPES; t++)
        if (table[t].pack) {
            left--;
            ls_buf_printf(out, "%s%s", table[t].name, left > 1 ? ", " : left ? " or " : "");
        }
}
