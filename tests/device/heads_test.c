/* heads_test.c - attention by heads on a device, of every kind, has the bits of the host, in f32
 * and with products in bf16. */
#include "layers/continued.h"
#include "layers/kept.h"

#include "device/on_device.h"

typedef struct shape {
    int64_t n, T, S, heads, kv_heads, D, window;
    bool causal, mask, positions;
    bool bf16; /* products are in bf16 */
} shape;

/* Lengths are odd, and beside multiples of a block of queries; the first key or more of a masked
 * sample don't count, so causal queries see none. */
static const shape shapes[] = {
    {2, 1, 1, 1, 1, 1, 0, true, false, false, false},
    {1, 65, 65, 2, 1, 5, 0, true, false, false, false},
    {1, 131, 131, 1, 1, 33, 0, true, false, false, false},
    {2, 30, 30, 4, 2, 67, 0, true, false, false, false},
    {1, 37, 81, 4, 1, 16, 0, false, false, false, false},
    {2, 70, 17, 2, 2, 3, 0, false, true, false, false},
    {1, 70, 70, 2, 1, 4, 9, true, false, false, false},
    {2, 67, 67, 1, 1, 7, 0, true, true, true, false},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

/* Each sample's keys of which some don't count; the places of positions in documents of 20. */
static void fill_mask(sides *s, pair *mask) {
    for (size_t i = 0; i < mask->nbytes; i++) ((char *)mask->host)[i] = i % 5 > 1;
    pair_send(s, mask);
}
static void fill_positions(sides *s, pair *positions, int64_t T) {
    for (size_t i = 0; i < positions->nbytes / 4; i++)
        ((int32_t *)positions->host)[i] = (int32_t)((int64_t)i % T % 20);
    pair_send(s, positions);
}

/* q, k and v are columns of rows, as attention has them, and their gradients too. */
typedef struct operands {
    pair q, kv, mask, positions, stat, y, dy, dq, dkv;
} operands;

static ls_heads heads_of(const shape *x, const ls_compute *c, const operands *o, bool device) {
#define AT(pair) (device ? (pair).device : (pair).host)
    int64_t q_row = x->heads * x->D + 3, width = x->kv_heads * x->D;
    return (ls_heads){.compute = c,
                      .n = x->n,
                      .T = x->T,
                      .S = x->S,
                      .heads = x->heads,
                      .kv_heads = x->kv_heads,
                      .D = x->D,
                      .causal = x->causal,
                      .bf16 = x->bf16,
                      .window = x->window,
                      .q = AT(o->q),
                      .k = AT(o->kv),
                      .v = (float *)AT(o->kv) + width,
                      .q_row = q_row,
                      .kv_row = 2 * width,
                      .mask = x->mask ? AT(o->mask) : NULL,
                      .mask_nbytes = (size_t)x->S,
                      .positions = x->positions ? AT(o->positions) : NULL,
                      .positions_nbytes = (size_t)x->T * sizeof(int32_t),
                      .stat = AT(o->stat),
                      .y = AT(o->y),
                      .dy = ls_matrix_of(AT(o->dy), x->heads * x->D),
                      .dq = AT(o->dq),
                      .dk = AT(o->dkv),
                      .dv = (float *)AT(o->dkv) + width};
#undef AT
}

static void check(const shape *x, int number, uint64_t seed) {
    int wrong = nwrong;
    sides s;
    int64_t rows = x->n * x->T, C = x->heads * x->D, kv = x->n * x->S * 2 * x->kv_heads * x->D;
    sides_open(&s, seed, ls_heads_scratch_floats(x->S, x->D));
    operands o = {.q = pair_numbers(&s, rows * (C + 3), 3),
                  .kv = pair_numbers(&s, kv, 2),
                  .mask = pair_of(&s, (size_t)(x->n * x->S)),
                  .positions = pair_of(&s, (size_t)rows * 4),
                  .stat = pair_empty(&s, (size_t)(rows * x->heads * 2) * sizeof(float)),
                  .y = pair_empty(&s, (size_t)(rows * C) * sizeof(float)),
                  .dy = pair_numbers(&s, rows * C, 1),
                  .dq = pair_empty(&s, (size_t)(rows * (C + 3)) * sizeof(float)),
                  .dkv = pair_empty(&s, (size_t)kv * sizeof(float))};
    fill_mask(&s, &o.mask);
    fill_positions(&s, &o.positions, x->T);
    ls_heads host = heads_of(x, &s.host, &o, false), device = heads_of(x, &s.device, &o, true);
    ls_heads_forward(&host);
    ls_heads_forward(&device);
    expect_same(&s, &o.stat, "stat");
    expect_same(&s, &o.y, "y");
    ls_heads_backward(&host);
    ls_heads_backward(&device);
    expect_same(&s, &o.dq, "dq");
    expect_same(&s, &o.dkv, "dk, dv");
    if (nwrong > wrong)
        print_error("  of shape %d, seed %d, bf16 %d\n", number, (int)seed, x->bf16);
    pair *all[] = {&o.q, &o.kv, &o.mask, &o.positions, &o.stat, &o.y, &o.dy, &o.dq, &o.dkv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pair_free(&s, all[i]);
    sides_close(&s);
}

static void test_bits(void **state) {
    (void)state;
    for (int i = 0; i < NSHAPES; i++)
        for (int seed = 1; seed <= ncases(2, 6); seed++) check(&shapes[i], i, (uint64_t)seed);
    assert_none_wrong();
}

static void test_bf16(void **state) {
    (void)state;
    for (int i = 0; i < NSHAPES; i++)
        for (int seed = 1; seed <= ncases(1, 6); seed++) {
            shape x = shapes[i];
            x.bf16 = true;
            check(&x, i, (uint64_t)seed);
        }
    assert_none_wrong();
}

/* ---- a text in parts, whose keys and values the device keeps ---- */

typedef struct text {
    int64_t heads, kv_heads, D, window;
    int64_t parts[6]; /* positions of each part, ended by 0 */
} text;

/* Parts that begin at, before and behind multiples of a block of 64 queries. */
static const text texts[] = {
    {1, 1, 1, 0, {1, 1, 1}},         {4, 2, 5, 0, {3, 1, 60, 1, 66}}, {2, 2, 16, 0, {64, 64, 1}},
    {2, 1, 67, 0, {65, 1, 1, 70}},   {2, 1, 4, 9, {20, 1, 1, 62, 1}}, {6, 3, 8, 70, {1, 127, 5}},
    {1, 1, 33, 1, {63, 1, 1, 1, 1}}, {2, 1, 131, 0, {2, 130, 4, 1}},
};
enum { NTEXTS = sizeof texts / sizeof *texts };

/* The host computes the whole text at once. Memory of the device has room for a longer one, and
 * begins as NaNs. */
static void check_parts(const text *x, bool bf16, uint64_t seed) {
    sides s;
    int64_t T = 0, C = x->heads * x->D, width = x->kv_heads * x->D;
    for (int i = 0; x->parts[i]; i++) T += x->parts[i];
    const shape all = {1, T, T, x->heads, x->kv_heads, x->D, x->window, true, false, false, bf16};
    sides_open(&s, seed, ls_heads_scratch_floats(T, x->D));
    operands o = {.q = pair_numbers(&s, T * (C + 3), 3),
                  .kv = pair_numbers(&s, T * 2 * width, 2),
                  .stat = pair_empty(&s, (size_t)(T * x->heads * 2) * sizeof(float)),
                  .y = pair_empty(&s, (size_t)(T * C) * sizeof(float))};
    pair kept = pair_empty(&s, ls_kept_floats(T + 5, x->kv_heads, x->D) * sizeof(float));
    ls_heads host = heads_of(&all, &s.host, &o, false);
    ls_heads_forward(&host);
    for (int64_t i = 0, at = 0; x->parts[i]; at += x->parts[i++]) {
        ls_heads part = heads_of(&all, &s.device, &o, true);
        part.T = part.S = x->parts[i];
        part.q = (const float *)part.q + at * part.q_row;
        part.k = (const float *)part.k + at * part.kv_row;
        part.v = (const float *)part.v + at * part.kv_row;
        part.y = (float *)part.y + at * C;
        part.call = &(ls_layer_call){.past = {.n = at, .kept = kept.device}};
        ls_heads_continue(&part);
    }
    expect_same(&s, &o.y, "y");
    pair *mine[] = {&o.q, &o.kv, &o.stat, &o.y, &kept};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) pair_free(&s, mine[i]);
    sides_close(&s);
}

static void test_parts(void **state) {
    (void)state;
    for (int i = 0; i < NTEXTS; i++)
        for (int seed = 1; seed <= ncases(3, 8); seed++)
            check_parts(&texts[i], seed % 2 == 0, (uint64_t)seed);
    assert_none_wrong();
}

/* ---- the same in fewer bits: the host has them in pages, too, and both have the same bytes there
 * ---- */

static void continue_both(const shape *all, sides *s, const operands *o, const pair *kept,
                          ls_past past, int64_t rows) {
    for (int there = 0; there < 2; there++) {
        ls_heads part = heads_of(all, there ? &s->device : &s->host, o, there);
        past.kept = there ? kept->device : kept->host;
        part.T = part.S = rows;
        part.q = (const float *)part.q + past.n * part.q_row;
        part.k = (const float *)part.k + past.n * part.kv_row;
        part.v = (const float *)part.v + past.n * part.kv_row;
        part.y = (float *)part.y + past.n * all->heads * all->D;
        part.call = &(ls_layer_call){.past = past};
        ls_heads_continue(&part);
    }
}

/* Among the numbers are large and small ones, which types of fewer bits round to others. */
static void add_odd_numbers(sides *s, pair *x) {
    static const float odd[] = {0x1p-126f, 0x1.ffp-127f, 1e-8f, -0.0f, 0x1.01p0f, 60.0f, 1e-40f};
    float *p = x->host;
    for (size_t i = 0; i < x->nbytes / sizeof *p; i++)
        if (i % 9 == 4) p[i] = odd[i / 9 % (sizeof odd / sizeof *odd)];
    pair_send(s, x);
}

static void check_packed(const text *x, ls_kept_type type, bool bf16, uint64_t seed) {
    sides s;
    int64_t T = 0, C = x->heads * x->D, width = x->kv_heads * x->D;
    for (int i = 0; x->parts[i]; i++) T += x->parts[i];
    const shape all = {1, T, T, x->heads, x->kv_heads, x->D, x->window, true, false, false, bf16};
    sides_open(&s, seed, (size_t)(2 * C) + ls_kept_room(x->heads, T, x->D));
    operands o = {.q = pair_numbers(&s, T * (C + 3), 3),
                  .kv = pair_numbers(&s, T * 2 * width, 2),
                  .y = pair_empty(&s, (size_t)(T * C) * sizeof(float))};
    pair kept = pair_empty(&s, ls_kept_floats(T + 5, x->kv_heads, x->D) * sizeof(float));
    add_odd_numbers(&s, &o.kv);
    for (int64_t i = 0, at = 0; x->parts[i]; at += x->parts[i++])
        continue_both(&all, &s, &o, &kept, (ls_past){.n = at, .type = type}, x->parts[i]);
    expect_same(&s, &kept, "keys and values");
    expect_same(&s, &o.y, "y");
    pair *mine[] = {&o.q, &o.kv, &o.y, &kept};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) pair_free(&s, mine[i]);
    sides_close(&s);
}

static void test_packed(void **state) {
    (void)state;
    for (int i = 0; i < NTEXTS; i++)
        for (int seed = 1; seed <= ncases(2, 8); seed++)
            check_packed(&texts[i], seed % 2 ? LS_KEPT_Q8 : LS_KEPT_F16, (i + seed) % 4 < 2,
                         (uint64_t)seed);
    assert_none_wrong();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_packed)};
    return run_layers_on_devices(tests, sizeof tests / sizeof *tests);
}
