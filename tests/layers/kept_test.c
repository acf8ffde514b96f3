/* kept_test.c - keys and values in fewer bits: each vector is rounded by itself, and attention over
 * them has the bits of attention over what is stored. */
#include "layers/kept.h"

#include <math.h>

#include "model/fixture.h"

enum { HEADS = 2, SHARED = 3, SEEN = 2 * LS_KEPT_PAGE + 21, MOST_D = 72 };

typedef struct memory {
    ls_kept kept;
    float *p;
} memory;

static memory open_memory(ls_kept_type type, int64_t D) {
    int64_t page = HEADS * 2 * ls_kept_half(type, D);
    memory m = {.p = fix_nans((size_t)(3 * page))};
    m.kept = (ls_kept){.p = m.p, .heads = HEADS, .D = D, .type = type, .page = (size_t)page};
    return m;
}

static float half_of(const ls_kernels *k, uint16_t half) {
    float x;
    k->widen(LS_F16, 1, &half, &x);
    return x;
}

/* Element i of a key or a value as it is stored, by the layout that kernels.h describes. */
static float value_at(const memory *m, const ls_kernels *k, int64_t head, int64_t t, int64_t i,
                      bool key) {
    int64_t D = m->kept.D, half = ls_kept_half(m->kept.type, D), r = t % LS_KEPT_PAGE;
    const float *part =
        m->p + t / LS_KEPT_PAGE * (int64_t)m->kept.page + head * 2 * half + (key ? 0 : half);
    int64_t at = key ? i * LS_KEPT_PAGE + r : r * D + i, block = i / LS_KEPT_BLOCK;
    if (m->kept.type == LS_KEPT_F16) return half_of(k, ((const uint16_t *)(const void *)part)[at]);
    const float *factors = part + LS_KEPT_PAGE * D / 4;
    float factor = factors[key ? block * LS_KEPT_PAGE + r : r * ls_kept_blocks(D) + block];
    return (float)((const int8_t *)(const void *)part)[at] * factor;
}

static void attend(const memory *m, const ls_kernels *k, int64_t head, const float *q, float *room,
                   float *y) {
    ls_kept_attend_head(
        &m->kept, k, head,
        &(ls_kept_query){.heads = HEADS * SHARED, .t = SEEN - 1, .q = q, .room = room, .y = y});
}

static void check(const ls_kernels *k, ls_kept_type type, int64_t D) {
    memory m = open_memory(type, D), f32 = open_memory(LS_KEPT_F32, D);
    float *room = fix_nans(ls_kept_room(HEADS * SHARED, SEEN, D));
    float q[SHARED * MOST_D], x[2][MOST_D], y[2][SHARED * MOST_D];
    uint64_t random = 7 + (uint64_t)D;
    for (int64_t i = 0; i < SHARED * D; i++) q[i] = (float)fix_random(&random);
    for (int64_t n = 0; n < HEADS * SEEN; n++) {
        int64_t head = n % HEADS, t = n / HEADS;
        for (int64_t i = 0; i < D; i++) {
            x[0][i] = n % 7 == 3 ? 0 : (float)fix_random(&random);
            x[1][i] = (float)fix_random(&random) * (i % 5 == 4 ? 20.0f : 1.0f);
        }
        const ls_kept_position p = {head, t, ls_matrix_of(x[0], D), ls_matrix_of(x[1], D)};
        ls_kept_put(&m.kept, k, &p);
        for (int64_t i = 0; i < D; i++)
            for (int key = 0; key < 2; key++) {
                float was = x[1 - key][i], is = value_at(&m, k, head, t, i, key), most = 0;
                int64_t first = i / LS_KEPT_BLOCK * LS_KEPT_BLOCK;
                for (int64_t j = first; j < D && j < first + LS_KEPT_BLOCK; j++)
                    most = fmaxf(most, fabsf(x[1 - key][j]));
                float error = type == LS_KEPT_Q8 ? most / 253 : fabsf(was) / 2047 + 1e-7f;
                assert_true(fabsf(was - is) <= error);
            }
        float stored[2][MOST_D];
        for (int64_t i = 0; i < D; i++)
            for (int key = 0; key < 2; key++) stored[1 - key][i] = value_at(&m, k, head, t, i, key);
        const ls_kept_position same = {head, t, ls_matrix_of(stored[0], D),
                                       ls_matrix_of(stored[1], D)};
        ls_kept_put(&f32.kept, k, &same);
    }
    for (int64_t head = 0; head < HEADS; head++) {
        attend(&m, k, head, q, room, y[0]);
        attend(&f32, k, head, q, room, y[1]);
        assert_memory_equal(y[0], y[1], (size_t)(SHARED * D) * sizeof(float));
    }
    free(m.p), free(f32.p), free(room);
}

static void test_fewer_bits(void **state) {
    static const int64_t sizes[] = {4, 16, 20, 32, 40, 64, 72};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check(ls_kernels_at(0), LS_KEPT_F16, sizes[i]);
        check(ls_kernels_at(0), LS_KEPT_Q8, sizes[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fewer_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
