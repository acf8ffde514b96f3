/* mesh_list.c - the meshes of n workers: see mesh.h.
 *
 * A table has the choices that make a mesh, in order; each lists its values for the choices made
 * before it. A new axis is a row before "data", whose degree is what is left of the workers, and
 * a field of ls_mesh.
 */
#include <stddef.h>

#include "perf/mesh.h"
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
    int64_t least_micro, most_recomputed;
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

/* Workers that divide the slices of a layer: each has one at least. */
static void list_tensors(const listing *l, const ls_mesh *m, values *v) {
    int64_t each = l->nworkers / m->pipe;
    for (int64_t t = 1; t <= each && t <= l->c->parallel.tensor_virtual; t++)
        if (each % t == 0) add_value(v, t);
}

/* Workers that have a model together have a virtual worker at least. */
static void list_data(const listing *l, const ls_mesh *m, values *v) {
    int64_t data = l->nworkers / (m->pipe * m->tensor);
    if (data <= l->c->train.virtual_workers) add_value(v, data);
}

/* Not gpipe, which needs more memory than 1f1b for the same bubble. */
static void list_schedules(const listing *l, const ls_mesh *m, values *v) {
    (void)l;
    add_value(v, LS_PIPELINE_1F1B);
    if (m->pipe == 1) return;
    add_value(v, LS_PIPELINE_INTERLEAVED);
    add_value(v, LS_PIPELINE_ZB_H1);
    add_value(v, LS_PIPELINE_ZB_V);
}

static void list_chunks(const listing *l, const ls_mesh *m, values *v) {
    static const int64_t some[] = {2, 3, 4, 6, 8};
    if (!ls_pipe_is_chunked((ls_pipe_kind)m->schedule)) add_value(v, 1);
    if (m->schedule == LS_PIPELINE_ZB_V && 2 * m->pipe <= l->most_stages) add_value(v, 2);
    for (size_t i = 0; m->schedule == LS_PIPELINE_INTERLEAVED && i < sizeof some / sizeof *some;
         i++)
        if (m->pipe * some[i] <= l->most_stages) add_value(v, some[i]);
}

/* Alone there is nobody to share with; workers that have a model together have all parameters and
 * gradients of their layers throughout the step. */
static void list_zeros(const listing *l, const ls_mesh *m, values *v) {
    (void)l;
    int most = m->data == 1 ? 0 : m->pipe * m->tensor > 1 ? 1 : 3;
    for (int zero = 0; zero <= most; zero++) add_value(v, zero);
}

static void list_recomputes(const listing *l, const ls_mesh *m, values *v) {
    (void)m;
    add_value(v, 0);
    if (l->most_recomputed >= 2) add_value(v, 2);
}

/* A virtual worker's samples, and halves of them. */
static void list_micros(const listing *l, const ls_mesh *m, values *v) {
    (void)m;
    int64_t samples = l->c->train.batch / l->c->train.virtual_workers;
    if (l->least_micro > 1) add_value(v, l->c->train.micro_batch);
    for (int64_t x = samples; l->least_micro == 1 && x >= 1; x /= 2) add_value(v, x);
}

static const struct {
    size_t at; /* in ls_mesh */
    void (*list)(const listing *, const ls_mesh *, values *);
} choices[] = {
    {offsetof(ls_mesh, pipe), list_pipes},
    {offsetof(ls_mesh, tensor), list_tensors},
    {offsetof(ls_mesh, data), list_data},
    {offsetof(ls_mesh, schedule), list_schedules},
    {offsetof(ls_mesh, chunks), list_chunks},
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

/* Makes choice number i and all after it. */
static void choose_from(listing *l, int i, ls_mesh m) {
    values v = {.n = 0};
    if (i == NCHOICES) {
        add_mesh(l, &m);
        return;
    }
    choices[i].list(l, &m, &v);
    for (int k = 0; k < v.n; k++) {
        *(int64_t *)(void *)((char *)&m + choices[i].at) = v.list[k];
        choose_from(l, i + 1, m);
    }
}

void ls_mesh_list(const ls_config *c, int n, int most_stages, ls_mesh **list_p, int *n_p) {
    listing l = {.c = c,
                 .nworkers = n,
                 .most_stages = most_stages,
                 .least_micro = ls_layout_least_micro(c),
                 .most_recomputed = ls_layout_most_recomputed(c)};
    choose_from(&l, 0, (ls_mesh){0});
    *list_p = l.list;
    *n_p = l.n;
}

/* The keys that a mesh sets, and where their values are. */
static const struct {
    const char *key;
    size_t at, in_config;
} keys[] = {
    {"parallel.mesh.pipe", offsetof(ls_mesh, pipe), offsetof(ls_config, parallel.mesh_pipe)},
    {"parallel.mesh.tensor", offsetof(ls_mesh, tensor), offsetof(ls_config, parallel.mesh_tensor)},
    {"parallel.mesh.data", offsetof(ls_mesh, data), offsetof(ls_config, parallel.mesh_data)},
    {"parallel.schedule", offsetof(ls_mesh, schedule), offsetof(ls_config, parallel.schedule)},
    {"parallel.chunks", offsetof(ls_mesh, chunks), offsetof(ls_config, parallel.chunks)},
    {"parallel.zero", offsetof(ls_mesh, zero), offsetof(ls_config, parallel.zero)},
    {"parallel.recompute", offsetof(ls_mesh, recompute), offsetof(ls_config, parallel.recompute)},
    {"train.micro_batch", offsetof(ls_mesh, micro_batch), offsetof(ls_config, train.micro_batch)},
};
enum { NKEYS = sizeof keys / sizeof *keys };

static int64_t value_of(const ls_mesh *m, int key) {
    return *(const int64_t *)(const void *)((const char *)m + keys[key].at);
}

void ls_mesh_set(ls_config *c, const ls_mesh *m) {
    for (int i = 0; i < NKEYS; i++)
        *(int64_t *)(void *)((char *)c + keys[i].in_config) = value_of(m, i);
    c->parallel.recompute_layers = 0;
    *c->parallel.stages = 0;
}

void ls_mesh_text(const ls_mesh *m, ls_buf *out) {
    for (int i = 0; i < NKEYS; i++)
        if (keys[i].at == offsetof(ls_mesh, schedule))
            ls_buf_printf(out, " %s=%s", keys[i].key, ls_pipe_name((ls_pipe_kind)m->schedule));
        else
            ls_buf_printf(out, " %s=%lld", keys[i].key, (long long)value_of(m, i));
}
