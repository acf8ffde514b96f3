/* blocks_test.c - element types of weight files: reading against the layout's definition, one
 * element at a time in double precision; writing against bytes that the Python package gguf 0.19
 * wrote. */
#include "weights/blocks.h"

#include <math.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "tensor/block_scales.h"
#include "test.h"

enum { BLOCKS = 5 };

/* ---- the definition: element i of a block, by the table in tensor/block.h ---- */

static double half_at(const uint8_t *p) {
    int h = p[0] | p[1] << 8, exponent = h >> 10 & 31, rest = h & 1023;
    double x = exponent ? ldexp(rest + 1024, exponent - 25) : ldexp(rest, -24);
    return h & 0x8000 ? -x : x;
}

static int bit_of(const uint8_t *p, int i) { return p[i / 8] >> i % 8 & 1; }

static int nibble_of(const uint8_t *p, int i) { return i < 16 ? p[i] & 15 : p[i - 16] >> 4; }

/* Bits 6g to 6g + 5 of a group's scale or minimum: docs of block_q4_K in ggml-common.h. */
static int six_bits(const uint8_t *b, int g, bool minimum) {
    if (g < 4) return b[g + 4 * minimum] & 63;
    int low = minimum ? b[g + 4] >> 4 : b[g + 4] & 15;
    return low | b[g - 4 + 4 * minimum] >> 6 << 4;
}

static double k_value(const uint8_t *b, int g, int q) {
    double d = (double)(float)(half_at(b) * six_bits(b + 4, g, false));
    return (double)(float)(d * q) - (double)(float)(half_at(b + 2) * six_bits(b + 4, g, true));
}

static const int entries[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

/* Products of f16 and these numbers have at most 24 digits: they are exact in f32 and in double. */
static float value_of(ls_block_type t, const uint8_t *b, int i) {
    int q, k, g = i / 32, at = i % 32;
    float x;
    uint32_t u;
    switch (t) {
    case LS_BLOCK_F32: memcpy(&x, b, sizeof x); return x;
    case LS_BLOCK_F16: return (float)half_at(b);
    case LS_BLOCK_BF16:
        u = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 24;
        memcpy(&x, &u, sizeof x);
        return x;
    case LS_BLOCK_Q8_0: return (float)(half_at(b) * (b[2 + i] < 128 ? b[2 + i] : b[2 + i] - 256));
    case LS_BLOCK_Q4_0: return (float)(half_at(b) * (nibble_of(b + 2, i) - 8));
    case LS_BLOCK_Q4_1: return (float)(half_at(b) * nibble_of(b + 4, i) + half_at(b + 2));
    case LS_BLOCK_Q5_0:
        return (float)(half_at(b) * ((nibble_of(b + 6, i) | bit_of(b + 2, i) << 4) - 16));
    case LS_BLOCK_Q5_1:
        q = nibble_of(b + 8, i) | bit_of(b + 4, i) << 4;
        return (float)(half_at(b) * q + half_at(b + 2));
    case LS_BLOCK_Q4_K: return (float)k_value(b, g, b[16 + g / 2 * 32 + at] >> 4 * (g % 2) & 15);
    case LS_BLOCK_Q5_K:
        q = (b[48 + g / 2 * 32 + at] >> 4 * (g % 2) & 15) | (b[16 + at] >> g & 1) << 4;
        return (float)k_value(b, g, q);
    case LS_BLOCK_Q6_K:
        q = b[i / 128 * 64 + i % 64] >> (i % 128 < 64 ? 0 : 4) & 15;
        q |= (b[128 + i / 128 * 32 + at] >> 2 * (i % 128 / 32) & 3) << 4;
        g = b[192 + i / 16];
        return (float)(half_at(b + 208) * (g < 128 ? g : g - 256) * (q - 32));
    case LS_BLOCK_Q3_K:
        k = i / 16;
        q = (b[32 + i / 128 * 32 + at] >> 2 * (g % 4) & 3) - (b[at] >> g & 1 ? 0 : 4);
        k = (b[96 + k % 8] >> (k < 8 ? 0 : 4) & 15) + 16 * (b[104 + k % 4] >> k / 4 * 2 & 3) - 32;
        return (float)((double)(float)(half_at(b + 108) * k) * q);
    case LS_BLOCK_Q2_K:
        q = b[16 + i / 128 * 32 + at] >> 2 * (g % 4) & 3;
        return (float)((double)(float)(half_at(b + 80) * (b[i / 16] & 15)) * q -
                       (double)(float)(half_at(b + 82) * (b[i / 16] >> 4)));
    case LS_BLOCK_IQ4_NL: return (float)(half_at(b) * entries[nibble_of(b + 2, i)]);
    case LS_BLOCK_IQ4_XS:
        k = (b[4 + g / 2] >> 4 * (g % 2) & 15) + 16 * ((b[2] | b[3] << 8) >> 2 * g & 3) - 32;
        q = entries[nibble_of(b + 8 + 16 * g, at)];
        return (float)((double)(float)(half_at(b) * k) * q);
    case LS_NBLOCK_TYPES: break;
    }
    return NAN;
}

/* ---- reading ---- */

static void set_half(uint8_t *p, unsigned h) {
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* Random bytes with finite f16 scales, subnormal ones too. */
static void fill(ls_block_type t, uint8_t *x) {
    const ls_block_info *b = ls_block_of(t);
    size_t nbytes = (size_t)(BLOCKS * LS_BLOCK_MOST / b->elements * b->nbytes);
    for (size_t i = 0; i < nbytes; i++) {
        uint32_t w[4];
        ls_random_words(21, LS_STREAM_SAMPLE, (uint64_t)t, i, w);
        x[i] = (uint8_t)(w[0] >> 9);
    }
    bool wide = b->elements > 1;
    for (size_t i = 0; i < nbytes; i += (size_t)b->nbytes) {
        int at = 0, n = block_scales(t, &at);
        uint8_t *scale = x + i + at;
        if (t == LS_BLOCK_F32 || t == LS_BLOCK_BF16) scale[b->nbytes - 1] &= 0xbf;
        if (t == LS_BLOCK_F16 || wide)
            set_half(scale, (unsigned)(scale[0] | scale[1] << 8) & 0xbfffu);
        if (n == 2) set_half(scale + 2, (unsigned)(scale[2] | scale[3] << 8) & 0xbfffu);
    }
    int at = 0;
    block_scales(t, &at);
    if (wide) set_half(x + at, 0x8003); /* subnormal */
}

static void test_values(void **state) {
    (void)state;
    static uint8_t x[4 * BLOCKS * LS_BLOCK_MOST];
    static float y[BLOCKS * LS_BLOCK_MOST];
    for (int i = 0; i < LS_NBLOCK_TYPES; i++) {
        ls_block_type t = (ls_block_type)i;
        const ls_block_info *b = ls_block_of(t);
        const ls_kernels *k = NULL;
        fill(t, x);
        for (int v = 0; (k = ls_kernels_at(v)); v++) {
            memset(y, 0xff, sizeof y);
            k->unpack[t](BLOCKS * LS_BLOCK_MOST / b->elements, x, y);
            for (int j = 0; j < BLOCKS * LS_BLOCK_MOST; j++) {
                float want = value_of(t, x + j / b->elements * b->nbytes, j % b->elements);
                if (memcmp(&want, &y[j], sizeof want) != 0)
                    fail_msg("%s, %s, element %d: %a, want %a", b->name, k->name, j, (double)y[j],
                             (double)want);
            }
        }
    }
}

/* CRC-32C of the values that gguf has for blocks of some bytes, with scales that are infinite, NaN,
 * subnormal, a negative zero and the greatest; each NaN is 0x7fc00000. */
static const struct {
    ls_block_type type;
    uint32_t crc;
} recorded[] = {
    {LS_BLOCK_Q8_0, 0x5cf88162}, {LS_BLOCK_Q4_0, 0x1de181c5},   {LS_BLOCK_Q4_1, 0x83eca30e},
    {LS_BLOCK_Q5_0, 0x039f0e0c}, {LS_BLOCK_Q5_1, 0xbc8f0e9a},   {LS_BLOCK_Q4_K, 0x1af67e07},
    {LS_BLOCK_Q5_K, 0x02c72472}, {LS_BLOCK_Q6_K, 0x86e1d202},   {LS_BLOCK_Q3_K, 0xfd81e49f},
    {LS_BLOCK_Q2_K, 0xf8a7ac6f}, {LS_BLOCK_IQ4_NL, 0x429c3baf}, {LS_BLOCK_IQ4_XS, 0x6caeafcd}};

static void test_recorded(void **state) {
    (void)state;
    enum { N = 40, ODD = 36 };
    static const unsigned odd[] = {0x7c00, 0xfc00, 0x7e01, 0x0001, 0x8000, 0x7bff};
    static uint8_t x[N * 256];
    static float y[N * LS_BLOCK_MOST];
    for (size_t r = 0; r < sizeof recorded / sizeof *recorded; r++) {
        const ls_block_info *b = ls_block_of(recorded[r].type);
        const ls_kernels *k = NULL;
        int at = 0, n = block_scales(recorded[r].type, &at), count = N * b->elements;
        for (uint64_t i = 0; i < (uint64_t)(N * b->nbytes); i++)
            x[i] = (uint8_t)((i * 2654435761u + (i >> 5) * 40503) >> 13);
        for (int i = 0; i < ODD; i++)
            for (int s = 0; s < n; s++)
                set_half(x + i * b->nbytes + at + 2 * s, odd[s ? i % 6 : i / (n == 2 ? 6 : 1) % 6]);
        for (int v = 0; (k = ls_kernels_at(v)); v++) {
            k->unpack[recorded[r].type](N, x, y);
            for (int i = 0; i < count; i++)
                if (isnan(y[i])) memcpy(&y[i], &(uint32_t){0x7fc00000}, sizeof *y);
            assert_int_equal(ls_crc32c(y, (size_t)count * sizeof *y), recorded[r].crc);
        }
    }
}

/* Any range of elements, and nothing beside it. */
static void test_ranges(void **state) {
    (void)state;
    static uint8_t x[4 * BLOCKS * LS_BLOCK_MOST];
    static float y[BLOCKS * LS_BLOCK_MOST + 1];
    static const int64_t ends[] = {0, 1, 15, 31, 32, 33, 255, 256, 257, 300, 511, 512, 700};
    enum { NENDS = sizeof ends / sizeof *ends };
    const ls_kernels *k = ls_kernels_at(0);
    for (int i = 0; i < LS_NBLOCK_TYPES; i++) {
        ls_block_type t = (ls_block_type)i;
        const ls_block_info *b = ls_block_of(t);
        fill(t, x);
        for (int from = 0; from < NENDS; from++)
            for (int to = from; to < NENDS; to++) {
                int64_t n = ends[to] - ends[from];
                y[n] = -77;
                ls_block_read(k, t, x, ends[from], n, y);
                assert_true(y[n] == -77);
                for (int64_t j = 0; j < n; j++) {
                    int64_t at = ends[from] + j;
                    float want =
                        value_of(t, x + at / b->elements * b->nbytes, (int)(at % b->elements));
                    assert_memory_equal(&want, &y[j], sizeof want);
                }
            }
    }
}

/* ---- writing ---- */

static const struct {
    ls_block_type type;
    const char *bytes;
} written[] = {
    {LS_BLOCK_F16,
     "e0c000b0604040bf0038a041c0bc803cc0c180b8003f80c0002cc04080be8039004200bc403d60c1"
     "00b6c03f20c000342041c0bd003b40c280ba003e00c100b2b126e7a5831d5428dfa3b122a0a8df9f"
     "502548a70000482750a5df1fa028b1a2df2354a8839de725b1a6b918df27b9a41e21ec2883a18724"
     "09a84c9a7f261aa6"},
    {LS_BLOCK_BF16, "1cc000be0c40e8bf003f344098bf903f38c010bfe03f10c0803d1840d0bf303f404080bfa83f2c"
                    "c0c0bef83f04c0803e2440b8bf603f48c050bfc03f20c040bed63cbdbcb03b0b3d7cbc563c14bd"
                    "fcbbaa3ce9bc0000e93caabcfc3b143d56bc7c3c0bbdb0bbbd3cd6bc173bfc3c97bc243c1d3d30"
                    "bc913c01bd4abbd03cc3bc"},
    {LS_BLOCK_Q8_0, "4d269dfb59b61472d02e8be947a50361be1c7ad73593f14fac0a68c62481df3d9af8f50c56b412"
                    "70cd2b89e745a2005ebb1977d53390ee4caa0866c3217fdc3a98f654b1"},
    {LS_BLOCK_Q4_0, "4036f258be1379df359bf147ac0268ce248aec9c53fd9731db852fca640ea842fc9630db"},
    {LS_BLOCK_Q4_1, "893640c2f257bd1379cf358ae146ac0268bd2479171da0a8ad0368ce248ad0469bf257bd1379cf"
                    "25"},
    {LS_BLOCK_Q5_0, "4032b4b4a525f4bf7b27e3ae5a16d19d4904c08c38f4ec98d29696b4a5ea2e62b6fb3f83c70c40"
                    "94d91d51a5"},
    {LS_BLOCK_Q5_1, "533240c2b4b4a525f3bf6b27e2ae5a16d19d4904c07c38f3ed18a0a82d69694b5a15d19d4904c0"
                    "7c38f3bf6b26e2ae5a"},
};

static void test_written(void **state) {
    (void)state;
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)((i * 37 + 11) % 101 - 50) / 16 * (i < 32 ? 1 : 0.0123f);
    for (size_t k = 0; k < sizeof written / sizeof *written; k++) {
        const ls_block_info *b = ls_block_of(written[k].type);
        uint8_t y[256];
        char text[513] = "";
        assert_true(b->pack(64 / b->elements, x, y));
        size_t nbytes = ls_block_nbytes(written[k].type, 64);
        for (size_t i = 0; i < nbytes; i++) snprintf(text + 2 * i, 3, "%02x", y[i]);
        assert_string_equal(text, written[k].bytes);
    }
}

/* Each number within half a step of the block's scale; zeros stay zeros; what a type can't hold is
 * refused. */
static void check_packed(ls_block_type t, const float x[32]) {
    const ls_block_info *b = ls_block_of(t);
    static const int steps[LS_NBLOCK_TYPES] = {[LS_BLOCK_Q8_0] = 254,
                                               [LS_BLOCK_Q4_0] = 15,
                                               [LS_BLOCK_Q4_1] = 15,
                                               [LS_BLOCK_Q5_0] = 31,
                                               [LS_BLOCK_Q5_1] = 31};
    uint8_t y[32 * 4];
    float back[32], most = 0;
    assert_true(b->pack(32 / b->elements, x, y));
    ls_block_read(ls_kernels_at(0), t, y, 0, 32, back);
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(x[i]));
    /* the range is at most 2 most; a centred type cuts off one step at one end */
    float step = steps[t] ? 2 * most / (float)steps[t] : most / 128;
    for (int i = 0; i < 32; i++) assert_true(fabsf(back[i] - x[i]) <= 1.01f * step + 1e-7f);
}

static void test_packing(void **state) {
    (void)state;
    for (int i = 0; i < LS_NBLOCK_TYPES; i++) {
        ls_block_type t = (ls_block_type)i;
        const ls_block_info *b = ls_block_of(t);
        if (!b->pack) continue;
        float x[32] = {0};
        uint8_t y[32 * 4];
        check_packed(t, x);
        for (uint64_t r = 0; r < 50; r++) {
            ls_random_normal((ls_random_place){3, LS_STREAM_SAMPLE, r, 0}, 32, 1.0f, x);
            for (int k = 0; k < 32; k++) x[k] = ldexpf(x[k], (int)r % 12 - 3);
            check_packed(t, x);
        }
        static const float bad[] = {NAN, INFINITY, -INFINITY};
        for (int k = 0; k < 3; k++) {
            float good = x[29];
            x[29] = bad[k];
            assert_false(b->pack(32 / b->elements, x, y));
            x[29] = good;
        }
        x[3] = 3e38f; /* its scale is not an f16 */
        assert_int_equal(b->pack(32 / b->elements, x, y), t == LS_BLOCK_F32 || t == LS_BLOCK_BF16);
        x[3] = 1e-40f; /* 1 / scale overflows */
        for (int k = 0; k < 32; k++) x[k] = k % 2 ? x[3] : -x[3];
        assert_true(b->pack(32 / b->elements, x, y));
    }
}

static void test_names(void **state) {
    (void)state;
    ls_block_type t;
    for (int i = 0; i < LS_NBLOCK_TYPES; i++) {
        const ls_block_info *b = ls_block_of((ls_block_type)i);
        assert_true(ls_block_named(b->name, &t) && t == (ls_block_type)i);
        assert_true(ls_block_of_gguf(b->gguf, &t) && t == (ls_block_type)i);
        const ls_gguf_type *g = ls_gguf_type_of(b->gguf);
        assert_string_equal(g->name, b->name);
        assert_true(g->elements == b->elements && g->nbytes == b->nbytes);
        assert_int_equal(b->elements, ls_block_elements((ls_block_type)i));
        assert_int_equal(b->nbytes, ls_block_nbytes((ls_block_type)i, b->elements));
    }
    assert_true(ls_block_named("q4_k", &t) && t == LS_BLOCK_Q4_K);
    assert_false(ls_block_named("Q4", &t));
    assert_false(ls_block_of_gguf(16, &t));
    assert_string_equal(ls_gguf_type_of(16)->name, "IQ2_XXS");
    assert_null(ls_gguf_type_of(4));
    assert_null(ls_gguf_type_of(UINT32_MAX));
    ls_buf words = {0};
    ls_block_put_writable(&words);
    assert_string_equal(words.data, "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 or Q5_1");
    ls_buf_free(&words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_ranges),  cmocka_unit_test(test_written),
        cmocka_unit_test(test_packing), cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
