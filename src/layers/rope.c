/* rope.c - rotary positions: each pair of a row's numbers is turned by an angle that grows with the
 * row's place in its text. The kernel: tensor/kernels/rope.c.
 *
 * Layers of the same angles share one table of them, computed when the first one is added. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "layers/layers.h"
#include "model/row_ops.h"

typedef struct frequencies {
    int64_t T, D; /* D: the elements of a head that are turned */
    float base, factor, low, high, scale;
    int64_t original;             /* 0: all frequencies are divided by factor */
    const float *kept, *divisors; /* [D / 2], or NULL */
} frequencies;

typedef struct options {
    frequencies f;
    const float *turns; /* [T][D] for each place the cosines, then the sines */
    int constants;      /* their number in the model */
    int64_t first;      /* the place of row 0 */
    int64_t head;       /* its elements; those from f.D on stay */
    bool positions;
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    bool back;
    ls_matrix x;
    ls_numbers y;
} job;

static int64_t place_of(const job *j, int64_t sample, int64_t t) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int32_t place = 0;
    if (!o->positions) return ls_past_place(&j->c->past, t) + o->first;
    const char *places = ls_layer_field(j->l, j->c, 0, sample);
    memcpy(&place, places + (size_t)t * sizeof place, sizeof place);
    return place;
}

/* y [C] = x, each head of which is turned by itself. */
static void turn_parts(const job *j, const float *turns, const float *x, float *y) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const ls_kernels *k = j->c->compute->k;
    size_t rest = (size_t)(o->head - o->f.D) * sizeof *y;
    for (int64_t i = 0; i < j->l->C; i += o->head) {
        k->rope(1, o->f.D, turns, j->back, x + i, y + i);
        memmove(y + i + o->f.D, x + i + o->f.D, rest);
    }
}

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const ls_kernels *k = j->c->compute->k;
    int64_t r = 0, end = 0, T = j->c->T, D = o->f.D, C = j->l->C;
    float *room = ls_compute_scratch(j->c->compute, thread);
    ls_pool_share(j->c->n * T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *turns = o->turns + place_of(j, r / T, r % T) * D;
        float *y = ls_part_result(j->y, r * C, room + C);
        const float *x = ls_part_read(k, j->x, r, 0, C, room);
        if (o->head == D)
            k->rope(C / D, D, turns, j->back, x, y);
        else
            turn_parts(j, turns, x, y);
        ls_part_store(k, j->y, r * C, C, y);
    }
}

/* On the call's device. */
static void launch(const ls_layer *l, const ls_layer_call *c, const void *x, void *y, bool back) {
    enum { ITEMS = 256 };
    const options *o = &LS_LAYER_OWN_OF(options, l);
    const ls_past_rows *rows = c->past.rows;
    const void *places = o->positions ? ls_layer_field(l, c, 0, 0) : rows ? rows->places : NULL;
    assert(!rows || !o->first);
    LS_LAUNCH(c->compute, LS_KERNEL_rope, c->n * c->T, ls_device_groups(l->C / 2, ITEMS),
              {.l = l->C}, {.l = o->head}, {.l = o->f.D}, {.l = c->T}, {.f = back ? -1.0f : 1.0f},
              {.from = ls_layer_constants(c, o->constants, o->turns)}, {.l = c->past.n + o->first},
              {.from = places}, {.l = (int64_t)(c->sample_nbytes / sizeof(int32_t))}, {.from = x},
              {.p = y});
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch(l, c, c->x[0], c->y, false);
        return;
    }
    ls_pool_run_sized(c->compute->pool, c->n * c->T * l->C, run,
                      &(job){l, c, false, ls_rows_x(l, c, 0, l->C), ls_rows_y(l, c)});
}

static void backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->dx[0] && c->compute->device)
        launch(l, c, c->dy, c->dx[0], true);
    else if (c->dx[0])
        ls_pool_run(c->compute->pool, run,
                    &(job){l, c, true, ls_rows_dy(l, c, l->C), ls_rows_dx(l, c, 0)});
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.turns = o->turns,
                    .T = o->f.T,
                    .D = o->f.D,
                    .head = o->head,
                    .first = o->first,
                    .places = o->positions ? 0 : -1};
}

static const ls_layer_ops ops = {
    .kind = "rope", .forward = forward, .backward = backward, .describe = describe};

/* ---- the angles ---- */

static const double TWO_PI = 6.28318530717958647693;

/* Dubey et al., "The Llama 3 herd of models", 2024; the formula is that of Llama's reference
 * code. */
static float scaled(const frequencies *f, float frequency) {
    if (!f->original) return frequency / f->factor;
    double wave = TWO_PI / (double)frequency, original = (double)f->original;
    double low = original / (double)f->low, high = original / (double)f->high;
    if (wave > low) return frequency / f->factor;
    if (wave < high) return frequency;
    double mix = (original / wave - (double)f->low) / ((double)f->high - (double)f->low);
    return (float)((1 - mix) * (double)frequency / (double)f->factor + mix * (double)frequency);
}

/* The frequency of pair i, 1 / base^(2 i / D), rounded after the power and after the division; what
 * is kept of it is rounded as in Hugging Face's code. */
static float frequency_of(const frequencies *f, int64_t i) {
    double exponent = (double)((float)(2 * i) / (float)f->D);
    float power = (float)ls_math_exp(exponent * ls_math_log((double)f->base));
    if (f->divisors) return 1.0f / (f->divisors[i] * power);
    if (!f->kept) return scaled(f, 1.0f / power);
    float kept = f->kept[i];
    return 1.0f / (f->factor * power) * (1 - kept) + 1.0f / power * kept;
}

/* cos of `turns` times 2 pi. */
static double cos_of(double turns) {
    double part = turns - (double)(int64_t)turns; /* 0 <= part < 1 */
    return part <= 0.5 ? ls_math_cospi(2 * part) : ls_math_cospi(2 - 2 * part);
}

static const float *make_turns(ls_model *m, const frequencies *f, int *constants_p) {
    float *turns = ls_build_constants(m, (size_t)(f->T * f->D), constants_p);
    int64_t half = f->D / 2;
    for (int64_t i = 0; i < half; i++) {
        float frequency = frequency_of(f, i);
        for (int64_t t = 0; t < f->T; t++) {
            double turn = (double)((float)t * frequency) / TWO_PI;
            turns[t * f->D + i] = f->scale * (float)cos_of(turn);
            /* sin x = cos(x - pi / 2) */
            turns[t * f->D + half + i] = f->scale * (float)cos_of(turn + 0.75);
        }
    }
    return turns;
}

static bool is_same_list(const frequencies *f, const float *a, const float *b) {
    return !a == !b && (!a || memcmp(a, b, (size_t)f->D / 2 * sizeof *a) == 0);
}

static bool is_same(const frequencies *a, const frequencies *b) {
    if (a->T != b->T || a->D != b->D) return false;
    return a->original == b->original && is_same_list(a, a->kept, b->kept) &&
           is_same_list(a, a->divisors, b->divisors) &&
           memcmp(&a->base, &b->base, 5 * sizeof a->base) == 0;
}

static const float *copy_list(ls_model *m, const frequencies *f, const float *list) {
    int number = 0;
    size_t n = (size_t)f->D / 2;
    return list ? memcpy(ls_build_constants(m, n, &number), list, n * sizeof *list) : NULL;
}

static void find_turns(ls_model *m, options *own) {
    for (int i = 0; i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        const options *o = &LS_LAYER_OWN_OF(options, l);
        if (l->ops != &ops || !o->turns || !is_same(&o->f, &own->f)) continue;
        own->turns = o->turns;
        own->constants = o->constants;
        own->f.kept = o->f.kept;
        own->f.divisors = o->f.divisors;
        return;
    }
    own->f.kept = copy_list(m, &own->f, own->f.kept);
    own->f.divisors = copy_list(m, &own->f, own->f.divisors);
    own->turns = make_turns(m, &own->f, &own->constants);
}

/* ---- adding it ---- */

static void declare_conversions(ls_layer *l, int64_t n) {
    ls_conversions *f = &l->cost.forward_converts, *b = &l->cost.backward_converts;
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_X, .numbers = n});
    ls_conversions_add(f, (ls_conversion){.operand = LS_OPERAND_Y, .rounds = true, .numbers = n});
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_DY, .for_dx = true, .numbers = n});
    ls_conversions_add(
        b, (ls_conversion){.operand = LS_OPERAND_DX, .rounds = true, .for_dx = true, .numbers = n});
}

/* Parts of frequencies, and divisors. */
static bool has_parts(const frequencies *f) {
    for (int64_t i = 0; f->kept && i < f->D / 2; i++)
        if (!(f->kept[i] >= 0 && f->kept[i] <= 1)) return false;
    for (int64_t i = 0; f->divisors && i < f->D / 2; i++)
        if (!(f->divisors[i] >= 1e-6f && f->divisors[i] <= 1e6f)) return false;
    return !(f->divisors && (f->kept || f->original || f->factor != 1));
}

static bool look(ls_model *m, const ls_value *x, const ls_rope_options *o, const frequencies *f) {
    const ls_value *places = o->positions;
    int64_t rows = x->ndims ? x->dims.of[0] : 0,
            head = o->heads > 0 ? ls_value_last(x) / o->heads : 0;
    if (x->ndims != 2 || o->heads < 1 || ls_value_last(x) % o->heads || head % 2)
        ls_build_fail(m,
                      "the input is %s; [T, heads * D] with an even D is needed, and heads is %lld",
                      ls_dims_write(x->dims).text, (long long)o->heads);
    else if (places &&
             (places->layer >= 0 || places->type != LS_I32 || ls_value_count(places) != rows))
        ls_build_fail(m, "the positions are no field of %lld i32, one for each row",
                      (long long)rows);
    else if (!(f->base > 1 && f->base <= 1e12f) || !(f->factor > 0 && f->factor <= 1e6f))
        ls_build_fail(m, "base is %g and factor %g; base is above 1 and factor above 0",
                      (double)f->base, (double)f->factor);
    else if (f->original < 0 ||
             (f->original && !(f->low > 0 && f->high > f->low && f->high <= 1e6f)))
        ls_build_fail(m,
                      "original is %lld, low %g, high %g; high is above low, and low above 0, "
                      "and high at most 1e6",
                      (long long)f->original, (double)f->low, (double)f->high);
    else if (o->turned < 0 || o->turned % 2 || o->turned > head)
        ls_build_fail(m, "turned is %lld; it is an even number of a head's %lld elements",
                      (long long)o->turned, (long long)head);
    else if (!(f->scale > 0 && f->scale <= 1e6f) || !has_parts(f))
        ls_build_fail(m,
                      "scale is %g, above 0 and at most 1e6; kept has numbers from 0 to 1, or "
                      "divisors has some from 1e-6 to 1e6, without factor and original",
                      (double)f->scale);
    return ls_build_is_good(m);
}

ls_value *ls_layers_rope(ls_model *m, ls_value *x, ls_rope_options o, ls_row_range of) {
    ls_layer *l = ls_build_layer(m, "rope", o.name, &x, 1);
    if (!l) return ls_build_failed(m);
    int64_t head = o.heads > 0 ? ls_value_last(x) / o.heads : 0;
    frequencies f = {.T = of.all,
                     .D = o.turned > 0 ? o.turned : head,
                     .base = o.base == 0 ? 10000 : o.base,
                     .factor = o.factor == 0 ? 1 : o.factor,
                     .low = o.low == 0 ? 1 : o.low,
                     .high = o.high == 0 ? 4 : o.high,
                     .scale = o.scale == 0 ? 1 : o.scale,
                     .original = o.original,
                     .kept = o.kept,
                     .divisors = o.divisors};
    if (!look(m, x, &o, &f)) return ls_build_failed(m);
    l->ops = &ops;
    ls_build_unread(l);
    l->T = x->dims.of[0];
    l->C = ls_value_last(x);
    l->half.as_stored = LS_OPERAND_ALL;
    l->memory.scratch = (size_t)(2 * l->C);
    if (o.positions) {
        ls_build_field(m, l, o.positions);
        ls_build_classes(m, o.positions, f.T, false);
    }
    options own = {.f = f, .first = of.first, .head = head, .positions = o.positions != NULL};
    find_turns(m, &own);
    LS_LAYER_OWN_AS(options, l) = own;
    l->traits.on_device = true;
    ls_works_pass(&l->cost.forward, LS_WORK_ADD, ls_value_count(x));
    ls_works_pass(&l->cost.backward, LS_WORK_ADD, ls_value_count(x));
    declare_conversions(l, ls_value_count(x));
    return ls_build_value(m, x->dims);
}

ls_value *(ls_rope)(ls_model *m, ls_value *x, ls_rope_options o) {
    return ls_layers_rope(m, x, o, (ls_row_range){0, x->dims.of[0]});
}
