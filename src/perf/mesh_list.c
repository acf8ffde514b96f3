/* mesh_list.c - the meshes of n workers: see mesh_search.h.
 *
 * A table has the choices that make a mesh, in order; each lists its values for the choices made
 * before it. A new axis is a row before "data", whose degree is what is left of the workers, and
 * a field of ls_mesh.
 */
#include <stddef.h>

#include "perf/mesh_search.h"
#include "train/layout.h"

enum { MOST_VALUES = 64 };

typedef struct values {
    int64_t list[MOST_VALUES];
    int n;
} values;

typedef struct listing {
    const ls_config *c;
    int nworkers;
    int most_stages;
    int64_t micro_unit, most_recomputed;
    ls_mesh *list;
    int n, capacity;
} listing;

static void add_value(values *v, int64_t x) {
    if (v->n < MOST_VALUES) v->list[v->n++] = x;
}

/* Pipelines are as long as there are stages, and divide the workers. */
static void list_pipes(const listing *l, const ls_mesh *m, values *v) {
    (void)m;
    for (int p = 1; p <= l->nworkers && p <= l->most_stages && p <= LS_CONFIG_MOST_PIPE; p++)
        if (l->nworkers % p == 0) add_value(v, p);
}

/* Workers that divide n parts: each has one at least. */
static void list_divisors(const listing *l, int64_t chosen, int64_t n, values *v) {
    int64_t each = l->nworkers / chosen;
    for (int64_t t = 1; t <= each && t <= n; t++)
        if (each % t == 0) add_value(v, t);
}

static void list_tensors(const listing *l, const ls_mesh *m, values *v) {
    list_divisors(l, m->pipe, l->c->parallel.tensor_virtual, v);
}

static void list_contexts(const listing *l, const ls_mesh *m, values *v) {
    list_divisors(l, m->pipe * m->tensor, l->c->parallel.context_virtual, v);
}

/* Workers divide samples before chunks: of the degrees with the same product those that say so. */
static void list_experts(const listing *l, const ls_mesh *m, values *v) {
    values all = {.n = 0};
    list_divisors(l, m->pipe * m->tensor * m->context, l->c->parallel.expert_virtual, &all);
    for (int i = 0; i < all.n; i++)
        if (ls_config_expert_of(l->c, m->context * all.list[i]) == all.list[i])
            add_value(v, all.list[i]);
}

/* Workers that have a model together have a virtual worker at least. */
static void list_data(const listing *l, const ls_mesh *m, values *v) {
    int64_t data = l->nworkers / (m->pipe * ls_mesh_beside(m));
    if (data <= l->c->train.virtual_workers) add_value(v, data);
}

/* Not gpipe, which needs more memory than 1f1b for the same bubble. */
static void list_schedules(const listing *l, const ls_mesh *m, values *v) {
    (void)l;
    add_value(v, LS_PIPE_1F1B);
    if (m->pipe == 1) return;
    add_value(v, LS_PIPE_INTERLEAVED);
    add_value(v, LS_PIPE_ZB_H1);
    add_value(v, LS_PIPE_ZB_V);
}

static void list_stages_each(const listing *l, const ls_mesh *m, values *v) {
    static const int64_t some[] = {2, 3, 4, 6, 8};
    if (!ls_pipe_is_chunked(m->schedule)) add_value(v, 1);
    if (m->schedule == LS_PIPE_ZB_V && 2 * m->pipe <= l->most_stages) add_value(v, 2);
    for (size_t i = 0; m->schedule == LS_PIPE_INTERLEAVED && i < sizeof some / sizeof *some; i++)
        if (m->pipe * some[i] <= l->most_stages) add_value(v, some[i]);
}

/* A single worker has no other to shard with; workers that divide a model have all parameters and
 * gradients of their layers throughout the step. */
static void list_zeros(const listing *l, const ls_mesh *m, values *v) {
    (void)l;
    int most = m->pipe * m->tensor > 1 ? 1 : 3;
    if (m->data * m->context * m->expert == 1) most = 0;
    for (int zero = 0; zero <= most; zero++) add_value(v, zero);
}

static void list_recomputes(const listing *l, const ls_mesh *m, values *v) {
    (void)m;
    add_value(v, 0);
    if (l->most_recomputed >= 2) add_value(v, 2);
}

/* A virtual worker's samples, and halves of them; whole groups of samples that are computed
 * together. */
static void list_micros(const listing *l, const ls_mesh *m, values *v) {
    (void)m;
    int64_t samples = l->c->train.batch / l->c->train.virtual_workers;
    for (int64_t x = samples; x >= 1; x /= 2)
        if (x % l->c->parallel.expert_virtual == 0 && ls_layout_takes_micro(l->c, l->micro_unit, x))
            add_value(v, x);
}

static const struct {
    size_t at; /* in ls_mesh */
    void (*list)(const listing *, const ls_mesh *, values *);
} choices[] = {
    {offsetof(ls_mesh, pipe), list_pipes},
    {offsetof(ls_mesh, tensor), list_tensors},
    {offsetof(ls_mesh, context), list_contexts},
    {offsetof(ls_mesh, expert), list_experts},
    {offsetof(ls_mesh, data), list_data},
    {offsetof(ls_mesh, schedule), list_schedules},
    {offsetof(ls_mesh, stages_each), list_stages_each},
    {offsetof(ls_mesh, zero), list_zeros},
    {offsetof(ls_mesh, recompute), list_recomputes},
    {offsetof(ls_mesh, micro_batch), list_micros},
};
enum { NCHOICES = sizeof choices / sizeof *choices };

static void add_mesh(listing *l, const ls_mesh *m) {
    if (l->n == l->capacity) {
        l->capacity = l->capacity ? 2 * l->capacity : 256;
        l->list = ls_realloc(l->list, (size_t)l->capacity * sizeof *l->list);
    }
    l->list[l->n++] = *m;
}

static void set_value(ls_mesh *m, size_t at, int64_t value) {
    if (at == offsetof(ls_mesh, schedule))
        m->schedule = (ls_pipe_kind)value;
    else
        *(int64_t *)(void *)((char *)m + at) = value;
}

/* Makes choice number i and all after it. */
static void choose_from(listing *l, int i, ls_mesh m) {
    values v = {.n = 0};
    if (i == NCHOICES) {
        add_mesh(l, &m);
        return;
    }
    choices[i].list(l, &m, &v);
    for (int k = 0; k < v.n; k++) {
        set_value(&m, choices[i].at, v.list[k]);
        choose_from(l, i + 1, m);
    }
}

void ls_mesh_list(const ls_config *c, int n, int most_stages, ls_mesh **list_p, int *n_p) {
    listing l = {.c = c,
                 .nworkers = n,
                 .most_stages = most_stages,
                 .micro_unit = ls_layout_micro_unit(c),
                 .most_recomputed = ls_layout_most_recomputed(c)};
    choose_from(&l, 0, (ls_mesh){0});
    *list_p = l.list;
    *n_p = l.n;
}

static int compare(int64_t x, int64_t y) { return (x > y) - (x < y); }

int ls_mesh_by_degrees(const ls_mesh *x, const ls_mesh *y) {
    if (x->pipe != y->pipe) return compare(x->pipe, y->pipe);
    if (x->tensor != y->tensor) return compare(x->tensor, y->tensor);
    if (x->context != y->context) return compare(x->context, y->context);
    return compare(x->expert, y->expert);
}

int ls_mesh_by_shape(const ls_mesh *x, const ls_mesh *y) {
    int degrees = ls_mesh_by_degrees(x, y);
    if (degrees) return degrees;
    if (x->schedule != y->schedule) return compare(x->schedule, y->schedule);
    return compare(x->stages_each, y->stages_each);
}

/* The keys with a number that a mesh sets, and where their values are. */
static const struct {
    const char *key;
    size_t at, in_config;
} keys[] = {
    {"parallel.mesh.pipe", offsetof(ls_mesh, pipe), offsetof(ls_config, parallel.mesh_pipe)},
    {"parallel.mesh.tensor", offsetof(ls_mesh, tensor), offsetof(ls_config, parallel.mesh_tensor)},
    {"parallel.mesh.context", offsetof(ls_mesh, context),
     offsetof(ls_config, parallel.mesh_context)},
    {"parallel.mesh.expert", offsetof(ls_mesh, expert), offsetof(ls_config, parallel.mesh_expert)},
    {"parallel.mesh.data", offsetof(ls_mesh, data), offsetof(ls_config, parallel.mesh_data)},
    {"parallel.chunks", offsetof(ls_mesh, stages_each), offsetof(ls_config, parallel.chunks)},
    {"parallel.zero", offsetof(ls_mesh, zero), offsetof(ls_config, parallel.zero)},
    {"parallel.recompute", offsetof(ls_mesh, recompute), offsetof(ls_config, parallel.recompute)},
    {"train.micro_batch", offsetof(ls_mesh, micro_batch), offsetof(ls_config, train.micro_batch)},
};
enum { NKEYS = sizeof keys / sizeof *keys };

static int64_t value_of(const ls_mesh *m, int key) {
    return *(const int64_t *)(const void *)((const char *)m + keys[key].at);
}

static int64_t config_value(const ls_config *c, int key) {
    return *(const int64_t *)(const void *)((const char *)c + keys[key].in_config);
}

void ls_mesh_set(ls_config *c, const ls_mesh *m) {
    for (int i = 0; i < NKEYS; i++)
        *(int64_t *)(void *)((char *)c + keys[i].in_config) = value_of(m, i);
    c->parallel.schedule = m->schedule;
    c->parallel.recompute_layers = 0;
    c->parallel.stages = "";
}

/* Few models have chunks, or groups of experts: then a degree of 1 is left out, unless the config
 * has another one. */
static bool is_usual(const ls_config *c, const ls_mesh *m, int key) {
    bool rare =
        keys[key].at == offsetof(ls_mesh, context) || keys[key].at == offsetof(ls_mesh, expert);
    return rare && value_of(m, key) == 1 && config_value(c, key) == 1;
}

void ls_mesh_text(const ls_config *c, const ls_mesh *m, ls_buf *out) {
    for (int i = 0; i < NKEYS; i++) {
        if (is_usual(c, m, i)) continue;
        if (keys[i].at == offsetof(ls_mesh, stages_each))
            ls_buf_printf(out, " parallel.schedule=%s", ls_pipe_name(m->schedule));
        ls_buf_printf(out, " %s=%lld", keys[i].key, (long long)value_of(m, i));
    }
}
