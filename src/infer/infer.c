/* infer.c - see infer.h.
 *
 * Memory: the slots of the layers' outputs | the largest saved | the losses | the largest work.
 */
#include "infer/infer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/round_up.h"
#include "infer/paged.h"
#include "model/mixed.h"
#include "model/mixed_device.h"

/* Bytes for n samples: the maximum over layers. */
typedef struct sizes {
    size_t y, saved, losses, work;
} sizes;

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* there: on a device. */
static sizes sizes_of(const ls_model *m, ls_dtype dtype, int64_t n, bool there) {
    int nlayers = m->nlayers + m->nlate, nvalues = 0;
    for (int i = 0; i < m->nmeasures; i++)
        if (m->measures[i].nvalues > nvalues) nvalues = m->measures[i].nvalues;
    sizes s = {.losses = (size_t)(m->nlosses + m->nnotes + nvalues) * (size_t)n * sizeof(double)};
    for (int i = 0; i < nlayers + m->nmeasures; i++) {
        const ls_layer *l = i < nlayers ? &m->layers[i] : &m->measures[i - nlayers].layer;
        s.y = larger(s.y, (size_t)n * l->y_floats * ls_dtype_size(dtype));
        if (l->traits.loss)
            s.y = larger(s.y, (size_t)l->V * sizeof(float)); /* one position's logits */
        if (!l->traits.has_logits)                           /* only training saves them */
            s.saved = larger(s.saved, ls_mixed_saved_nbytes(l, n, dtype));
        s.work = larger(s.work, there ? ls_mixed_device_work_nbytes(l, n)
                                      : ls_mixed_work_nbytes(l, n, dtype, LS_F32, false));
    }
    s.y = ls_round_up(s.y, 64);
    s.saved = ls_round_up(s.saved, 64);
    s.losses = ls_round_up(s.losses, 64);
    return s;
}

/* The type of what layers compute: a device has all numbers in f32 (model/mixed_device.h). */
static ls_dtype type_of(const ls_infer *f) { return f->compute->device ? LS_F32 : f->dtype; }

static sizes sizes_for(const ls_infer *f) {
    return sizes_of(f->model, type_of(f), f->n, f->compute->device);
}

static size_t sum_of(const ls_model *m, sizes s) {
    return (size_t)m->nslots * s.y + s.saved + s.losses + s.work;
}

size_t ls_infer_nbytes(const ls_model *m, ls_dtype dtype, int64_t n) {
    return sum_of(m, sizes_of(m, dtype, n, false));
}

size_t ls_infer_device_nbytes(const ls_model *m, int64_t n) {
    return sum_of(m, sizes_of(m, LS_F32, n, true));
}

ls_status ls_infer_open_memory(ls_infer *f, int64_t n, const char *what, ls_error *e) {
    ls_device *d = f->compute->device;
    size_t nbytes =
        d ? ls_infer_device_nbytes(f->model, n) : ls_infer_nbytes(f->model, f->dtype, n);
    nbytes = ls_round_up(nbytes, 64);
    f->n = n;
    f->memory = f->samples = f->logits = NULL;
    if (!d) return ls_map(nbytes, what, &f->memory, e);
    LS_TRY(
        ls_device_alloc(d, nbytes + (size_t)n * f->model->sample_nbytes + 64, what, &f->memory, e));
    f->samples = (char *)f->memory + nbytes;
    f->logits = LS_NEW_ARRAY(float, (size_t)ls_infer_nlogits(f->model) + 1);
    return LS_OK;
}

void ls_infer_close_memory(ls_infer *f) {
    ls_device *d = f->compute ? f->compute->device : NULL;
    if (!f->memory) return;
    if (d)
        ls_device_free(d, f->memory);
    else
        ls_unmap(f->memory, ls_round_up(ls_infer_nbytes(f->model, f->dtype, f->n), 64));
    free(f->logits);
    f->memory = f->samples = f->logits = NULL;
}

ls_status ls_infer_check(const ls_infer *f, ls_error *e) {
    ls_device *d = f->compute->device;
    LS_TRY(ls_guard_check(e));
    return d ? ls_device_finish(d, LS_DEVICE_COMPUTE, e) : LS_OK;
}

/* The place of layer i's output. */
static void *output_of(const ls_infer *f, const sizes *s, int i) {
    return (char *)f->memory + (size_t)f->model->layers[i].link.slot * s->y;
}

static void show_nothing(void *arg, int layer, int64_t T, const void *saved) {
    (void)arg, (void)layer, (void)T, (void)saved;
}

/* What all layers of a call share. */
static void begin_call(const ls_infer *f, const sizes *s, ls_layer_call *c) {
    char *memory = (char *)f->memory + (size_t)f->model->nslots * s->y;
    c->compute = f->compute;
    c->type = f->dtype;
    c->grads_type = LS_F32;
    c->params = f->params;
    c->frozen = f->frozen;
    c->rows = f->rows;
    c->constants = f->constants;
    c->saved = memory;
    c->work = (float *)(void *)(memory + s->saved + s->losses);
}

/* Points the call at the inputs of layer i, and at the place of its output. */
static void place_layer(const ls_infer *f, const sizes *s, int i, ls_layer_call *c) {
    const ls_layer *l = &f->model->layers[i];
    for (int k = 0; k < l->ninputs; k++) c->x[k] = output_of(f, s, l->inputs[k]);
    c->y = output_of(f, s, i);
}

/* Floats of a layer's part of a page of LS_KEPT_PAGE positions. */
static size_t part_floats(const ls_layer *l, ls_kept_type type) {
    size_t pages = (size_t)((l->T + LS_KEPT_PAGE - 1) / LS_KEPT_PAGE), all = l->memory.past / pages;
    size_t floats = type == LS_KEPT_F32   ? all
                    : type == LS_KEPT_F16 ? all / 2
                                          : all / 4 + l->memory.past_factors;
    return ls_round_up(floats, 16);
}

size_t ls_infer_page_floats(const ls_model *m, ls_kept_type type) {
    size_t floats = 0;
    for (int i = 0; i < m->nlayers; i++) floats += part_floats(&m->layers[i], type);
    return floats;
}

/* Layers [0, end), each from its inputs, at the call's positions (0: at all of the model's);
 * returns the last output. A layer may have several rows for a position, e.g. one for each head. */
static const void *forward(const ls_infer *f, ls_layer_call *c, int end, ls_infer_show *show,
                           void *arg) {
    sizes s = sizes_for(f);
    int64_t T = c->T, all = f->model->layers[f->model->nlayers - 1].T;
    begin_call(f, &s, c);
    double *losses = c->losses;
    float *kept = c->past.kept;
    size_t at = 0;
    for (int i = 0; i < end; i++) {
        const ls_layer *l = &f->model->layers[i];
        if (kept) c->past.kept = kept;
        if (kept) kept += ls_round_up(l->memory.past, 16);
        c->past.at = at;
        at += part_floats(l, c->past.type);
        bool whole =
            l->T < all && !l->traits.loss; /* it has no positions: a weight that is a value */
        c->T = T && !whole ? T * (l->T / all) : l->T;
        place_layer(f, &s, i, c);
        if (losses) c->losses = losses + l->link.loss_at * f->n;
        ls_mixed_forward(l, c);
        show(arg, i, c->T, ls_mixed_shown(l, c));
    }
    return c->y;
}

/* The losses [nlosses][n] of the samples of a call, the notes [nnotes][n], and the values
 * [n][nvalues] of a measure. */
static double *losses_of(const ls_infer *f, const sizes *s) {
    return (double *)(void *)((char *)f->memory + (size_t)f->model->nslots * s->y + s->saved);
}

/* Gives the device nbytes of the call's samples. */
static void send_samples(const ls_infer *f, ls_layer_call *c, size_t nbytes) {
    c->host_samples = c->samples;
    c->samples = f->samples;
    ls_device_copy_to(f->compute->device, LS_DEVICE_COMPUTE, f->samples, c->host_samples, nbytes);
}

/* Queues a copy of what the device computes. */
static void fetch(const ls_infer *f, void *to, const void *from, size_t nbytes) {
    ls_device_copy_from(f->compute->device, LS_DEVICE_COMPUTE, to, from, nbytes);
}

/* The losses of the call's samples, and all of them with the notes in `each`, which is memory of
 * the host: losses_of(), or where there is a device, a copy of it. Runs layers [0, end): all, or
 * those of training. */
static ls_status add_losses(const ls_infer *f, ls_layer_call *c, int end, double *each,
                            double *losses, ls_error *e) {
    sizes s = sizes_for(f);
    ls_device *d = f->compute->device;
    size_t n = (size_t)((f->model->nlosses + f->model->nnotes) * f->n);
    c->losses = losses_of(f, &s);
    if (d) send_samples(f, c, (size_t)c->n * c->sample_nbytes);
    if (d) ls_device_clear(d, LS_DEVICE_COMPUTE, c->losses, n * sizeof *each);
    c->notes = c->losses + f->model->nlosses * f->n;
    c->notes_stride = f->n;
    forward(f, c, end, show_nothing, NULL);
    if (d) {
        fetch(f, each, losses_of(f, &s), n * sizeof *each);
        LS_TRY(ls_device_finish(d, LS_DEVICE_COMPUTE, e));
    }
    for (int64_t i = 0; i < c->n; i++) {
        losses[i] = each[i];
        for (int k = 1; k < f->model->nlosses - f->model->nauxiliary; k++)
            losses[i] += each[k * f->n + i];
    }
    return LS_OK;
}

bool ls_infer_runs_on_device(const ls_model *m) {
    bool runs = true;
    for (int i = 0; i < m->nlayers + m->nlate; i++) runs = runs && m->layers[i].traits.on_device;
    return runs;
}

/* The call of the samples from i on, as many as fit. */
static ls_layer_call call_of(const ls_infer *f, int64_t i, int64_t n, const void *samples) {
    size_t nbytes = f->model->sample_nbytes;
    return (ls_layer_call){.n = n - i < f->n ? n - i : f->n,
                           .samples = (const char *)samples + (size_t)i * nbytes,
                           .sample_nbytes = nbytes};
}

/* A copy of losses_of() that a device has; NULL: they are the host's. Free it. */
static double *make_copies(const ls_infer *f, const sizes *s) {
    return f->compute->device ? LS_NEW_ARRAY(double, s->losses / sizeof(double)) : NULL;
}

void ls_infer_losses(const ls_infer *f, int64_t n, const void *samples, double *losses) {
    sizes s = sizes_for(f);
    double *here = make_copies(f, &s);
    memset(losses, 0, (size_t)n * sizeof *losses);
    for (int64_t i = 0; i < n; i += f->n) {
        ls_layer_call c = call_of(f, i, n, samples);
        add_losses(f, &c, f->model->nlayers, here ? here : losses_of(f, &s), losses + i, NULL);
    }
    free(here);
}

/* After the layers: the values of a measure. */
static void measure(const ls_infer *f, ls_layer_call *c, const ls_measure *x, double *values) {
    sizes s = sizes_for(f);
    for (int k = 0; k < x->layer.ninputs; k++) c->x[k] = output_of(f, &s, x->layer.inputs[k]);
    c->T = x->layer.T;
    c->losses = values;
    ls_mixed_forward(&x->layer, c);
}

/* The same of layers that have run on a device: cores measure, after what they read has been
 * copied. */
static ls_status measure_copies(const ls_infer *f, const ls_layer_call *there, const ls_measure *x,
                                double *values, ls_error *e) {
    const ls_layer *l = &x->layer;
    sizes s = sizes_for(f);
    ls_compute host = *f->compute;
    ls_layer_call c = *there;
    char *memory = ls_alloc((size_t)l->ninputs * s.y + s.saved + s.work + 64);
    char *at = memory + (64 - (uintptr_t)memory % 64);
    host.device = NULL;
    c.compute = &host;
    c.type = LS_F32;
    c.samples = there->host_samples;
    c.T = l->T;
    c.losses = values;
    for (int k = 0; k < l->ninputs; k++, at += s.y) {
        c.x[k] = at;
        fetch(f, at, output_of(f, &s, l->inputs[k]), s.y);
    }
    c.saved = at;
    c.work = (float *)(void *)(at + s.saved);
    ls_status status = ls_device_finish(f->compute->device, LS_DEVICE_COMPUTE, e);
    if (status == LS_OK) ls_mixed_forward(l, &c);
    free(memory);
    return status;
}

/* The records of a call's samples, in `to` [n][ls_record_size()]. each: as in add_losses(). */
static ls_status record(const ls_infer *f, ls_layer_call *c, double *each, double *to,
                        ls_error *e) {
    const ls_model *m = f->model;
    double *notes = each + m->nlosses * f->n, *values = notes + m->nnotes * f->n;
    size_t size = ls_record_size(m);
    const char *samples = c->samples;
    if (f->fetch) LS_TRY(f->fetch(f->fetch_arg, c->n, c->samples, e));
    LS_TRY(add_losses(f, c, m->nlayers + m->nlate, each, each, e));
    for (int64_t j = 0; j < c->n; j++) {
        const char *sample = samples + (size_t)j * c->sample_nbytes;
        to[(size_t)j * size + LS_RECORD_LOSS] = each[j];
        LS_TRY(ls_weigh(&m->weighing, sample, &to[(size_t)j * size + LS_RECORD_WEIGHT], e));
        for (int k = 0; k < m->nnotes; k++)
            to[(size_t)j * size + LS_RECORD_VALUES + (size_t)k] = notes[k * f->n + j];
    }
    for (int k = 0; k < m->nmeasures; k++) {
        const ls_measure *x = &m->measures[k];
        if (f->compute->device)
            LS_TRY(measure_copies(f, c, x, values, e));
        else
            measure(f, c, x, values);
        for (int64_t j = 0; j < c->n; j++)
            memcpy(to + (size_t)j * size + x->at, values + j * x->nvalues,
                   (size_t)x->nvalues * sizeof *values);
    }
    return LS_OK;
}

ls_status ls_infer_records(const ls_infer *f, int64_t n, const void *samples, double *records,
                           ls_error *e) {
    const ls_model *m = f->model;
    sizes s = sizes_for(f);
    double *here = make_copies(f, &s);
    ls_status status = LS_OK;
    for (int64_t i = 0; status == LS_OK && i < n; i += f->n) {
        ls_layer_call c = call_of(f, i, n, samples);
        double *to = records + (size_t)i * ls_record_size(m);
        status = record(f, &c, here ? here : losses_of(f, &s), to, e);
    }
    free(here);
    return status == LS_OK ? ls_infer_check(f, e) : status;
}

/* ---- predictions ---- */

typedef struct predicting {
    const ls_prediction *list; /* [n] */
    int n;
    float *const *out; /* [n] of all samples */
    int64_t first;     /* the call's first one */
    void *fused;       /* on a device: room for the logits of a loss */
} predicting;

static float *place_of(const predicting *p, int k) {
    return p->out[k] + (size_t)p->first * (size_t)ls_prediction_count(&p->list[k]);
}

/* Copies n numbers of a layer's output, in the host's memory, as f32. */
static void copy_values(const ls_infer *f, size_t n, const void *values, float *to) {
    if (f->dtype == LS_F32)
        memcpy(to, values, n * sizeof *to);
    else
        f->compute->k->widen(f->dtype, n, values, to);
}

/* The same, and what the layer leaves to its readers in 16 bits. */
static void read_output(const ls_infer *f, const ls_layer *l, size_t n, const void *y, float *to) {
    ls_layer_scale s = l->half.later;
    copy_values(f, n, y, to);
    if (f->dtype != LS_F32 && s.scale != 0)
        f->compute->k->affine((int64_t)n, to, s.scale, s.shift, to);
}

/* Copies the output of layer i to each prediction that it is. */
static void take_output(const ls_infer *f, const ls_layer_call *c, const predicting *p, int i) {
    for (int k = 0; k < p->n; k++) {
        if (p->list[k].layer != i || p->list[k].is_fused) continue;
        size_t n = (size_t)c->n * (size_t)ls_prediction_count(&p->list[k]);
        if (f->compute->device)
            fetch(f, place_of(p, k), c->y, n * sizeof(float));
        else
            read_output(f, &f->model->layers[i], n, c->y, place_of(p, k));
    }
}

/* Is layer i the loss that writes the logits of prediction k? */
static bool is_fused(const predicting *p, int i, int *k_p) {
    for (*k_p = 0; *k_p < p->n; ++*k_p)
        if (p->list[*k_p].layer == i && p->list[*k_p].is_fused) return true;
    return false;
}

/* Runs the loss that writes the logits of prediction k. */
static void predict_fused(const ls_infer *f, ls_layer_call *c, const ls_layer *l,
                          const predicting *p, int k) {
    c->y = f->compute->device ? p->fused : place_of(p, k);
    ls_mixed_forward(l, c);
    if (f->compute->device)
        fetch(f, place_of(p, k), p->fused,
              (size_t)(c->n * ls_prediction_count(&p->list[k])) * sizeof(float));
}

static void predict(const ls_infer *f, ls_layer_call *c, const bool *needed, const predicting *p) {
    sizes s = sizes_for(f);
    begin_call(f, &s, c);
    if (f->compute->device) send_samples(f, c, (size_t)c->n * c->sample_nbytes);
    for (int i = 0; i < f->model->nlayers; i++) {
        const ls_layer *l = &f->model->layers[i];
        int k = 0;
        if (!needed[i]) continue;
        c->T = l->T;
        place_layer(f, &s, i, c);
        if (is_fused(p, i, &k)) {
            predict_fused(f, c, l, p, k);
            continue;
        }
        ls_mixed_forward(l, c);
        take_output(f, c, p, i);
    }
}

/* A device's memory for the logits that losses write. */
static ls_status open_fused(const ls_infer *f, const ls_infer_predicted *w, void **p_p,
                            ls_error *e) {
    size_t most = 0;
    for (int k = 0; k < w->n; k++)
        if (w->list[k].is_fused) most = larger(most, (size_t)ls_prediction_count(&w->list[k]));
    *p_p = NULL;
    if (!f->compute->device || !most) return LS_OK;
    return ls_device_alloc(f->compute->device, most * (size_t)f->n * sizeof(float), "predictions",
                           p_p, e);
}

ls_status ls_infer_predictions(const ls_infer *f, const ls_infer_predicted *w, int64_t n,
                               const void *samples, ls_error *e) {
    bool *needed = ls_alloc((size_t)f->model->nlayers), fields[LS_SOURCE_FIELDS];
    void *fused = NULL;
    ls_status status = open_fused(f, w, &fused, e);
    ls_predictions_need(f->model, w->list, w->n, needed, fields);
    for (int64_t i = 0; status == LS_OK && i < n; i += f->n) {
        ls_layer_call c = call_of(f, i, n, samples);
        predicting p = {w->list, w->n, w->out, i, fused};
        if (f->fetch) status = f->fetch(f->fetch_arg, c.n, c.samples, e);
        if (status == LS_OK) predict(f, &c, needed, &p);
        if (status == LS_OK) status = ls_infer_check(f, e);
    }
    if (fused) ls_device_free(f->compute->device, fused);
    free(needed);
    return status;
}

const float *ls_infer_next(const ls_infer *f, const uint32_t *tokens, int64_t T) {
    return ls_infer_next_shown(f, tokens, T, show_nothing, NULL);
}

/* The last layer, or the first slice of the vocabulary. */
int ls_infer_head(const ls_model *m) {
    int head = 0;
    while (head < m->nlayers - 1 && !m->layers[head].traits.has_logits) head++;
    return head;
}

int64_t ls_infer_nlogits(const ls_model *m) {
    int64_t V = 0;
    for (int i = ls_infer_head(m); i < m->nlayers; i++) {
        const ls_layer *l = &m->layers[i];
        int64_t end = (l->traits.has_logits ? l->end.first_logit : 0) + l->V;
        if ((l->traits.has_logits || l->traits.loss) && end > V) V = end;
    }
    return V;
}

/* The slices of the vocabulary, of one row. */
static void slice_logits(const ls_infer *f, ls_layer_call *c, const void *row, float *logits) {
    c->T = 1;
    for (int i = ls_infer_head(f->model); i < f->model->nlayers; i++) {
        const ls_layer *l = &f->model->layers[i];
        if (!l->traits.has_logits) continue;
        c->x[0] = row;
        c->logits = logits + l->end.first_logit;
        ls_mixed_forward(l, c);
    }
}

/* The same of position t, from layer `head` on. */
static const float *sliced_logits(const ls_infer *f, ls_layer_call *c, int head, int64_t t) {
    sizes s = sizes_for(f);
    const ls_layer *l = &f->model->layers[head];
    float *logits = output_of(f, &s, head);
    size_t row = (size_t)l->C * ls_dtype_size(type_of(f));
    slice_logits(f, c, (const char *)output_of(f, &s, l->inputs[0]) + (size_t)t * row, logits);
    return logits;
}

/* The logits of position t, from x [T][C], the values of the layers before the head. */
static const float *logits_at(const ls_infer *f, ls_layer_call *c, const char *x, int64_t t) {
    int last = ls_infer_head(f->model);
    const ls_layer *head = &f->model->layers[last];
    if (head->traits.has_logits) return sliced_logits(f, c, last, t);
    size_t row = (size_t)head->C * ls_dtype_size(type_of(f));
    c->x[0] = x + (size_t)t * row;
    c->T = 1;
    sizes s = sizes_for(f);
    c->y = output_of(f, &s, last);
    ls_mixed_forward(head, c);
    return c->y;
}

/* Gives the device the tokens of the call's positions. */
static void send_tokens(const ls_infer *f, ls_layer_call *c) {
    if (f->compute->device) send_samples(f, c, (size_t)c->T * sizeof(uint32_t));
}

/* logits_at() in the host's memory. */
static const float *fetched_logits(const ls_infer *f, ls_layer_call *c, const char *x, int64_t t) {
    const float *logits = logits_at(f, c, x, t);
    if (!f->compute->device) return logits;
    fetch(f, f->logits, logits, (size_t)ls_infer_nlogits(f->model) * sizeof *logits);
    ls_infer_check(f, NULL);
    return f->logits;
}

/* The logits after the call's positions, of one sample: the head needs only the last position. */
static const float *last_logits(const ls_infer *f, ls_layer_call *c, ls_infer_show *show,
                                void *arg) {
    int64_t T = c->T;
    send_tokens(f, c);
    const char *x = forward(f, c, ls_infer_head(f->model), show, arg);
    return fetched_logits(f, c, x, T - 1);
}

void ls_infer_logits(const ls_infer *f, const uint32_t *tokens, int64_t T, size_t V, float *out) {
    ls_layer_call c = {.n = 1, .T = T, .samples = tokens};
    send_tokens(f, &c);
    const char *x = forward(f, &c, ls_infer_head(f->model), show_nothing, NULL);
    for (int64_t t = 0; t < T; t++)
        memcpy(out + (size_t)t * V, fetched_logits(f, &c, x, t), V * sizeof *out);
}

const float *ls_infer_next_shown(const ls_infer *f, const uint32_t *tokens, int64_t T,
                                 ls_infer_show *show, void *arg) {
    ls_layer_call c = {.n = 1, .T = T, .samples = tokens};
    return last_logits(f, &c, show, arg);
}

const float *ls_infer_continued(const ls_infer *f, const uint32_t *tokens, int64_t T,
                                ls_past past) {
    ls_layer_call c = {.n = 1, .T = T, .samples = tokens, .past = past};
    return last_logits(f, &c, show_nothing, NULL);
}

/* The rows `wanted` of x, one after the other. */
static void *gather_rows(const void *x, size_t row, const int64_t *wanted, int64_t n) {
    char *rows = ls_alloc((size_t)n * row + 64);
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + (size_t)i * row, (const char *)x + (size_t)wanted[i] * row, row);
    return rows;
}

int64_t ls_infer_width(const ls_model *m) { return m->layers[ls_infer_head(m)].C; }

/* The last values of rows of x. */
static void show_hidden(const ls_infer *f, ls_layer_call *c, const void *x,
                        const ls_infer_together *o) {
    const ls_layer *head = &f->model->layers[ls_infer_head(f->model)];
    size_t width = (size_t)head->C, n = (size_t)o->nshown * width;
    void *rows = gather_rows(x, width * ls_dtype_size(f->dtype), o->shown, o->nshown);
    if (head->traits.norms) {
        c->T = o->nshown;
        c->x[0] = rows;
        c->y = NULL;
        c->hidden = o->hidden;
        ls_mixed_forward(head, c);
        c->hidden = NULL;
    } else {
        copy_values(f, n, rows, o->hidden);
    }
    free(rows);
}

/* ---- several texts on a device ---- */

/* Rows of x, whose numbers the device has in a list, one after the other. */
static const float *gather_there(const ls_infer *f, const void *x, const int32_t *list, int64_t n) {
    int64_t C = ls_infer_width(f->model);
    LS_LAUNCH(f->compute, LS_KERNEL_rows_gather, n, ls_device_groups(C, 256), {.l = C},
              {.from = list}, {.from = x}, {.p = f->room->rows});
    return f->room->rows;
}

/* show_hidden() of a device. */
static void fetch_hidden(const ls_infer *f, ls_layer_call *c, const void *x,
                         const ls_infer_together *o) {
    const ls_layer *head = &f->model->layers[ls_infer_head(f->model)];
    const float *rows = gather_there(f, x, f->room->shown, o->nshown);
    if (head->traits.norms) {
        c->T = o->nshown;
        c->x[0] = rows;
        c->y = NULL;
        c->hidden = f->room->results;
        ls_mixed_forward(head, c);
        rows = c->hidden;
        c->hidden = NULL;
    }
    fetch(f, o->hidden, rows, (size_t)(o->nshown * head->C) * sizeof *rows);
}

static void fetch_wanted(const ls_infer *f, ls_layer_call *c, const void *x,
                         const ls_infer_together *o) {
    const ls_layer *head = &f->model->layers[ls_infer_head(f->model)];
    int64_t n = o->nwanted, V = ls_infer_nlogits(f->model);
    const float *rows = gather_there(f, x, f->room->wanted, n);
    for (int64_t r = 0; r < n && head->traits.has_logits; r++)
        slice_logits(f, c, rows + r * head->C, f->room->results + r * V);
    if (n > 0 && !head->traits.has_logits) {
        c->T = n;
        c->x[0] = rows;
        c->y = f->room->results;
        ls_mixed_forward(head, c);
    }
    fetch(f, o->logits, f->room->results, (size_t)(n * V) * sizeof *o->logits);
}

static void texts_there(const ls_infer *f, const ls_infer_together *o) {
    ls_layer_call c = {.n = 1, .T = o->T, .samples = o->tokens};
    assert(f->room);
    ls_infer_room_send(f->room, f, o);
    send_tokens(f, &c);
    c.adapters = o->adapters;
    c.past = (ls_past){.texts = o->texts, .ntexts = o->ntexts, .type = o->kept};
    c.past.rows = &f->room->past;
    c.past.page = o->page ? o->page : ls_infer_page_floats(f->model, o->kept);
    const void *x = forward(f, &c, ls_infer_head(f->model), show_nothing, NULL);
    c.past = (ls_past){0};
    c.adapters = NULL;
    if (o->nshown) fetch_hidden(f, &c, x, o);
    fetch_wanted(f, &c, x, o);
    ls_device_finish(f->compute->device, LS_DEVICE_COMPUTE, NULL);
}

void ls_infer_texts(const ls_infer *f, const ls_infer_together *o) {
    if (f->compute->device) {
        texts_there(f, o);
        return;
    }
    ls_layer_call c = {.n = 1, .T = o->T, .samples = o->tokens};
    int64_t n = o->nwanted;
    int head = ls_infer_head(f->model);
    const ls_layer *first = &f->model->layers[head];
    c.adapters = o->adapters;
    c.past = (ls_past){.texts = o->texts, .ntexts = o->ntexts, .type = o->kept};
    c.past.page = o->page ? o->page : ls_infer_page_floats(f->model, o->kept);
    const void *x = forward(f, &c, head, show_nothing, NULL);
    size_t row = (size_t)first->C * ls_dtype_size(type_of(f));
    char *rows = gather_rows(x, row, o->wanted, n);
    c.past = (ls_past){0};
    c.adapters = NULL;
    if (o->nshown) show_hidden(f, &c, x, o);
    if (n > 0 && first->traits.has_logits) { /* slices of the vocabulary: a row at a time */
        for (int64_t r = 0; r < n; r++)
            slice_logits(f, &c, rows + (size_t)r * row, o->logits + r * ls_infer_nlogits(f->model));
    } else if (n > 0) {
        c.T = n;
        c.x[0] = rows;
        c.y = o->logits;
        ls_mixed_forward(first, &c);
    }
    free(rows);
}

void ls_infer_hidden(const ls_infer *f, const uint32_t *tokens, int64_t T, float *out) {
    ls_layer_call c = {.n = 1, .T = T, .samples = tokens};
    int last = ls_infer_head(f->model);
    const ls_layer *head = &f->model->layers[last];
    size_t n = (size_t)(T * head->C);
    sizes s = sizes_for(f);
    bool there = f->compute->device;
    send_tokens(f, &c);
    const void *rows = forward(f, &c, last, show_nothing, NULL);
    if (head->traits.norms) {
        c.x[0] = rows;
        c.y = NULL;
        c.T = T;
        c.hidden = there ? output_of(f, &s, last) : out;
        ls_mixed_forward(head, &c);
        rows = c.hidden;
    }
    if (there) {
        fetch(f, out, rows, n * sizeof *out);
        ls_infer_check(f, NULL);
    } else if (!head->traits.norms) {
        copy_values(f, n, rows, out);
    }
}

void ls_infer_mean(const ls_infer *f, const uint32_t *tokens, int64_t T, float *out) {
    int64_t C = f->model->layers[ls_infer_head(f->model)].C;
    float *rows = LS_NEW_ARRAY(float, (size_t)(T * C));
    ls_infer_hidden(f, tokens, T, rows);
    for (int64_t k = 0; k < C; k++) {
        double sum = 0;
        for (int64_t t = 0; t < T; t++) sum += (double)rows[t * C + k];
        out[k] = (float)(sum / (double)T);
    }
    free(rows);
}
