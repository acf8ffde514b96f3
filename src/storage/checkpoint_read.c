/* checkpoint_read.c - reads and checks a checkpoint: see checkpoint.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/fresh.h"
#include "base/guard.h"
#include "base/json.h"
#include "storage/checkpoint.h"
#include "storage/checkpoints.h"
#include "storage/frozen_file.h"
#include "storage/manifest.h"
#include "weights/blocks.h"

static char *join(const char *folder, const char *name) { return ls_format("%s/%s", folder, name); }

typedef struct opened {
    const char *path;
    ls_manifest manifest;
    ls_safetensors weights, optimizer, frozen; /* frozen.n 0: nothing is frozen */
} opened;

static void close_all(opened *o) {
    ls_safetensors_close(&o->weights);
    ls_safetensors_close(&o->optimizer);
    ls_safetensors_close(&o->frozen);
    ls_manifest_free(&o->manifest);
}

/* step-N must be of step N: a copy under another name would train steps again, or leave some
 * out. */
static ls_status check_name(const opened *o, ls_error *e) {
    char *real = realpath(o->path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    int64_t step = slash ? ls_checkpoints_step_of(slash + 1) : -1;
    free(real);
    if (step < 0 || step == o->manifest.step) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: is a checkpoint of step %lld by its " LS_MANIFEST_FILE,
                   o->path, (long long)o->manifest.step);
}

/* A file that was truncated meanwhile reads as zeros. */
static ls_status end_all(opened *o, ls_status s, ls_error *e) {
    if (s == LS_OK) s = ls_guard_check(e);
    close_all(o);
    return s;
}

static ls_status open_all(const char *path, opened *o, ls_error *e) {
    *o = (opened){.path = path};
    char *weights = join(path, LS_WEIGHTS_FILE), *optimizer = join(path, LS_OPTIMIZER_FILE);
    char *frozen = join(path, LS_FROZEN_FILE);
    ls_status s = ls_manifest_read(path, &o->manifest, e);
    if (s == LS_OK) s = check_name(o, e);
    if (s == LS_OK) s = ls_manifest_check_files(&o->manifest, path, e);
    if (s == LS_OK) s = ls_safetensors_open(weights, &o->weights, e);
    if (s == LS_OK) s = ls_safetensors_open(optimizer, &o->optimizer, e);
    if (s == LS_OK && ls_manifest_has_frozen(&o->manifest))
        s = ls_safetensors_open_stored(frozen, &o->frozen, e);
    free(frozen);
    free(weights);
    free(optimizer);
    if (s != LS_OK) close_all(o);
    return s;
}

/* Copies the owned part of floats [first, first + count). */
static void copy_owned(const ls_train_state *s, float *flat, size_t first, const float *data,
                       size_t count) {
    const ls_range all = {.first = first, .end = first + count};
    for (int i = 0; i < (s->owned ? s->nowned : 1); i++) {
        const ls_range *b = s->owned ? &s->owned[i] : &all;
        size_t from = b->first > first ? b->first : first;
        size_t end = b->end < first + count ? b->end : first + count;
        if (from < end) memcpy(flat + from, data + (from - first), (end - from) * sizeof *flat);
    }
}

/* The source and destination of a buffer's tensors. */
typedef struct loading {
    const opened *from;
    const ls_safetensors *file, *more; /* looked up in this order; more NULL: in one file */
    const ls_train_state *part;        /* only its owned part is filled */
    float *flat;
    int replica; /* whose it is; 0: common */
} loading;

/* Values of another type are widened, a part after the other. */
static void copy_values(const loading *l, const ls_param *p, const ls_tensor *t) {
    enum { PART = 1 << 16 };
    size_t at = p->offset + (l->replica ? (size_t)l->replica * l->part->model->nfloats : 0);
    if (t->type == LS_BLOCK_F32) {
        copy_owned(l->part, l->flat, at, t->data, p->count);
        return;
    }
    float *part = LS_NEW_ARRAY(float, PART);
    for (size_t i = 0; i < p->count; i += PART) {
        size_t n = p->count - i < PART ? p->count - i : PART;
        ls_tensor_read(t, i, n, part);
        copy_owned(l->part, l->flat, at + i, part, n);
    }
    free(part);
}

/* Copies the tensor NAME, or its state NAME.suffix, to its place in the flat buffer. */
static ls_status load_param(const loading *l, const ls_param *p, const char *suffix, ls_error *e) {
    char name[LS_TENSOR_NAME];
    snprintf(name, sizeof name, "%s%s%s", p->name, suffix ? "." : "", suffix ? suffix : "");
    if (l->replica) ls_state_replica_name(name, l->replica);
    const ls_tensor *t = ls_safetensors_find(l->file, name);
    if (!t && l->more) t = ls_safetensors_find(l->more, name);
    if (!t)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no tensor '%s'; its architecture differs from the config's",
                       l->from->path, name);
    bool same = t->ndims == p->ndims;
    for (int d = 0; same && d < p->ndims; d++) same = t->dims[d] == p->dims[d];
    if (!same)
        return ls_fail(e, LS_EINVAL,
                       "%s: tensor '%s' is [%lld, %lld], the config's model needs [%lld, %lld]: "
                       "their architectures differ",
                       l->from->path, name, (long long)t->dims[0],
                       (long long)(t->ndims > 1 ? t->dims[1] : 1), (long long)p->dims[0],
                       (long long)(p->ndims > 1 ? p->dims[1] : 1));
    copy_values(l, p, t);
    return LS_OK;
}

static ls_status check_ema(const opened *o, ls_error *e) {
    char name[LS_TENSOR_NAME + sizeof "." LS_OPTIM_EMA];
    snprintf(name, sizeof name, "%s." LS_OPTIM_EMA, o->weights.n ? o->weights.tensors[0].name : "");
    if (!ls_safetensors_find(&o->optimizer, name))
        return ls_fail(e, LS_EINVAL,
                       "%s: has no average of the weights; a run has one if its config sets "
                       "optim.ema",
                       o->path);
    if (o->manifest.scaler.scale > 0 && o->manifest.scaler.skipped >= o->manifest.step)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no average of the weights yet: all %lld steps overflowed", o->path,
                       (long long)o->manifest.step);
    return LS_OK;
}

/* A parameter of an adapter that the checkpoint does not have. */
static bool lacks(const opened *o, const ls_param *p) {
    return p->adapter && !ls_safetensors_find(&o->weights, p->name) &&
           !ls_safetensors_find(&o->frozen, p->name);
}

/* begins: a new run may have adapters that the checkpoint lacks. */
static ls_status check_count(const opened *o, const ls_model *m, bool begins, ls_error *e) {
    size_t there = o->weights.n + o->frozen.n;
    for (int i = 0; begins && i < m->nparams; i++) there += lacks(o, &m->params[i]);
    if (there == (size_t)m->nparams) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: has %zu tensors, the config's model %d: their architectures differ",
                   o->path, o->weights.n + o->frozen.n, m->nparams);
}

/* The buffer of the average that the file has as the weight (ls_optim_rule), and where gradients
 * are taken beside it. */
static ls_status load_average(const loading *weights, ls_train_state *s, const ls_param *p,
                              int average, ls_error *e) {
    loading point = *weights, mean = *weights;
    point.file = &weights->from->optimizer;
    mean.flat = s->flat.of[average];
    mean.part = s;
    LS_TRY(load_param(&point, p, ls_optim_state_name(s->optim, p, average - 1), e));
    return load_param(&mean, p, NULL, e);
}

/* The parts of a buffer that loading fills, of a table in blocks: [*n_p], free() them. */
static ls_range *parts_of_table(const ls_train_state *s, int param, int buffer, int *n_p) {
    ls_range *parts = LS_NEW_ARRAY(ls_range, (size_t)ls_table_blocks(s->model));
    ls_table_block b = LS_TABLE_BLOCKS;
    int n = 0;
    while (ls_table_block_next(s->model, &b)) {
        if (b.param != param || !s->table_blocks[b.number]) continue;
        ls_optim_range r = ls_optim_table_block(s->optim, s->model, &b, buffer);
        parts[n++] = (ls_range){.first = r.first, .end = r.end};
    }
    *n_p = n;
    return parts;
}

/* A table of which a parameter is a window, and its states, as a whole or in blocks. */
static ls_status load_table(const loading *weights, const ls_train_state *s, const ls_param *p,
                            ls_error *e) {
    loading from = *weights;
    from.flat = s->tables;
    int n = !s->tables ? 0 : s->begins ? 1 : ls_optim_table_buffers(s->optim);
    for (int k = 0; k < n; k++) {
        bool seen = k == ls_optim_nflats(s->optim);
        const char *name = k == 0 ? NULL
                           : seen ? LS_OPTIM_SEEN
                                  : ls_optim_state_name(s->optim, p, k - 1);
        ls_param shape = ls_param_whole(p);
        ls_train_state part = {.model = s->model};
        ls_range *owned = NULL;
        if (k && !name) continue;
        shape.dims[1] = (int64_t)ls_optim_row_floats(s->optim, p, k);
        shape.count = (size_t)(shape.dims[0] * shape.dims[1]);
        shape.offset = ls_optim_table_at(s->optim, s->model, p, k);
        if (k) from.file = &weights->from->optimizer;
        if (s->table_blocks)
            owned = parts_of_table(s, (int)(p - s->model->params), k, &part.nowned);
        part.owned = owned;
        from.part = &part;
        ls_status status = load_param(&from, &shape, name, e);
        free(owned);
        LS_TRY(status);
    }
    return LS_OK;
}

/* A parameter and its states. */
static ls_status load_all(const loading *weights, ls_train_state *s, const ls_param *p,
                          ls_error *e) {
    int average = s->flat.n > 1 ? ls_optim_weights(s->optim, p, 1) : 0;
    if (average)
        LS_TRY(load_average(weights, s, p, average, e));
    else
        LS_TRY(load_param(weights, p, s->ema ? LS_OPTIM_EMA : NULL, e));
    for (int k = 1; k < s->flat.n; k++) {
        const loading states = {.from = weights->from,
                                .file = &weights->from->optimizer,
                                .part = s,
                                .flat = s->flat.of[k]};
        const char *name = s->replicas ? ls_optim_outer_state_name(s->optim, k - 1)
                                       : ls_optim_state_name(s->optim, p, k - 1);
        const ls_param shape = ls_optim_state_param(s->optim, p, k - 1);
        if (name && k != average) LS_TRY(load_param(&states, &shape, name, e));
    }
    return LS_OK;
}

/* A replica's parameter and its states. */
static ls_status load_replica(const opened *o, ls_train_state *s, const ls_param *p, int replica,
                              ls_error *e) {
    loading l = {.from = o, .file = &o->optimizer, .part = s, .replica = replica};
    for (int k = 0; k < s->flat.n; k++) {
        const char *name = k ? ls_optim_state_name(s->optim, p, k - 1) : NULL;
        ls_train_state held = *s;
        held.owned = s->held;
        l.flat = s->flat.of[k];
        l.part = k == 0 && s->owned ? &held : s;
        if (k == 0 || name) LS_TRY(load_param(&l, p, name, e));
    }
    return LS_OK;
}

/* What is trained now may have been frozen in the run of the checkpoint (train.from). */
static ls_status load_state(const opened *o, ls_train_state *s, ls_error *e) {
    LS_TRY(check_count(o, s->model, s->begins, e));
    const ls_train_state whole = {0};
    if (s->ema) LS_TRY(check_ema(o, e));
    const loading weights = {o,
                             s->ema ? &o->optimizer : &o->weights,
                             s->ema ? NULL : &o->frozen,
                             s->all_params ? &whole : s,
                             s->flat.of[0],
                             0};
    for (int i = 0; i < s->model->nparams; i++) {
        const ls_param *p = &s->model->params[i];
        if (p->frozen || (s->begins && lacks(o, p))) continue;
        LS_TRY(p->window.rows ? load_table(&weights, s, p, e) : load_all(&weights, s, p, e));
        for (int r = 1; r <= s->replicas; r++) LS_TRY(load_replica(o, s, p, r, e));
    }
    s->step = o->manifest.step;
    s->scaler = o->manifest.scaler;
    return LS_OK;
}

static ls_status load_frozen(const char *path, const ls_model *m, float *buffer, ls_error *e) {
    opened o;
    const ls_train_state whole = {0};
    const loading all = {&o, &o.weights, &o.frozen, &whole, buffer, 0};
    LS_TRY(open_all(path, &o, e));
    ls_status s = check_count(&o, m, true, e);
    for (int i = 0; s == LS_OK && i < m->nparams; i++)
        if (m->params[i].frozen && !lacks(&o, &m->params[i]))
            s = load_param(&all, &m->params[i], NULL, e);
    return end_all(&o, s, e);
}

/* The errors of a virtual worker in a parameter, and its second factor if it is sent as factors. */
static ls_status load_errors_of(const loading *l, const ls_plan *p, const ls_param *param, int vw,
                                ls_error *e) {
    char name[LS_STATE_ERROR_NAME];
    ls_param factor;
    ls_state_error_name(vw, name);
    LS_TRY(load_param(l, param, name, e));
    if (!ls_state_factor(p, param, &factor)) return LS_OK;
    ls_state_factor_name(vw, name);
    return load_param(l, &factor, name, e);
}

static ls_status load_errors(const char *path, const ls_checkpoint_errors *x, ls_error *e) {
    opened o;
    const ls_train_state whole = {0};
    ls_status s = LS_OK;
    LS_TRY(open_all(path, &o, e));
    const ls_model *m = x->plan->share.model;
    for (int v = 0; v < x->nerrors; v++) {
        float *errors = x->errors + (size_t)v * x->plan->share.error_floats;
        const loading all = {&o, &o.optimizer, NULL, &whole, errors, 0};
        for (int i = 0; x->wants[v] && s == LS_OK && i < m->nparams; i++)
            if (!m->params[i].frozen) s = load_errors_of(&all, x->plan, &m->params[i], v, e);
    }
    return end_all(&o, s, e);
}

static ls_status load(const char *path, ls_train_state *s, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_status status = load_state(&o, s, e);
    return end_all(&o, status, e);
}

/* The number of all parameters. */
static size_t count_of(const opened *o) {
    size_t count = 0;
    for (size_t i = 0; i < o->weights.n; i++) count += o->weights.tensors[i].count;
    for (size_t i = 0; i < o->frozen.n; i++) count += o->frozen.tensors[i].count;
    return count;
}

ls_status ls_checkpoint_read_back(const char *path, ls_checkpoint_info *i_p, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_checkpoint_info info = {.step = o.manifest.step, .ntensors = o.weights.n + o.frozen.n};
    info.weights = ls_state_hash_weights(o.weights.tensors, o.weights.n, &o.frozen);
    info.optimizer = ls_state_hash_optimizer(o.optimizer.tensors, o.optimizer.n, o.manifest.step,
                                             &o.manifest.scaler);
    info.count = count_of(&o);
    info.nbytes = o.weights.map.nbytes + o.optimizer.map.nbytes + o.frozen.map.nbytes;
    const char *sum = ls_manifest_sum(&o.manifest);
    snprintf(info.sum, sizeof info.sum, "%s", sum ? sum : "");
    ls_status s = ls_manifest_check_hash(&o.manifest, path, "weights_hash", info.weights, e);
    if (s == LS_OK)
        s = ls_manifest_check_hash(&o.manifest, path, "optimizer_hash", info.optimizer, e);
    s = end_all(&o, s, e);
    if (s == LS_OK) *i_p = info;
    return s;
}

/* As it is stored: "f32", or a type of files like "Q4_1". */
static const char *type_of(const ls_tensor *t) {
    return t->type == LS_BLOCK_F32 ? "f32" : ls_block_of(t->type)->name;
}

static void show_tensors(const ls_safetensors *file, const char *note, ls_buf *out) {
    for (size_t i = 0; i < file->n; i++) {
        const ls_tensor *t = &file->tensors[i];
        char name[4 * LS_TENSOR_NAME];
        ls_escape(LS_ESCAPE_LINE, t->name, strlen(t->name), name, sizeof name);
        ls_buf_printf(out, "  %-28s %s [", name, type_of(t));
        for (int d = 0; d < t->ndims; d++)
            ls_buf_printf(out, "%s%lld", d ? ", " : "", (long long)t->dims[d]);
        ls_buf_printf(out, "]%s\n", note);
    }
}

static ls_status show(const char *path, ls_buf *out, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_buf_escape(out, LS_ESCAPE_LINE, path, strlen(path));
    ls_buf_printf(out, "\nstep %lld, %zu tensors, %zu parameters\n", (long long)o.manifest.step,
                  o.weights.n + o.frozen.n, count_of(&o));
    show_tensors(&o.weights, "", out);
    show_tensors(&o.frozen, ", frozen", out);
    close_all(&o);
    return LS_OK;
}

/* Writes the tensors of the weights, or averages under the names of the weights; then the frozen
 * ones. */
static ls_status export_tensors(const opened *o, bool ema, const char *file, ls_error *e) {
    if (ema) LS_TRY(check_ema(o, e));
    ls_tensor *list = LS_NEW_ARRAY(ls_tensor, o->weights.n + o->frozen.n);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < o->weights.n; i++) {
        char name[LS_TENSOR_NAME + sizeof "." LS_OPTIM_EMA];
        list[i] = o->weights.tensors[i];
        snprintf(name, sizeof name, "%s." LS_OPTIM_EMA, list[i].name);
        const ls_tensor *t = ema ? ls_safetensors_find(&o->optimizer, name) : &list[i];
        if (t && t->count == list[i].count)
            list[i].data = t->data;
        else
            s = ls_fail(e, LS_EINVAL, "%s: has no tensor '%s' of the weights' shape", o->path,
                        name);
    }
    for (size_t i = 0; i < o->frozen.n; i++) list[o->weights.n + i] = o->frozen.tensors[i];
    if (s == LS_OK) s = ls_safetensors_write_wide(file, list, o->weights.n + o->frozen.n, e);
    free(list);
    return s;
}

static ls_status export_weights(const char *path, bool ema, const char *file, ls_error *e) {
    opened o;
    ls_fresh f = {0};
    LS_TRY(ls_file_check_new(file, "file", e));
    LS_TRY(open_all(path, &o, e));
    ls_status s = ls_fresh_begin(file, LS_FRESH_FILE, &f, e);
    if (s == LS_OK) s = export_tensors(&o, ema, f.at, e);
    s = end_all(&o, s, e);
    if (s == LS_OK) return ls_fresh_end(&f, e);
    ls_fresh_discard(&f);
    return s;
}

/* ---- for readers ---- */

/* The newest good checkpoint before step-N at `path`: free() it. NULL: there is none. */
static char *older_good(const char *path) {
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL, *good = NULL;
    int64_t step = slash ? ls_checkpoints_step_of(slash + 1) : -1;
    ls_checkpoint_info i;
    if (slash) *slash = 0;
    while (!good && step > 0 && ls_checkpoints_below(real, step, &step, NULL) == LS_OK &&
           step >= 0) {
        good = ls_format("%s/step-%lld", real, (long long)step);
        if (ls_checkpoint_read_back(good, &i, NULL) == LS_OK) break;
        free(good);
        good = NULL;
    }
    free(real);
    return good;
}

/* Adds to the error of a damaged checkpoint the name of an older one that is good. */
static ls_status name_older(const char *path, ls_status s, ls_error *e) {
    ls_checkpoint_info i;
    if (s == LS_OK || !e || ls_checkpoint_read_back(path, &i, NULL) == LS_OK) return s;
    ls_error why = *e;
    char *good = older_good(path);
    if (good) ls_fail(e, s, "%.300s; an older checkpoint is good: %s", why.msg, good);
    free(good);
    return s;
}

ls_status ls_checkpoint_load(const char *path, ls_train_state *s, ls_error *e) {
    return name_older(path, load(path, s, e), e);
}

ls_status ls_checkpoint_load_errors(const char *path, const ls_checkpoint_errors *x, ls_error *e) {
    return name_older(path, load_errors(path, x, e), e);
}

ls_status ls_checkpoint_load_frozen(const char *path, const ls_model *m, float *buffer,
                                    ls_error *e) {
    return name_older(path, load_frozen(path, m, buffer, e), e);
}

ls_status ls_checkpoint_verify(const char *path, ls_checkpoint_info *i_p, ls_error *e) {
    return name_older(path, ls_checkpoint_read_back(path, i_p, e), e);
}

ls_status ls_checkpoint_show(const char *path, ls_buf *out, ls_error *e) {
    return name_older(path, show(path, out, e), e);
}

ls_status ls_checkpoint_export(const char *path, bool ema, const char *file, ls_error *e) {
    return name_older(path, export_weights(path, ema, file, e), e);
}

ls_status ls_checkpoint_show_json(const char *path, ls_json **j_p, ls_error *e) {
    opened o;
    LS_TRY(open_all(path, &o, e));
    ls_json *j = ls_json_new_object(), *tensors = ls_json_new_array();
    for (size_t i = 0; i < o.weights.n + o.frozen.n; i++) {
        bool frozen = i >= o.weights.n;
        const ls_tensor *t = frozen ? &o.frozen.tensors[i - o.weights.n] : &o.weights.tensors[i];
        ls_json *tensor = ls_json_new_object(), *shape = ls_json_new_array();
        for (int d = 0; d < t->ndims; d++) ls_json_push(shape, ls_json_new_integer(t->dims[d]));
        ls_json_set_text(tensor, "name", t->name);
        ls_json_set_text(tensor, "dtype", type_of(t));
        ls_json_set(tensor, "shape", shape);
        ls_json_set_bool(tensor, "frozen", frozen);
        ls_json_push(tensors, tensor);
    }
    ls_json_set_path(j, "checkpoint", path);
    ls_json_set_integer(j, "step", o.manifest.step);
    ls_json_set_integer(j, "parameters", (int64_t)count_of(&o));
    ls_json_set(j, "tensors", tensors);
    close_all(&o);
    *j_p = j;
    return LS_OK;
}
