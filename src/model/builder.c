/* builder.c - see builder.h. */
#include "model/builder.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/round_up.h"
#include "model/draft.h"
#include "model/frozen.h"
#include "tensor/dtype.h"

static ls_draft *draft_of(ls_model *m) {
    if (m->draft) return m->draft;
    m->draft = LS_NEW(ls_draft);
    m->draft->failed = LS_NEW(ls_value);
    return m->draft;
}

/* ---- errors ---- */

ls_model *ls_model_at(ls_model *m, const char *file, int line) {
    ls_draft *d = draft_of(m);
    snprintf(d->file, sizeof d->file, "%s", ls_file_name(file));
    d->line = line;
    *d->what = 0;
    return m;
}

bool ls_build_is_good(const ls_model *m) { return !m->draft || m->draft->status == LS_OK; }

ls_value *ls_build_failed(ls_model *m) { return draft_of(m)->failed; }

ls_value *ls_build_fail(ls_model *m, const char *fmt, ...) {
    ls_draft *d = draft_of(m);
    char text[sizeof(((ls_error *)0)->msg)], place[96] = "";
    if (d->status != LS_OK) return d->failed;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (*d->file) snprintf(place, sizeof place, "%s:%d: ", d->file, d->line);
    d->status =
        ls_fail(&d->error, LS_EINVAL, "%s%s%s%s", place, d->what, *d->what ? ": " : "", text);
    return d->failed;
}

bool ls_build_takes(ls_model *m, const char *name, double x, double least) {
    if (!isfinite(x))
        ls_build_fail(m, "%s is %g; it is a finite number", name, x);
    else if (x < least)
        ls_build_fail(m, "%s is %g; it is at least %g", name, x, least);
    return ls_build_is_good(m);
}

/* Metrics that the builder has not asked for are left out if it asks for some, or has several
 * losses. A confusion matrix stays, for its picture. */
static void choose_metrics(ls_model *m) {
    bool asks = false;
    int n = 0, nlosses = 0;
    for (int i = 0; i < m->nlayers; i++)
        nlosses += m->layers[i].traits.loss && !m->layers[i].traits.auxiliary;
    for (int i = 0; i < m->nmeasures; i++) {
        const ls_measure *x = &m->measures[i];
        asks = asks || !x->is_default;
        if (!*x->name) ls_build_fail(m, "%s: it has no name by ls_metric()", x->layer.name);
    }
    for (int i = 0; i < m->nmeasures; i++) {
        const ls_measure *x = &m->measures[i];
        bool stays = !x->is_default || (nlosses == 1 && (!asks || x->kind == LS_MEASURE_CONFUSION));
        if (stays) m->measures[n++] = *x;
    }
    m->nmeasures = n;
}

/* The layers may have been added after the call. */
static void freeze_params(ls_model *m) {
    const ls_draft *d = m->draft;
    for (int i = 0; i < d->nfrozen && d->status == LS_OK; i++) {
        const ls_frozen_pattern *p = &d->frozen[i];
        if (ls_model_freeze(m, p->text) > 0) continue;
        (ls_model_at)(m, p->file, p->line);
        ls_build_fail(m, "ls_freeze(): '%.60s' matches no parameter%s%s", p->text,
                      m->nparams ? "; their names are like " : "",
                      m->nparams ? m->params[0].name : "");
    }
}

ls_status ls_build_finish(ls_model *m, ls_error *e) {
    ls_draft *d = draft_of(m);
    if (*d->scope) ls_build_fail(m, "scope '%s' is not ended", d->scope);
    choose_metrics(m);
    freeze_params(m);
    if (d->status != LS_OK) return ls_fail(e, d->status, "%s", d->error.msg);
    LS_TRY(ls_measures_place(m, e));
    return ls_model_link(m, e);
}

ls_status ls_build_finish_as(ls_model *m, ls_model *m_p, ls_error *e) {
    ls_status s = ls_build_finish(m, e);
    if (s == LS_OK)
        *m_p = *m;
    else
        ls_model_free(m);
    return s;
}

/* ---- values ---- */

static ls_value *new_value(ls_model *m, const ls_value *like) {
    ls_draft *d = draft_of(m);
    d->values = ls_grow(d->values, (size_t)d->nvalues, sizeof *d->values);
    ls_value *v = d->values[d->nvalues++] = LS_NEW(ls_value);
    *v = *like;
    v->ndims = 0;
    while (v->ndims < LS_MAX_DIMS && v->dims.of[v->ndims]) v->ndims++;
    return v;
}

int64_t ls_value_count(const ls_value *v) {
    int64_t n = 1;
    for (int i = 0; i < v->ndims; i++) n *= v->dims.of[i];
    return n;
}

int64_t ls_value_last(const ls_value *v) { return v->ndims ? v->dims.of[v->ndims - 1] : 1; }

bool ls_value_same_dims(const ls_value *a, const ls_value *b) {
    return memcmp(&a->dims, &b->dims, sizeof a->dims) == 0;
}

ls_dims_text ls_dims_write(ls_dims dims) {
    ls_dims_text t = {"["};
    size_t at = 1;
    for (int i = 0; i < LS_MAX_DIMS && dims.of[i]; i++) { /* 13 characters each at most */
        bool is_long = dims.of[i] >= 1000000000000 || dims.of[i] <= -100000000000;
        at += (size_t)snprintf(t.text + at, sizeof t.text - at, is_long ? "%s%.4g" : "%s%.12g",
                               i ? ", " : "", (double)dims.of[i]);
    }
    snprintf(t.text + at, sizeof t.text - at, "]");
    return t;
}

/* ---- names ---- */

void(ls_scope)(ls_model *m, const char *fmt, ...) {
    ls_draft *d = draft_of(m);
    char name[LS_NAME], whole[2 * LS_NAME];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    int all = snprintf(whole, sizeof whole, "%s%s%s", d->scope, *d->scope ? "." : "", name);
    bool fits = n > 0 && n < (int)sizeof name && all < (int)sizeof d->scope;
    if (!fits || d->depth == LS_DRAFT_DEPTH) {
        ls_build_fail(m, "scope '%s': a name has 1 to %d bytes, and scopes are at most %d deep",
                      whole, LS_NAME - 1, LS_DRAFT_DEPTH);
        return;
    }
    d->begins[d->depth++] = strlen(d->scope);
    memcpy(d->scope, whole, (size_t)all + 1);
}

const char *ls_build_scope(ls_model *m) { return draft_of(m)->scope; }

void ls_scope_end(ls_model *m) {
    ls_draft *d = draft_of(m);
    if (d->depth == 0 && d->status == LS_OK)
        ls_build_fail(m, "ls_scope_end(): no scope is open");
    else if (d->depth > 0)
        d->scope[d->begins[--d->depth]] = 0;
}

void(ls_freeze)(ls_model *m, const char *pattern) {
    ls_draft *d = draft_of(m);
    if (d->status != LS_OK) return;
    d->frozen = ls_grow(d->frozen, (size_t)d->nfrozen, sizeof *d->frozen);
    ls_frozen_pattern *p = &d->frozen[d->nfrozen++];
    *p = (ls_frozen_pattern){.text = ls_strdup(pattern ? pattern : ""), .line = d->line};
    memcpy(p->file, d->file, sizeof p->file);
}

/* The place of the layer with this name, or the free one where it would be. */
static int *named(const ls_model *m, const ls_draft *d, const char *name) {
    int mask = d->nplaces - 1, i = (int)ls_hash_bytes(name, strlen(name)).lo & mask;
    while (d->names[i] && strcmp(m->layers[d->names[i] - 1].name, name) != 0) i = (i + 1) & mask;
    return &d->names[i];
}

/* A model may have thousands of layers. */
static bool has_layer(ls_model *m, const char *name) {
    ls_draft *d = draft_of(m);
    if (2 * m->nlayers >= d->nplaces) {
        free(d->names);
        d->nnames = 0;
        d->nplaces = d->nplaces ? 4 * d->nplaces : 64;
        while (2 * m->nlayers >= d->nplaces) d->nplaces *= 2;
        d->names = LS_NEW_ARRAY(int, (size_t)d->nplaces);
    }
    for (; d->nnames < m->nlayers; d->nnames++)
        *named(m, d, m->layers[d->nnames].name) = 1 + d->nnames;
    return *named(m, d, name) != 0;
}

static const char CHUNK[] = ".chunk.";

static bool is_later_chunk(const ls_model *m) { return m->nchunks > 1 && m->chunk > 0; }

/* False: it is too long, or another layer has the given one. */
static bool choose_name(ls_model *m, const char *kind, const char *given, char name[LS_NAME]) {
    const char *scope = draft_of(m)->scope, *dot = *scope ? "." : "";
    char text[2 * LS_NAME + 40];
    char chunk[24] = "";
    if (is_later_chunk(m)) snprintf(chunk, sizeof chunk, "%s%d", CHUNK, m->chunk);
    int n = snprintf(text, sizeof text, "%s%s%s%s", scope, dot, given ? given : kind, chunk);
    for (int i = 2; !given && n < LS_NAME && has_layer(m, text); i++)
        n = snprintf(text, sizeof text, "%s%s%s_%d%s", scope, dot, kind, i, chunk);
    snprintf(draft_of(m)->what, sizeof draft_of(m)->what, "%s '%.60s'", kind, text);
    if (n >= LS_NAME || (given && !*given)) {
        ls_build_fail(m, "a name has 1 to %d bytes, with those of its scopes", LS_NAME - 1);
        return false;
    }
    if (has_layer(m, text)) {
        ls_build_fail(m, "another layer has this name");
        return false;
    }
    memcpy(name, text, (size_t)n + 1);
    return true;
}

/* ---- layers ---- */

/* The layer that has the field as numbers: the one that was added first, or a new one. */
static int convert(ls_model *m, int field) {
    for (int i = 0; i < m->draft->nvalues; i++)
        if (m->draft->values[i]->field == field && m->draft->values[i]->layer >= 0)
            return m->draft->values[i]->layer;
    char what[sizeof m->draft->what], first = *m->draft->scope;
    memcpy(what, m->draft->what, sizeof what);
    *m->draft->scope = 0; /* the layer is in no scope */
    ls_value v = {.layer = -1, .field = field, .type = m->inputs[field].type};
    for (int i = 0; i < m->inputs[field].ndims; i++) v.dims.of[i] = m->inputs[field].dims[i];
    ls_value *x = new_value(m, &v);
    ls_value *y = m->draft->as_numbers(m, x);
    *m->draft->scope = first;
    memcpy(m->draft->what, what, sizeof what);
    y->field = field;
    return y->layer;
}

static bool check_input(ls_model *m, const ls_value *x) {
    if (!x) ls_build_fail(m, "an input is NULL");
    if (x && x->measure) ls_build_fail(m, "an input is a metric, which no layer can read");
    if (x && x->layer < 0 && (x->first || x->nth))
        ls_build_fail(m, "an input is a part of a field");
    return ls_build_is_good(m);
}

ls_layer *ls_build_layer(ls_model *m, const char *kind, const char *given, ls_value *const *x,
                         int nx) {
    ls_draft *d = draft_of(m);
    char name[LS_NAME];
    int inputs[LS_LAYER_MAX_INPUTS] = {0};
    if (d->status != LS_OK || !choose_name(m, kind, given, name)) return NULL;
    for (int i = 0; i < nx; i++)
        if (!check_input(m, x[i])) return NULL;
    for (int i = 0; i < nx && d->status == LS_OK; i++)
        inputs[i] = x[i]->layer >= 0 ? x[i]->layer : convert(m, x[i]->field);
    if (d->status != LS_OK) return NULL;
    ls_layer *l = ls_model_add_layer(m, name);
    l->T = 1;
    l->ninputs = nx;
    for (int i = 0; i < nx; i++) {
        l->inputs[i] = inputs[i];
        l->input_floats[i] = (size_t)ls_value_count(x[i]);
        l->scales[i] = m->layers[inputs[i]].half.later;
    }
    return l;
}

void ls_build_unread(ls_layer *l) {
    for (int k = 0; k < l->ninputs; k++) l->unread[k] = true;
}

void ls_build_slice(ls_model *m, int slice, int n) {
    m->slice = slice;
    m->nslices = n;
}

void ls_build_chunk(ls_model *m, int chunk, int n) {
    m->chunk = chunk;
    m->nchunks = n;
}

void ls_build_together(ls_model *m, int n) { m->together = n; }

ls_value *ls_build_nth(ls_model *m, const ls_value *field, int n) {
    ls_value one = *field;
    one.nth = n;
    return new_value(m, &one);
}

ls_value *ls_build_value(ls_model *m, ls_dims dims) {
    ls_value *v = new_value(
        m, &(ls_value){.layer = m->nlayers - 1, .field = -1, .type = LS_F32, .dims = dims});
    m->layers[m->nlayers - 1].y_floats = (size_t)ls_value_count(v);
    memcpy(m->layers[m->nlayers - 1].y_dims, v->dims.of, sizeof v->dims.of);
    return v;
}

/* ---- measures ---- */

ls_value *ls_build_measure(ls_model *m, ls_measure_kind kind, int classes, int nvalues) {
    if (m->nmeasures == LS_MEASURES)
        return ls_build_fail(m, "a model has at most %d metrics", LS_MEASURES);
    m->measures = ls_grow(m->measures, (size_t)m->nmeasures, sizeof *m->measures);
    m->measures[m->nmeasures++] = (ls_measure){
        .kind = kind, .classes = classes, .nvalues = nvalues, .layer = m->layers[--m->nlayers]};
    return new_value(
        m, &(ls_value){.layer = -1, .field = -1, .measure = m->nmeasures, .type = LS_F32});
}

void ls_build_note(ls_model *m, const char *name) {
    assert(m->nnotes < LS_NOTES);
    snprintf(m->notes[m->nnotes++], LS_MEASURE_NAME, "%s", name);
}

/* Names are keys of JSON, and tags of events. */
static bool is_metric_name(const char *name) {
    static const char *const taken[] = {"loss", "perplexity", "bits_per_byte", "samples"};
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0) return false;
    return *name && strlen(name) < LS_MEASURE_NAME && strspn(name, letters) == strlen(name);
}

void ls_build_metric(ls_model *m, const char *name, const ls_value *value, bool is_default) {
    if (!ls_build_is_good(m)) return;
    if (!value || !value->measure) {
        ls_build_fail(m, "ls_metric(): the value is no measure, such as that of ls_is_top()");
        return;
    }
    if (!name || !is_metric_name(name)) {
        ls_build_fail(
            m,
            "ls_metric(): the name '%s' is taken, or does not have 1 to %d letters, digits, _ "
            "or -",
            name ? name : "", LS_MEASURE_NAME - 1);
        return;
    }
    for (int i = 0; i < m->nmeasures; i++)
        if (!m->measures[i].is_default && !is_default && strcmp(m->measures[i].name, name) == 0) {
            ls_build_fail(m, "ls_metric(): another metric has the name '%s'", name);
            return;
        }
    ls_measure *x = &m->measures[value->measure - 1];
    snprintf(x->name, sizeof x->name, "%s", name);
    x->is_default = is_default;
}

ls_value *ls_build_view(ls_model *m, const ls_value *x, ls_dims dims) {
    ls_value like = *x;
    like.dims = dims;
    return new_value(m, &like);
}

/* Does an earlier chunk's layer have the parameter, which then is as large? */
static bool share_param(ls_model *m, ls_layer *l, const char *name, const ls_param *p) {
    for (int i = 0; i < m->nparams; i++) {
        if (strcmp(m->params[i].name, name) != 0) continue;
        assert(memcmp(m->params[i].dims, p->dims, sizeof p->dims) == 0);
        ls_build_shared(m, l, i);
        return true;
    }
    return false;
}

void ls_build_param(ls_model *m, ls_layer *l, const char *suffix, const ls_param *p) {
    char name[2 * LS_NAME];
    const char *mark = is_later_chunk(m) ? strstr(l->name, CHUNK) : NULL;
    int most = mark ? (int)(mark - l->name) : LS_NAME;
    int n = snprintf(name, sizeof name, "%.*s.%s", most, l->name, suffix);
    if (mark && share_param(m, l, name, p)) return;
    if (n >= LS_NAME)
        ls_build_fail(m, "the parameter's name '%s' is longer than %d bytes", name, LS_NAME - 1);
    else
        ls_model_add_param(m, l, name, p);
}

void ls_build_shared(ls_model *m, ls_layer *l, int param) {
    if (m->params[param].cut.chunk != l->chunk) m->params[param].cut.chunk = -1;
    l->params[l->nparams] = param;
    l->counts[l->nparams] = m->params[param].count;
    l->link.offsets[l->nparams++] = m->params[param].offset;
}

float *ls_build_constants(ls_model *m, size_t n, int *number_p) {
    ls_draft *d = draft_of(m);
    d->constants = ls_grow(d->constants, (size_t)d->nconstants, sizeof *d->constants);
    d->constants[d->nconstants] = (ls_constants){LS_NEW_ARRAY(float, n), n};
    *number_p = d->nconstants;
    return d->constants[d->nconstants++].p;
}

/* ---- fields ---- */

static ls_value *check_field(ls_model *m, const char *name, ls_dtype type, const ls_value *v) {
    if (!name || !*name || strlen(name) >= LS_FIELD_NAME)
        return ls_build_fail(m, "a field's name has 1 to %d bytes", LS_FIELD_NAME - 1);
    if (type != LS_U8 && type != LS_I32 && type != LS_F32)
        return ls_build_fail(m, "field '%s': its type is %s; u8, i32 and f32 are possible", name,
                             ls_dtype_name(type));
    if (m->ninputs == LS_SOURCE_FIELDS)
        return ls_build_fail(m, "field '%s': a model has at most %d fields", name,
                             LS_SOURCE_FIELDS);
    for (int i = 0; i < m->ninputs; i++)
        if (strcmp(m->inputs[i].name, name) == 0)
            return ls_build_fail(m, "the model has a field '%s' already", name);
    double count = 1;
    for (int i = 0; i < v->ndims; i++) {
        if (v->dims.of[i] < 1)
            return ls_build_fail(m, "field '%s': %s has a dimension below 1", name,
                                 ls_dims_write(v->dims).text);
        count *= (double)v->dims.of[i];
    }
    if (count * (double)ls_dtype_size(type) > (double)LS_SAMPLE_NBYTES)
        return ls_build_fail(m, "field '%s': a sample of %s has more than 2 GB", name,
                             ls_dims_write(v->dims).text);
    return NULL;
}

/* Where the next field begins in a sample. */
static size_t place_of(const ls_model *m) { return ls_round_up(m->sample_nbytes, LS_FIELD_ALIGN); }

ls_value *ls_build_input(ls_model *m, const char *name, ls_dtype type, ls_dims dims,
                         ls_build_numbers *as_numbers) {
    ls_draft *d = draft_of(m);
    if (d->status != LS_OK) return d->failed;
    d->as_numbers = as_numbers;
    ls_value *v =
        new_value(m, &(ls_value){.layer = -1, .field = m->ninputs, .type = type, .dims = dims});
    if (check_field(m, name, type, v)) return d->failed;
    if (!m->inputs) m->inputs = LS_NEW_ARRAY(ls_field, LS_SOURCE_FIELDS);
    ls_field *f = &m->inputs[m->ninputs++];
    *f = (ls_field){.type = type, .ndims = v->ndims, .offset = place_of(m)};
    snprintf(f->name, sizeof f->name, "%s", name);
    for (int i = 0; i < v->ndims; i++) f->dims[i] = dims.of[i];
    f->nbytes = (size_t)ls_value_count(v) * ls_dtype_size(type);
    m->sample_nbytes =
        ls_round_up(f->offset + f->nbytes, 4); /* samples follow each other in memory */
    return v;
}

void ls_build_classes(ls_model *m, const ls_value *field, int64_t n, bool padded) {
    int *classes = &m->classes[field->field];
    m->padded[field->field] = padded && (*classes == 0 || m->padded[field->field]);
    if (*classes == 0 || n < *classes) *classes = (int)n;
}

ls_value *ls_build_part(ls_model *m, const ls_value *field, int64_t first, int64_t n) {
    ls_value part = *field;
    part.dims = LS_DIMS(n);
    part.first += first;
    return new_value(m, &part);
}

void ls_build_field(ls_model *m, ls_layer *l, const ls_value *field) {
    const ls_field *f = &m->inputs[field->field];
    l->field_at[l->nfields++] = (size_t)field->nth * m->sample_nbytes + f->offset +
                                (size_t)field->first * ls_dtype_size(f->type);
}
