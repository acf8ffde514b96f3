/* predictor.c - see predictor.h. */
#include "infer/predictor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/floats.h"
#include "base/graves.h"
#include "base/guard.h"
#include "base/locale.h"
#include "base/math.h"
#include "dataset/data_record.h"
#include "networks/program_model.h"

enum { MOST_SAMPLES = 1024, MOST_NBYTES = 64 << 20 }; /* of a call, unless one sample needs more */

/* What one call at a time uses. */
struct ls_predictor_memory {
    ls_compute compute;
    ls_infer infer;
    char *samples; /* [batch][sample_nbytes] */
    ls_predictor_memory *next;
};

/* ---- memory of calls ---- */

static void free_memory(ls_predictor_memory *m) {
    ls_infer_close_memory(&m->infer);
    if (m->compute.pool) ls_compute_close(&m->compute);
    free(m->samples);
    free(m);
}

static ls_status make_memory(ls_predictor *p, ls_predictor_memory **m_p, ls_error *e) {
    const ls_trained *t = &p->trained;
    ls_predictor_memory *m = LS_NEW(ls_predictor_memory);
    size_t scratch = ls_model_scratch_floats(&t->model);
    ls_status s = LS_OK;
    m->infer = t->infer;
    m->infer.memory = NULL;
    if (!t->device) {
        s = ls_compute_init(&m->compute, p->nthreads, scratch, e);
        m->infer.compute = &m->compute;
    }
    if (s == LS_OK) s = ls_infer_open_memory(&m->infer, p->batch, "activations", e);
    if (s != LS_OK) {
        free_memory(m);
        return s;
    }
    m->samples = ls_alloc((size_t)p->batch * t->model.sample_nbytes);
    *m_p = m;
    return LS_OK;
}

/* Calls take turns on a device. */
static ls_status take_memory(ls_predictor *p, ls_predictor_memory **m_p, ls_error *e) {
    if (p->trained.device) pthread_mutex_lock(&p->turn);
    pthread_mutex_lock(&p->lock);
    ls_predictor_memory *m = p->idle;
    if (m) p->idle = m->next;
    pthread_mutex_unlock(&p->lock);
    if (!m) return make_memory(p, m_p, e); /* never on a device, which has one */
    *m_p = m;
    return LS_OK;
}

static void give_memory(ls_predictor *p, ls_predictor_memory *m) {
    pthread_mutex_lock(&p->lock);
    m->next = p->idle;
    p->idle = m;
    pthread_mutex_unlock(&p->lock);
    if (p->trained.device) pthread_mutex_unlock(&p->turn);
}

/* The samples of a call: as many as fit. */
static int64_t choose_batch(const ls_trained *t, bool is_text) {
    int64_t n = is_text ? 1 : MOST_SAMPLES;
    while (n > 1 &&
           ls_infer_nbytes(&t->model, t->infer.dtype, n) + (size_t)n * t->model.sample_nbytes >
               MOST_NBYTES)
        n /= 2;
    return n;
}

/* ---- opening ---- */

/* The value that the layer of the first prediction reads, as a prediction. A target's scale, which
 * comes behind the last layer with weights, is passed over. */
static void set_vector(const ls_trained *t, ls_prediction *p) {
    const ls_layer *l = &t->model.layers[p->layer];
    if (l->half.later.scale != 0) l = &t->model.layers[l->inputs[0]];
    ls_prediction v = {.kind = LS_NUMBERS, .rows = 1};
    snprintf(v.name, sizeof v.name, "vector");
    v.layer = l->ninputs ? l->inputs[0] : p->layer;
    v.width = (int64_t)t->model.layers[v.layer].y_floats;
    memcpy(v.dims, t->model.layers[v.layer].y_dims, sizeof v.dims);
    *p = v;
}

static void set_text(ls_predictor *p) {
    const ls_model *m = &p->trained.model;
    const ls_layer *head = &m->layers[ls_infer_head(m)];
    int64_t width = p->vectors ? head->C : p->trained.config.model.vocab;
    p->n = 1;
    p->list[0] = (ls_prediction){
        .kind = p->vectors ? LS_NUMBERS : LS_CLASSES, .rows = 1, .width = width, .dims = {width}};
    snprintf(p->list[0].name, sizeof p->list[0].name, p->vectors ? "vector" : "next");
}

static ls_status set_network(ls_predictor *p, ls_error *e) {
    const ls_model *m = &p->trained.model;
    p->n = ls_predictions_of(m, p->list);
    if (p->n == 0)
        return ls_fail(e, LS_EINVAL, "%s: the model's losses predict nothing that can be read",
                       p->trained.path);
    if (p->vectors) {
        set_vector(&p->trained, &p->list[0]);
        p->n = 1;
    }
    bool *layers = ls_alloc((size_t)m->nlayers);
    ls_predictions_need(m, p->list, p->n, layers, p->fields);
    free(layers);
    for (int i = 0; i < m->ninputs; i++)
        if (p->fields[i]) p->inputs[p->ninputs++] = i;
    return LS_OK;
}

/* The names of classes, as the run's data have them. */
static ls_status name_classes(ls_predictor *p, ls_error *e) {
    for (int k = 0; k < p->n; k++)
        if (p->list[k].kind == LS_CLASSES)
            LS_TRY(ls_data_record_classes(p->trained.path, p->list[k].name, &p->classes[k], e));
    return LS_OK;
}

static ls_status open_model(ls_predictor *p, const char *path, const char *const *sets, int nsets,
                            const ls_predictor_options *given, ls_error *e) {
    ls_trained_options o = {.ema = given->ema,
                            .samples = LS_READS_TEXT,
                            .sets = sets,
                            .nsets = nsets,
                            .device = given->device};
    ls_predictor_memory *m = NULL;
    LS_TRY(ls_trained_open(path, &o, &p->trained, e));
    p->is_text = p->trained.tokenizer || ls_config_has_token_losses(&p->trained.config);
    p->batch = choose_batch(&p->trained, p->is_text);
    if (p->is_text)
        set_text(p);
    else
        LS_TRY(set_network(p, e));
    if (!p->is_text) LS_TRY(name_classes(p, e));
    LS_TRY(make_memory(p, &m, e)); /* what does not fit fails here */
    p->idle = m;
    return LS_OK;
}

ls_status ls_predictor_open_with(const char *path, const ls_predictor_options *options,
                                 const char *const *sets, int nsets, ls_predictor **p_p,
                                 ls_error *e) {
    static const ls_predictor_options none;
    const ls_predictor_options *o = options ? options : &none;
    bool has_path = path && *path;
    if (!has_path || !p_p || o->threads < 0)
        return ls_fail(e, LS_EINVAL, "ls_predictor_open(): %s",
                       !has_path ? "there is no path"
                       : !p_p    ? "p_p is NULL"
                                 : "threads is negative");
    if (o->program) LS_TRY(ls_program_use_model(o->program, e));
    ls_predictor *p = LS_NEW(ls_predictor);
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->turn, NULL);
    p->nthreads = o->threads ? o->threads : ls_cores();
    p->logits = o->logits;
    p->vectors = o->vectors;
    ls_status s = open_model(p, path, sets, nsets, o, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_predictor_close(p);
    return s;
}

ls_status ls_predictor_open(const char *path, const ls_predictor_options *o, ls_predictor **p_p,
                            ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    return ls_predictor_open_with(path, o, NULL, 0, p_p, e);
}

void ls_predictor_close(ls_predictor *p) {
    static ls_graves graves = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!p || p->closed) return;
    p->closed = true;
    while (p->idle) {
        ls_predictor_memory *m = p->idle;
        p->idle = m->next;
        free_memory(m);
    }
    for (int k = 0; k < p->n; k++) ls_classes_free(&p->classes[k]);
    if (p->trained.path) ls_trained_close(&p->trained);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->turn);
    p->n = p->ninputs = 0;
    free(ls_graves_bury(&graves, p));
}

/* ---- what it reads and writes ---- */

static ls_dims dims_of(int ndims, const int64_t *dims) {
    ls_dims d = {{0}};
    for (int i = 0; i < ndims && i < LS_MAX_DIMS; i++) d.of[i] = dims[i];
    return d;
}

int ls_predictor_ninputs(const ls_predictor *p) {
    return !p || p->closed ? 0 : p->is_text ? 1 : p->ninputs;
}

ls_predictor_input ls_predictor_get_input(const ls_predictor *p, int i) {
    if (i < 0 || i >= ls_predictor_ninputs(p)) return (ls_predictor_input){0};
    int64_t context = p->trained.config.model.context;
    if (p->is_text)
        return (ls_predictor_input){.name = "tokens",
                                    .type = LS_I32,
                                    .dims = dims_of(1, &context),
                                    .count = context,
                                    .nbytes = context * (int64_t)sizeof(int32_t)};
    const ls_field *f = &p->trained.model.inputs[p->inputs[i]];
    return (ls_predictor_input){.name = f->name,
                                .type = f->type,
                                .dims = dims_of(f->ndims, f->dims),
                                .count = (int64_t)(f->nbytes / ls_dtype_size(f->type)),
                                .nbytes = (int64_t)f->nbytes};
}

int ls_predictor_noutputs(const ls_predictor *p) { return p ? p->n : 0; }

ls_predictor_output ls_predictor_get_output(const ls_predictor *p, int i) {
    if (i < 0 || i >= ls_predictor_noutputs(p)) return (ls_predictor_output){0};
    const ls_prediction *x = &p->list[i];
    return (ls_predictor_output){.name = x->name,
                                 .kind = x->kind,
                                 .dims = dims_of(LS_PARAM_DIMS, x->dims),
                                 .count = ls_prediction_count(x),
                                 .rows = x->rows,
                                 .width = x->width,
                                 .classes = (const char *const *)p->classes[i].names,
                                 .nclasses = p->classes[i].n};
}

/* ---- probabilities ---- */

/* e^x / the sum of e^x. */
static void soften(float *x, int64_t n) {
    double most = (double)x[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        if ((double)x[i] > most) most = (double)x[i];
    for (int64_t i = 0; i < n; i++) sum += ls_math_exp((double)x[i] - most);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(ls_math_exp((double)x[i] - most) / sum);
}

/* Makes probabilities of the logits of n samples. */
static void finish(const ls_predictor *p, const ls_prediction *x, int64_t n, float *out) {
    int64_t count = n * ls_prediction_count(x);
    if (p->logits) return;
    if (x->kind == LS_CLASSES)
        for (int64_t i = 0; i < count; i += x->width) soften(out + i, x->width);
    if (x->kind == LS_CHANCES)
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)(1 / (1 + ls_math_exp(-(double)out[i])));
}

/* ---- calls ---- */

static ls_status run(ls_predictor *p, ls_predictor_memory *m, int64_t n, const void *samples,
                     float *const *out, ls_error *e) {
    ls_prediction list[LS_PREDICTIONS];
    float *to[LS_PREDICTIONS];
    ls_infer_predicted w = {.list = list, .out = to};
    for (int k = 0; k < p->n; k++) {
        if (!out[k]) continue;
        list[w.n] = p->list[k];
        to[w.n++] = out[k];
    }
    LS_TRY(ls_infer_predictions(&m->infer, &w, n, samples, e));
    LS_TRY(ls_guard_check(e));
    for (int k = 0; k < w.n; k++) finish(p, &list[k], n, to[k]);
    return LS_OK;
}

ls_status ls_predictor_run(ls_predictor *p, int64_t n, const void *samples, float *const *out,
                           ls_error *e) {
    ls_predictor_memory *m = NULL;
    LS_TRY(take_memory(p, &m, e));
    ls_status s = run(p, m, n, samples, out, e);
    give_memory(p, m);
    return s;
}

ls_status ls_predictor_run_as(ls_predictor *p, const ls_prediction *x, int64_t n,
                              const void *samples, float *out, ls_error *e) {
    ls_predictor_memory *m = NULL;
    LS_TRY(take_memory(p, &m, e));
    ls_status s = ls_infer_predictions(
        &m->infer, &(ls_infer_predicted){.list = x, .n = 1, .out = &out}, n, samples, e);
    if (s == LS_OK) s = ls_guard_check(e);
    give_memory(p, m);
    return s;
}

ls_status ls_predictor_run_text(ls_predictor *p, const uint32_t *tokens, int64_t n, float *out,
                                ls_error *e) {
    ls_predictor_memory *m = NULL;
    LS_TRY(take_memory(p, &m, e));
    if (p->vectors)
        ls_infer_mean(&m->infer, tokens, n, out);
    else
        memcpy(out, ls_infer_next(&m->infer, tokens, n), (size_t)p->list[0].width * sizeof *out);
    ls_status s = ls_infer_check(&m->infer, e);
    if (s == LS_OK) s = ls_guard_check(e);
    if (s == LS_OK) finish(p, &p->list[0], 1, out);
    give_memory(p, m);
    return s;
}

/* ---- with fields ---- */

/* Are the ids of field i of the model below its number of rows? j: the sample. */
static ls_status check_ids(const ls_model *m, int i, const int32_t *ids, int64_t j, ls_error *e) {
    const ls_field *f = &m->inputs[i];
    size_t n = f->nbytes / sizeof *ids;
    if (!m->classes[i] || f->type != LS_I32) return LS_OK;
    for (size_t k = 0; k < n; k++) {
        bool is_none = m->padded[i] && (ids[k] < 0 || (m->ignored[i] && ids[k] == m->ignored[i]));
        if (is_none || (ids[k] >= 0 && ids[k] < m->classes[i])) continue;
        return ls_fail(e, LS_EINVAL,
                       "ls_predict(): sample %lld: field '%s' has %d; it must be at least 0 and "
                       "below %d",
                       (long long)j, f->name, (int)ids[k], m->classes[i]);
    }
    return LS_OK;
}

/* Copies samples [first, first + n) from the fields to the memory, in the model's layout. */
static ls_status collect(const ls_predictor *p, const void *const *fields, int64_t first, int64_t n,
                         char *samples, ls_error *e) {
    const ls_model *m = &p->trained.model;
    memset(samples, 0, (size_t)n * m->sample_nbytes);
    for (int k = 0; k < p->ninputs; k++) {
        const ls_field *f = &m->inputs[p->inputs[k]];
        for (int64_t j = 0; j < n; j++) {
            char *to = samples + (size_t)j * m->sample_nbytes + f->offset;
            memcpy(to, (const char *)fields[k] + (size_t)(first + j) * f->nbytes, f->nbytes);
            LS_TRY(check_ids(m, p->inputs[k], (const int32_t *)(void *)to, first + j, e));
        }
    }
    return LS_OK;
}

static ls_status predict_samples(ls_predictor *p, int64_t n, const void *const *fields,
                                 float *const *out, ls_error *e) {
    ls_predictor_memory *m = NULL;
    LS_TRY(take_memory(p, &m, e));
    ls_status s = LS_OK;
    for (int64_t i = 0; s == LS_OK && i < n; i += p->batch) {
        int64_t part = n - i < p->batch ? n - i : p->batch;
        float *to[LS_PREDICTIONS];
        for (int k = 0; k < p->n; k++)
            to[k] = out[k] ? out[k] + (size_t)i * (size_t)ls_prediction_count(&p->list[k]) : NULL;
        s = collect(p, fields, i, part, m->samples, e);
        if (s == LS_OK) s = run(p, m, part, m->samples, to, e);
    }
    give_memory(p, m);
    return s;
}

static ls_status predict_texts(ls_predictor *p, int64_t n, const int32_t *tokens, float *out,
                               ls_error *e) {
    int64_t context = p->trained.config.model.context;
    size_t width = (size_t)p->list[0].width;
    for (int64_t i = 0; i < n; i++, tokens += context) {
        int64_t length = 0;
        while (length < context && tokens[length] >= 0) length++;
        for (int64_t t = 0; t < length; t++)
            if (tokens[t] >= p->trained.config.model.vocab)
                return ls_fail(e, LS_EINVAL, "ls_predict(): text %lld has token %d, of %lld",
                               (long long)i, (int)tokens[t],
                               (long long)p->trained.config.model.vocab);
        if (length == 0)
            return ls_fail(e, LS_EINVAL, "ls_predict(): text %lld has no token", (long long)i);
        LS_TRY(
            ls_predictor_run_text(p, (const uint32_t *)tokens, length, out + (size_t)i * width, e));
    }
    return LS_OK;
}

ls_status ls_predict(ls_predictor *p, int64_t n, const void *const *fields, float *const *out,
                     ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    if (!p || p->closed || n < 0 || (n && (!fields || !out)))
        return ls_fail(e, LS_EINVAL, "ls_predict(): %s",
                       !p          ? "there is no predictor"
                       : p->closed ? "the predictor is closed"
                       : n < 0     ? "n is negative"
                                   : "fields or out is NULL");
    for (int i = 0; n && i < ls_predictor_ninputs(p); i++)
        if (!fields[i])
            return ls_fail(e, LS_EINVAL, "ls_predict(): the field '%s' is NULL",
                           ls_predictor_get_input(p, i).name);
    if (!p->is_text) return predict_samples(p, n, fields, out, e);
    return n && out[0] ? predict_texts(p, n, fields[0], out[0], e) : LS_OK;
}
