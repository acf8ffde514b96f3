/* rope_test.c - rotary positions: against the formulas in double precision, with their kinds of
 * scaling, and the shapes that are refused. */
#include "layers/layer_check.h"

enum { T = 9, HEADS = 3, D = 14, C = HEADS * D };

typedef struct kind {
    double base, factor, low, high;
    int64_t original;
    bool positions, parts, divides;
    double scale;
    int64_t turned; /* 0: D */
} kind;

/* Of each frequency, what the factor does not divide. */
static const float kept[D / 2] = {1, 1, 0.75f, 0.5f, 0.125f, 0, 0};
/* What divides each. */
static const float divisors[D / 2] = {1, 1.25f, 1.5f, 3, 7.5f, 20, 40};

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const kind *k = arg;
    return ls_rope(m, x[0], .heads = HEADS, .base = (float)k->base, .factor = (float)k->factor,
                   .low = (float)k->low, .high = (float)k->high, .original = k->original,
                   .positions = k->positions ? x[1] : NULL, .kept = k->parts ? kept : NULL,
                   .scale = (float)k->scale, .divisors = k->divides ? divisors : NULL,
                   .turned = k->turned);
}

static int turned_of(const kind *k) { return k->turned ? (int)k->turned : D; }

static double frequency(const kind *k, int i) {
    double f = pow(k->base > 0 ? k->base : 10000, -2.0 * i / turned_of(k)),
           factor = k->factor > 0 ? k->factor : 1;
    if (k->parts) return (1 - (double)kept[i]) * f / factor + (double)kept[i] * f;
    if (k->divides) return f / (double)divisors[i];
    if (!k->original) return f / factor;
    double turns = (double)k->original * f / (2 * M_PI); /* in the original context */
    double mix = (turns - k->low) / (k->high - k->low);
    mix = mix < 0 ? 0 : mix > 1 ? 1 : mix;
    return (1 - mix) * f / factor + mix * f;
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    const kind *k = arg;
    (void)params;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < C; i++) {
            const int R = turned_of(k), at = i % D % (R / 2), first = t * C + i - i % D + at;
            y[t * C + i] = x[0][t * C + i];
            if (i % D >= R) continue;
            double angle = (k->positions ? x[1][t] : t) * frequency(k, at);
            double a = x[0][first], b = x[0][first + R / 2];
            y[t * C + i] =
                i % D < R / 2 ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
            if (k->scale > 0) y[t * C + i] *= k->scale;
        }
}

static void test_kinds(void **state) {
    (void)state;
    static const kind kinds[] = {{0},
                                 {.base = 100000},
                                 {.factor = 4},
                                 {.base = 500, .factor = 8, .low = 1, .high = 4, .original = 64},
                                 {.positions = true},
                                 {.base = 500, .factor = 8, .parts = true, .scale = 1.25},
                                 {.base = 500, .divides = true, .scale = 1.25},
                                 {.divides = true, .scale = 1.5, .turned = 10},
                                 {.turned = 2, .positions = true}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        layer_check(&(layer_case){.name = "rope",
                                  .arg = &kinds[i],
                                  .fields = {{.type = LS_F32, .dims = LS_DIMS(T, C)},
                                             {.type = LS_I32, .dims = LS_DIMS(T), .below = T}},
                                  .nfields = kinds[i].positions ? 2 : 1,
                                  .build = build,
                                  .reference = reference});
}

/* Layers of the same angles share their table: 100 of them cost no more memory than one. */
static void test_shared(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e = {0};
    ls_value *x = ls_input(&m, "x", LS_F32, LS_DIMS(8192, 64));
    for (int i = 0; i < 100; i++) x = ls_rope(&m, x, .heads = 1);
    probe_add(&m, x);
    assert_ls_ok(ls_build_finish(&m, &e), e);
    const void *const *first = (const void *const *)(const void *)m.layers[1].own;
    for (int i = 2; i < 100;
         i++) /* the options begin with the same angles and end with the table */
        assert_memory_equal(m.layers[i].own, first, sizeof m.layers[i].own);
    ls_model_free(&m);
}

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(4, 12)); }
static void with_heads(ls_model *m) { ls_rope(m, field(m), .heads = 5); }
static void with_odd(ls_model *m) { ls_rope(m, field(m), .heads = 4); }
static void with_base(ls_model *m) { ls_rope(m, field(m), .heads = 2, .base = 0.5f); }
static void with_high(ls_model *m) {
    ls_rope(m, field(m), .heads = 2, .original = 8, .low = 2, .high = 1);
}
static void with_scale(ls_model *m) { ls_rope(m, field(m), .heads = 2, .scale = -1); }
static void with_parts(ls_model *m) {
    ls_rope(m, field(m), .heads = 2, .kept = (const float[]){0, 1, 1.5f});
}
static void with_divisors(ls_model *m) {
    ls_rope(m, field(m), .heads = 2, .divisors = (const float[]){1, 2, 0});
}
static void with_both(ls_model *m) {
    ls_rope(m, field(m), .heads = 2, .factor = 2, .divisors = (const float[]){1, 2, 3});
}
static void with_turned(ls_model *m) { ls_rope(m, field(m), .heads = 2, .turned = 3); }
static void with_more(ls_model *m) { ls_rope(m, field(m), .heads = 2, .turned = 8); }
static void with_positions(ls_model *m) {
    ls_rope(m, field(m), .heads = 2, .positions = ls_input(m, "p", LS_I32, LS_DIMS(5)));
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_heads, "rope 'rope': the input is [4, 12]; [T, heads * D] with an even D");
    layer_refused(with_odd, "an even D is needed, and heads is 4");
    layer_refused(with_base, "base is 0.5 and factor 1; base is above 1");
    layer_refused(with_high, "high is above low, and low above 0");
    layer_refused(with_scale, "scale is -1, above 0 and at most 1e6");
    layer_refused(with_parts, "kept has numbers from 0 to 1");
    layer_refused(with_divisors, "divisors has some from 1e-6 to 1e6, without factor");
    layer_refused(with_both, "divisors has some from 1e-6 to 1e6, without factor");
    layer_refused(with_turned, "turned is 3; it is an even number of a head's 6 elements");
    layer_refused(with_more, "turned is 8; it is an even number of a head's 6 elements");
    layer_refused(with_positions, "the positions are no field of 4 i32, one for each row");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
