/* model.c - see model.h. */
#include "model/model.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/round_up.h"
#include "model/draft.h"
#include "model/tensor_part.h"

ls_layer *ls_model_add_layer(ls_model *m, const char *name) {
    m->layers = ls_grow(m->layers, (size_t)m->nlayers, sizeof *m->layers);
    ls_layer *l = &m->layers[m->nlayers++];
    *l = (ls_layer){0};
    snprintf(l->name, sizeof l->name, "%s", name);
    l->slice = m->slice;
    l->chunk = m->chunk;
    return l;
}

void ls_model_add_param(ls_model *m, ls_layer *l, const char *name, const ls_param *given) {
    m->params = ls_grow(m->params, (size_t)m->nparams, sizeof *m->params);
    ls_param *p = &m->params[m->nparams];
    *p = *given;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->cut.slice = l->slice;
    p->cut.chunk = l->chunk;
    p->offset = m->nfloats;
    p->count = 1;
    for (int d = 0; d < p->ndims; d++) p->count *= (size_t)p->dims[d];
    l->params[l->nparams] = m->nparams++;
    l->counts[l->nparams] = p->count;
    l->link.offsets[l->nparams++] = p->offset;
    m->nfloats += ls_round_up(p->count, 16);
    m->count += p->count;
}

ls_param ls_param_whole(const ls_param *p) {
    ls_param whole = *p;
    whole.dims[0] = p->window.rows;
    whole.count = (size_t)(p->window.rows * p->dims[1]);
    whole.offset = p->window.at;
    return whole;
}

/* Trained parameters lie in the flat buffers, and frozen ones in a buffer of their own, in the
 * order of the table. */
void ls_model_place(ls_model *m) {
    int slice = 0, chunk = m->nparams ? m->params[0].cut.chunk : 0;
    m->nfloats = m->frozen_floats = m->frozen_count = 0;
    for (int i = 0; i < m->nparams; i++) {
        ls_param *p = &m->params[i];
        size_t *end = p->frozen ? &m->frozen_floats : &m->nfloats;
        bool alone = p->cut.whole || p->cut.undivided || p->cut.own_blocks;
        size_t unit = alone && !p->frozen ? LS_BLOCK : 16;
        /* those of several slices share no block, nor do those of some chunks and of all */
        bool same = p->cut.slice == slice && p->cut.chunk == chunk;
        bool begins = !p->frozen && !same;
        if (!p->frozen) slice = p->cut.slice;
        if (!p->frozen) chunk = p->cut.chunk;
        p->offset = ls_round_up(*end, begins ? LS_BLOCK : unit);
        *end = p->offset + ls_round_up(p->count, unit);
        if (p->frozen) m->frozen_count += p->count;
    }
    m->nfloats = ls_round_up(m->nfloats, LS_BLOCK);
    for (int i = 0; i < m->nlayers; i++) {
        ls_layer *l = &m->layers[i];
        for (int k = 0; k < l->nparams; k++) {
            l->link.offsets[k] = m->params[l->params[k]].offset;
            l->link.frozen[k] = m->params[l->params[k]].frozen;
        }
        for (int k = 0; k < l->ninputs; k++)
            if (l->traits.only_first_reads && l->link.frozen[0]) l->unread[k] = true;
    }
}

static bool reads(const ls_layer *l, int v) {
    for (int k = 0; k < l->ninputs; k++)
        if (l->inputs[k] == v) return true;
    return false;
}

/* Is the value needed after the last layer, by a measure or a layer before one? */
static bool is_measured(const ls_model *m, int v) {
    for (int i = 0; i < m->nmeasures; i++)
        if (reads(&m->measures[i].layer, v)) return true;
    for (int l = m->nlayers; l < m->nlayers + m->nlate; l++)
        if (reads(&m->layers[l], v)) return true;
    return false;
}

static ls_status link_inputs(ls_model *m, int l, ls_error *e) {
    const ls_layer *layer = &m->layers[l];
    if (layer->ninputs < 0 || layer->ninputs > LS_LAYER_MAX_INPUTS)
        return ls_fail(e, LS_EINVAL, "layer '%s' has %d inputs; at most %d are possible",
                       layer->name, layer->ninputs, LS_LAYER_MAX_INPUTS);
    for (int k = 0; k < layer->ninputs; k++) {
        int v = layer->inputs[k];
        if (v < 0 || v >= l)
            return ls_fail(e, LS_EINVAL, "layer '%s' reads a value that no layer before it has",
                           layer->name);
        if (m->layers[v].traits.loss)
            return ls_fail(e, LS_EINVAL, "layer '%s' reads '%s', which is a loss", layer->name,
                           m->layers[v].name);
        if (m->layers[v].y_floats != layer->input_floats[k])
            return ls_fail(e, LS_EINVAL, "layer '%s' needs an input of %zu numbers; '%s' has %zu",
                           layer->name, layer->input_floats[k], m->layers[v].name,
                           m->layers[v].y_floats);
        m->layers[v].link.last_reader = l;
    }
    return LS_OK;
}

/* A layer that is not the last reader of an input adds to the gradient of it; a layer that reads a
 * value twice adds the second time. */
static void link_gradients(ls_model *m, int l) {
    ls_layer *layer = &m->layers[l];
    layer->link.added_floats = 0;
    for (int k = 0; k < layer->ninputs; k++) {
        layer->link.adds[k] = m->layers[layer->inputs[k]].link.last_reader != l;
        for (int i = 0; i < k; i++)
            layer->link.adds[k] = layer->link.adds[k] || layer->inputs[i] == layer->inputs[k];
        if (layer->link.adds[k]) layer->link.added_floats += layer->input_floats[k];
    }
    /* Sums of gradients are in f32: its own part is too. */
    if (layer->link.added_floats > 0 && !layer->traits.adds_itself)
        layer->half.as_stored &= ~(unsigned)LS_OPERAND_DX;
}

static bool is_constant(const ls_model *m, const ls_layer *l) {
    for (int k = 0; k < l->nparams; k++)
        if (!l->link.frozen[k]) return false;
    return !ls_model_has_dx(m, l);
}

/* Once it is known which values are constant. */
static ls_status check_constants(const ls_model *m, const ls_layer *l, ls_error *e) {
    for (int k = 0; k < l->nparams; k++)
        if (l->link.frozen[k] && l->traits.trains_all && !l->link.is_constant)
            return ls_fail(e, LS_EINVAL,
                           "'%s' can't be frozen: the backward of layer '%s' computes the "
                           "gradients of all its parameters; its kind sets .may_freeze if it "
                           "leaves out those whose dparam is NULL",
                           m->params[l->params[k]].name, l->name);
    int running = 0, fixed = 0;
    for (int k = 0; k < l->nparams; k++) {
        running += m->params[l->params[k]].momentum > 0;
        fixed += m->params[l->params[k]].momentum > 0 && l->link.frozen[k];
    }
    if (fixed && fixed < running)
        return ls_fail(e, LS_EINVAL,
                       "some running values of layer '%s' are frozen, and others are not; freeze "
                       "all of them, or none",
                       l->name);
    if (l->end.fixed_input && !m->layers[l->inputs[l->end.fixed_input]].link.is_constant)
        return ls_fail(e, LS_EINVAL,
                       "layer '%s': the targets depend on parameters that are trained", l->name);
    return LS_OK;
}

/* The first slot that no value has that this layer, a later one or a measure reads.
 * last_reader [LS_MODEL_MAX_SLOTS]: of the latest value in each of the model's slots. */
static ls_status choose_slot(ls_model *m, int l, int *last_reader, ls_error *e) {
    int slot = 0;
    while (slot < m->nslots && last_reader[slot] >= l) slot++;
    if (slot == LS_MODEL_MAX_SLOTS)
        return ls_fail(e, LS_EINVAL,
                       "at layer '%s' more than %d values are needed at the same time",
                       m->layers[l].name, LS_MODEL_MAX_SLOTS);
    m->layers[l].link.slot = slot;
    last_reader[slot] = is_measured(m, l) ? INT_MAX : m->layers[l].link.last_reader;
    if (slot >= m->nslots) m->nslots = slot + 1;
    return LS_OK;
}

/* Numbers the losses; auxiliary ones are the last. */
static void count_losses(ls_model *m) {
    m->nlosses = m->nauxiliary = 0;
    for (int auxiliary = 0; auxiliary < 2; auxiliary++)
        for (int l = 0; l < m->nlayers; l++) {
            ls_layer *layer = &m->layers[l];
            if (!layer->traits.loss || layer->traits.auxiliary != auxiliary) continue;
            layer->link.loss_at = m->nlosses++;
            m->nauxiliary += auxiliary;
        }
}

ls_status ls_model_link(ls_model *m, ls_error *e) {
    int last_reader[LS_MODEL_MAX_SLOTS];
    m->nslots = 0;
    count_losses(m);
    ls_model_place(m);
    for (int l = 0; l < m->nlayers; l++) {
        m->layers[l].link.last_reader = -1;
        LS_TRY(link_inputs(m, l, e));
    }
    for (int l = 0; l < m->nlayers; l++) {
        ls_layer *layer = &m->layers[l];
        layer->link.is_constant = is_constant(m, layer);
        LS_TRY(check_constants(m, layer, e));
        if (m->layers[l].link.last_reader < 0 && !m->layers[l].traits.loss)
            return ls_fail(e, LS_EINVAL, "no layer reads the output of layer '%s'",
                           m->layers[l].name);
        link_gradients(m, l);
        LS_TRY(choose_slot(m, l, last_reader, e));
    }
    for (int l = m->nlayers; l < m->nlayers + m->nlate; l++) {
        m->layers[l].link.last_reader = -1;
        LS_TRY(choose_slot(m, l, last_reader, e));
    }
    /* the chunks of a sample have parts of one loss */
    if (m->nlosses - m->nauxiliary > 1 && m->nchunks <= 1) m->weighing.ntargets = 0;
    if (m->nlosses == m->nauxiliary) return ls_fail(e, LS_EINVAL, "the model has no loss");
    return LS_OK;
}

static bool are_beside(const ls_layer *a, const ls_layer *b) {
    return a->slice == b->slice && a->chunk == b->chunk;
}

static int slices_of(const ls_model *m) { return m->nslices > 1 ? m->nslices : 1; }
static int chunks_of(const ls_model *m) { return m->nchunks > 1 ? m->nchunks : 1; }

int ls_model_parts(const ls_model *m) { return slices_of(m) * chunks_of(m); }

/* Notes that layer l reads value v, which is the only one of its slice and chunk; false: it is not,
 * or l is of others. value [parts]: 1 + that of a slice and chunk; 0: none. */
static bool note_value(const ls_model *m, int l, int v, int *value) {
    const ls_layer *from = &m->layers[v];
    int chunk = chunks_of(m) > 1 ? from->chunk : 0,
        *at = &value[chunk * slices_of(m) + from->slice];
    bool is = (!*at || *at == 1 + v) && (ls_model_parts(m) == 1 || are_beside(from, &m->layers[l]));
    *at = 1 + v;
    return is;
}

/* One value of each chunk, or of each slice in it? */
static bool is_one_each(const ls_model *m, const int *value) {
    int slices = slices_of(m);
    bool one = true, every = true;
    for (int c = 0; c < chunks_of(m); c++) {
        int n = 0;
        for (int k = 0; k < slices; k++) n += value[c * slices + k] > 0;
        one = one && n == 1;
        every = every && n == slices;
    }
    return one || every;
}

/* Do all chunks have the same number of layers before this one, for each of the parameters that
 * they share? */
static bool is_even(const ls_model *m, int layer) {
    size_t chunks = (size_t)chunks_of(m);
    if (chunks == 1) return true;
    int *before = LS_NEW_ARRAY(int, (size_t)m->nparams *chunks);
    for (int l = 0; l < layer; l++)
        for (int k = 0; k < m->layers[l].nparams; k++)
            before[(size_t)m->layers[l].params[k] * chunks + (size_t)m->layers[l].chunk]++;
    bool even = true;
    for (int i = 0; i < m->nparams; i++)
        for (size_t c = 1; m->params[i].cut.chunk < 0 && c < chunks; c++)
            even = even && before[(size_t)i * chunks + c] == before[(size_t)i * chunks];
    free(before);
    return even;
}

int ls_model_cut(const ls_model *m, int layer, int *values) {
    int parts = ls_model_parts(m), n = 0, *value = LS_NEW_ARRAY(int, (size_t)parts);
    bool is = true;
    for (int l = layer; l < m->nlayers && is; l++)
        for (int k = 0; k < m->layers[l].ninputs && is; k++)
            if (m->layers[l].inputs[k] < layer)
                is = note_value(m, l, m->layers[l].inputs[k], value);
    is = is && is_one_each(m, value) && is_even(m, layer);
    for (int i = 0; i < parts && is; i++) {
        if (!value[i]) continue;
        if (values) values[n] = value[i] - 1;
        n++;
    }
    free(value);
    return n;
}

const ls_constants *ls_model_constants(const ls_model *m, int *n_p) {
    *n_p = m->draft ? m->draft->nconstants : 0;
    return m->draft ? m->draft->constants : NULL;
}

size_t ls_model_constants_at(const ls_model *m, int i) {
    enum { ALIGNED = 64 };
    int n = 0;
    const ls_constants *list = ls_model_constants(m, &n);
    size_t at = ls_round_up(m->frozen_floats, ALIGNED);
    for (int k = 0; k < i && k < n; k++) at += ls_round_up(list[k].n, ALIGNED);
    return at;
}

size_t ls_model_held_floats(const ls_model *m) {
    int n = 0;
    ls_model_constants(m, &n);
    return ls_model_constants_at(m, n);
}

static void free_draft(ls_draft *d) {
    if (!d) return;
    for (int i = 0; i < d->nvalues; i++) free(d->values[i]);
    for (int i = 0; i < d->nconstants; i++) free(d->constants[i].p);
    for (int i = 0; i < d->nfrozen; i++) free(d->frozen[i].text);
    free(d->failed);
    free(d->names);
    free(d->frozen);
    free(d->values);
    free(d->constants);
    free(d);
}

void ls_model_free(ls_model *m) {
    free(m->params);
    free(m->layers);
    free(m->measures);
    free(m->inputs);
    free_draft(m->draft);
    *m = (ls_model){0};
}

/* Elements [first, first + n) of a tensor, of this number in its model. */
static void init_run(const ls_param *p, ls_random_place place, size_t n, float *x) {
    if (p->init.std > 0)
        ls_random_normal(place, n, p->init.std, x);
    else if (p->init.bound > 0)
        ls_random_uniform_f32(place, n, p->init.bound, x);
    else
        for (size_t j = 0; j < n; j++) x[j] = p->init.value;
}

void ls_model_init_param(const ls_model *m, uint64_t seed, int param, size_t first, size_t n,
                         float *x) {
    ls_param p = m->params[param];
    if (p.window.rows > 0) p = ls_param_whole(&p); /* [first, first + n) is of the table */
    uint64_t number = (uint64_t)(p.cut.part.tensor ? p.cut.part.tensor - 1 : param);
    for (size_t i = 0; i < n;) {
        size_t at = 0, run = ls_tensor_part_run(&p, first + i, &at);
        if (run > n - i) run = n - i;
        init_run(&p, (ls_random_place){seed, LS_STREAM_INIT, number, at}, run, x + i);
        i += run;
    }
}

void ls_model_init(const ls_model *m, uint64_t seed, size_t first, size_t end, float *params) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        size_t a = p->offset > first ? p->offset : first;
        size_t b = p->offset + p->count < end ? p->offset + p->count : end;
        if (a < b && !p->frozen) ls_model_init_param(m, seed, i, a - p->offset, b - a, params + a);
    }
}

/* Running values that are frozen are used in training, too. */
bool ls_model_joins(const ls_model *m, const ls_layer *l) {
    for (int k = 0; k < l->nparams; k++)
        if (m->params[l->params[k]].momentum > 0 && l->link.frozen[k]) return false;
    return l->traits.joins_samples;
}

const ls_layer *ls_model_find_joining(const ls_model *m) {
    for (int i = 0; i < m->nlayers; i++)
        if (ls_model_joins(m, &m->layers[i])) return &m->layers[i];
    return NULL;
}

static bool has_gradient_product(const ls_layer *l) {
    const ls_works *w = &l->cost.backward;
    for (int i = 0; i < w->n; i++)
        if (w->list[i].kind == LS_WORK_PRODUCT_DW && !w->list[i].in_f32) return true;
    return false;
}

int64_t ls_model_unit_samples(const ls_model *m, ls_dtype compute) {
    int64_t most = 1;
    for (int i = 0; i < m->nlayers && compute == LS_BF16; i++) {
        int64_t n = has_gradient_product(&m->layers[i]) ? ls_layer_unit_samples(m->layers[i].T) : 1;
        if (n > most) most = n;
    }
    return most * (m->together > 1 ? m->together : 1);
}

/* ---- cost ---- */

bool ls_model_has_dx(const ls_model *m, const ls_layer *l) {
    for (int k = 0; k < l->ninputs; k++)
        if (!m->layers[l->inputs[k]].link.is_constant) return true;
    return false;
}

/* The gradients of inputs take as long as forward, and those of all weights, too. */
double ls_model_backward_flops(const ls_model *m, const ls_layer *l) {
    double all = 0, trained = 0;
    for (int k = 0; k < l->nparams; k++) {
        all += (double)l->counts[k];
        if (!l->link.frozen[k]) trained += (double)l->counts[k];
    }
    double times = (all > 0 ? trained / all : 1) + ls_model_has_dx(m, l);
    return l->link.is_constant ? 0 : times * l->cost.flops;
}

double ls_model_flops(const ls_model *m) {
    double sum = 0;
    for (int i = 0; i < m->nlayers; i++)
        sum += m->layers[i].cost.flops + ls_model_backward_flops(m, &m->layers[i]);
    return sum;
}

const ls_layer *ls_model_without_flops(const ls_model *m) {
    for (int i = 0; i < m->nlayers; i++)
        if (m->layers[i].cost.unknown) return &m->layers[i];
    return NULL;
}

size_t ls_model_scratch_floats(const ls_model *m) {
    size_t most = 0;
    for (int i = 0; i < m->nlayers + m->nlate; i++)
        if (m->layers[i].memory.scratch > most) most = m->layers[i].memory.scratch;
    return most;
}

const ls_field *ls_model_field_at(const ls_model *m, size_t at) {
    for (int i = 0; i < m->ninputs; i++)
        if (at >= m->inputs[i].offset && at < m->inputs[i].offset + m->inputs[i].nbytes)
            return &m->inputs[i];
    return NULL;
}

const ls_field *ls_model_field(const ls_model *m, const char *name) {
    for (int i = 0; i < m->ninputs; i++)
        if (strcmp(m->inputs[i].name, name) == 0) return &m->inputs[i];
    return NULL;
}
