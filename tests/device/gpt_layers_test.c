/* gpt_layers_test.c - forward and backward of GPT-2's fused layers on a device, of every kind, have
 * the bits of the host. */
#include "device/on_device.h"
#include "model/fixture.h"

enum { EMBED, ATTENTION, MLP, HEAD, KINDS };

typedef struct shape {
    int64_t n, T, C, heads, V;
} shape;

static const shape shapes[] = {{1, 1, 4, 1, 2}, {3, 21, 12, 2, 37}, {1, 67, 20, 4, 2100}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

/* Operands of both sides. */
typedef struct operands {
    pair tokens, params, grads, x, y, saved, work, dy, dx, losses;
} operands;

/* Samples have a number more than their tokens. */
static operands operands_of(sides *s, const shape *x, const ls_model *m, int kind) {
    const ls_layer *l = &m->layers[kind];
    int64_t numbers = x->n * x->T * x->C;
    operands o = {.tokens = pair_integers(s, x->n * (x->T + 2), (uint32_t)x->V),
                  .params = pair_numbers(s, (int64_t)m->nfloats, 0.5f),
                  .grads = pair_numbers(s, (int64_t)m->nfloats, 1),
                  .x = pair_numbers(s, numbers, 2),
                  .y = pair_empty(s, (size_t)numbers * sizeof(float)),
                  .saved = pair_empty(s, (size_t)x->n * l->memory.saved * sizeof(float)),
                  .work = pair_empty(s, ls_layer_work_floats(l, x->n, false) * sizeof(float)),
                  .dy = pair_numbers(s, numbers, 1),
                  .dx = pair_empty(s, (size_t)numbers * sizeof(float)),
                  .losses = pair_empty(s, (size_t)x->n * sizeof(double))};
    return o;
}

static void free_operands(const sides *s, operands *o) {
    pair *all[] = {&o->tokens, &o->params, &o->grads, &o->x,  &o->y,
                   &o->saved,  &o->work,   &o->dy,    &o->dx, &o->losses};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pair_free(s, all[i]);
}

static ls_layer_call call_of(const shape *x, const ls_compute *c, const operands *o) {
#define AT(pair) (c->device ? (pair).device : (pair).host)
    return (ls_layer_call){.compute = c,
                           .n = x->n,
                           .T = x->T,
                           .samples = AT(o->tokens),
                           .sample_nbytes = (size_t)(x->T + 2) * sizeof(uint32_t),
                           .params = AT(o->params),
                           .grads = AT(o->grads),
                           .x = {AT(o->x)},
                           .y = AT(o->y),
                           .saved = AT(o->saved),
                           .work = AT(o->work),
                           .dy = AT(o->dy),
                           .dx = {AT(o->dx)},
                           .loss_scale = 0.37f,
                           .losses = AT(o->losses)};
#undef AT
}

/* starts: the gradients' chains begin. block: rows of the head that are computed at a time. */
static void check(const shape *x, int kind, uint64_t seed, bool starts, int64_t block) {
    ls_error e = {0};
    ls_model m;
    sides s;
    ls_gpt_config config = {1, x->C, x->heads, x->T, x->V};
    assert_ls_ok(ls_gpt_create(&config, &m, &e), e);
    ls_layer *l = &m.layers[kind];
    if (kind == HEAD) l->memory.block_rows = block;
    sides_open(&s, seed, ls_model_scratch_floats(&m));
    operands o = operands_of(&s, x, &m, kind);
    for (int side = 0; side < 2; side++) {
        ls_layer_call c = call_of(x, side ? &s.device : &s.host, &o);
        c.grads_start = starts;
        l->ops->forward(l, &c);
        l->ops->backward(l, &c);
    }
    expect_same(&s, &o.y, "y");
    expect_same(&s, &o.dx, "dx");
    expect_same(&s, &o.grads, "a gradient");
    expect_same(&s, &o.losses, "a loss");
    free_operands(&s, &o);
    sides_close(&s);
    ls_model_free(&m);
}

static void check_all(int kind) {
    for (int i = 0; i < NSHAPES; i++)
        for (int seed = 1; seed <= ncases(2, 8); seed++)
            check(&shapes[i], kind, (uint64_t)seed, seed % 2, seed % 2 ? 1024 : 7);
    assert_none_wrong();
}

static void test_embedding(void **state) {
    (void)state;
    check_all(EMBED);
}
static void test_attention(void **state) {
    (void)state;
    check_all(ATTENTION);
}
static void test_mlp(void **state) {
    (void)state;
    check_all(MLP);
}
static void test_head(void **state) {
    (void)state;
    check_all(HEAD);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_head),
    };
    return run_layers_on_devices(tests, sizeof tests / sizeof *tests);
}
