/* grouped_attention_test.c - attention with fewer heads of keys than of queries, with a window, and
 * with several texts in a sample. */
/* ctest: long-tsan: layers/attention divides its rows in the same way */
#include "layers/layer_check.h"

enum { HEADS = 6, KV = 2, D = 4, Q = HEADS * D, K = KV * D, T = 51 }; /* more than a block */

typedef struct shape {
    int64_t window;
    int parts; /* inputs: 1, 2 or 3 */
    bool positions;
} shape;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const shape *s = arg;
    return ls_attention(m, x[0], .heads = HEADS, .kv_heads = KV, .causal = true,
                        .window = s->window, .keys = s->parts > 1 ? x[1] : NULL,
                        .values = s->parts > 2 ? x[2] : NULL,
                        .positions = s->positions ? x[s->parts] : NULL);
}

/* y [D] of query t: its row q, and keys and values with rows `ld` apart, from row `first` on. */
static void attend(const double *q, const double *k, const double *v, int ld, int first, int t,
                   double *y) {
    double e[T], most = -INFINITY, sum = 0;
    for (int s = first; s <= t; s++) {
        e[s] = 0;
        for (int d = 0; d < D; d++) e[s] += q[d] * k[s * ld + d] / sqrt(D);
        if (e[s] > most) most = e[s];
    }
    for (int s = first; s <= t; s++) sum += exp(e[s] - most);
    for (int d = 0; d < D; d++) {
        y[d] = 0;
        for (int s = first; s <= t; s++) y[d] += exp(e[s] - most) / sum * v[s * ld + d];
    }
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    const shape *s = arg;
    (void)params;
    int q_row = s->parts == 1 ? Q + 2 * K : Q, ld = s->parts == 1   ? q_row
                                                    : s->parts == 2 ? 2 * K
                                                                    : K;
    const double *k = s->parts == 1 ? x[0] + Q : x[1], *v = s->parts == 3 ? x[2] : k + K;
    for (int t = 0; t < T; t++) {
        int first = s->window && t >= s->window ? t - (int)s->window + 1 : 0;
        int place = s->positions ? (int)x[s->parts][t] : t;
        if (place <= t && t - place > first) first = t - place;
        for (int h = 0; h < HEADS; h++) {
            int kv = h / (HEADS / KV);
            attend(x[0] + t * q_row + h * D, k + kv * D, v + kv * D, ld, first, t,
                   y + t * Q + h * D);
        }
    }
}

static void check(const shape *s) {
    layer_case c = {.name = "attention",
                    .arg = s,
                    .nfields = s->parts,
                    .build = build,
                    .reference = reference,
                    .half_units = 8};
    c.fields[0] = (layer_field){.type = LS_F32, .dims = LS_DIMS(T, s->parts == 1 ? Q + 2 * K : Q)};
    c.fields[1] = (layer_field){.type = LS_F32, .dims = LS_DIMS(T, s->parts == 2 ? 2 * K : K)};
    c.fields[2] = c.fields[1];
    if (s->positions)
        c.fields[c.nfields++] = (layer_field){.type = LS_I32, .dims = LS_DIMS(T), .below = T};
    layer_check(&c);
}

static void test_shapes(void **state) {
    (void)state;
    static const shape shapes[] = {{.parts = 1},
                                   {.parts = 2},
                                   {.parts = 3},
                                   {.parts = 3, .window = 1},
                                   {.parts = 1, .window = 20},
                                   {.parts = 3, .positions = true},
                                   {.parts = 2, .window = 7, .positions = true}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(&shapes[i]);
}

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(4, 12)); }
static void with_kv_heads(ls_model *m) { ls_attention(m, field(m), .heads = 3, .kv_heads = 2); }
static void with_columns(ls_model *m) { ls_attention(m, field(m), .heads = 3, .kv_heads = 1); }
static void with_values(ls_model *m) {
    ls_value *x = field(m), *v = ls_input(m, "v", LS_F32, LS_DIMS(5, 12));
    ls_attention(m, x, .heads = 3, .keys = x, .values = v);
}
static void with_no_keys(ls_model *m) {
    ls_value *x = field(m);
    ls_attention(m, x, .heads = 1, .values = x);
}
static void with_window(ls_model *m) { ls_attention(m, field(m), .heads = 2, .window = 2); }
static void with_positions(ls_model *m) {
    ls_value *places = ls_input(m, "places", LS_I32, LS_DIMS(3));
    ls_attention(m, field(m), .heads = 2, .causal = true, .positions = places);
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_kv_heads, "kv_heads is 2; it must divide heads, 3");
    layer_refused(with_columns, "12 columns are no 5 heads of queries, keys and values");
    layer_refused(with_values, "the values are [5, 12] and the keys [4, 12]");
    layer_refused(with_no_keys, "values are given without keys");
    layer_refused(with_window, "windows are for causal attention; add .causal");
    layer_refused(with_positions, "the positions are no field of 4 i32, one for each query");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
