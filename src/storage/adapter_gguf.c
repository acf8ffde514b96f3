/* adapter_gguf.c - see adapter_gguf.h. */
#include "storage/adapter_gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fresh.h"
#include "networks/adapters.h"
#include "storage/joined_adapters.h"
#include "storage/run_adapters.h"
#include "weights/gguf_model.h"
#include "weights/gguf_write.h"
#include "weights/tensor_names.h"

typedef struct writing {
    const ls_run_adapters *run;
    ls_architecture arch;
    ls_joined_adapters joined;
    ls_gguf_writer writer;
    size_t ntensors, count;
} writing;

bool ls_adapter_gguf_base(const ls_architecture *a, const ls_param *p, ls_name *id_p,
                          bool *is_a_p) {
    char layer[LS_NAME];
    ls_adapter_layer(p, layer);
    size_t n = strlen(layer);
    *is_a_p = ls_adapter_is_a(p);
    for (int i = 0; ls_name_at(a, i, id_p); i++)
        if (strncmp(id_p->name, layer, n) == 0 && strcmp(id_p->name + n, ".weight") == 0 &&
            id_p->expert < 0)
            return true;
    return false;
}

int64_t ls_adapter_gguf_row(const ls_architecture *a, const ls_name *id, int64_t i) {
    int64_t group = a->head_dim;
    if (id->order != LS_ROWS_PAIRS) return i;
    return i / group * group + ls_name_pair_row(group, i % group);
}

/* ---- what the file has ---- */

/* With which the scale is alpha / rank; rsLoRA's is alpha / sqrt(rank). */
static double alpha_of(const ls_config *c, double alpha, int64_t rank) {
    return c->lora.rs ? alpha * sqrt((double)rank) : alpha;
}

/* The file's, and how many times it that of a layer is. */
static double file_alpha(const ls_config *c) { return alpha_of(c, c->lora.alpha, c->lora.rank); }

static float times_of(const ls_config *c, double alpha, int64_t rank) {
    return (float)(alpha_of(c, alpha, rank) / file_alpha(c));
}

static void put_keys(writing *x) {
    ls_gguf_writer *w = &x->writer;
    ls_gguf_put_text(w, "general.architecture", ls_gguf_family_name(x->arch.family));
    ls_gguf_put_text(w, "general.type", "adapter");
    ls_gguf_put_u32(w, "general.file_type", 0); /* f32 */
    ls_gguf_put_text(w, "adapter.type", "lora");
    ls_gguf_put_f32(w, "adapter.lora.alpha", (float)file_alpha(&x->run->config));
}

static ls_status put_tensor(writing *x, const ls_param *p, ls_error *e) {
    ls_name id;
    bool is_a;
    if (!ls_adapter_gguf_base(&x->arch, p, &id, &is_a))
        return ls_fail(e, LS_EINVAL, "%s: GGUF has no name for %s; use --merge", x->run->checkpoint,
                       p->name);
    const int64_t dims[2] = {p->dims[1], p->dims[0]};
    char *name = ls_format("%s.lora_%c", id.gguf, is_a ? 'a' : 'b');
    ls_gguf_put_tensor(&x->writer, name, LS_BLOCK_F32, 2, dims);
    free(name);
    x->ntensors++;
    x->count += p->count;
    return LS_OK;
}

static void put_joined(writing *x, const ls_joined_adapter *j) {
    const int64_t dims[2][2] = {{j->width, j->rank}, {j->rank, j->rows}};
    for (int b = 0; b < 2; b++) {
        char *name = ls_format("%s.lora_%c", j->gguf, b ? 'b' : 'a');
        ls_gguf_put_tensor(&x->writer, name, LS_BLOCK_F32, 2, dims[b]);
        free(name);
        x->ntensors++;
        x->count += (size_t)(dims[b][0] * dims[b][1]);
    }
}

static ls_status put_tensors(writing *x, ls_error *e) {
    const ls_model *m = &x->run->model;
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        if (!p->adapter && !p->frozen)
            return ls_fail(e, LS_EINVAL,
                           "%s: %s is trained as a whole; an adapter in GGUF has no form for that: "
                           "use --merge",
                           x->run->checkpoint, p->name);
        if (p->adapter && !ls_joined_adapters_has(&x->arch, p)) LS_TRY(put_tensor(x, p, e));
    }
    for (size_t i = 0; i < x->joined.n; i++) put_joined(x, &x->joined.list[i]);
    return LS_OK;
}

/* ---- the data ---- */

/* Rows of B in the order of the base's rows in the file, which has one alpha: B makes up for a
 * layer's own. */
static ls_status add_b(writing *x, const ls_param *p, const ls_name *id, ls_error *e) {
    const ls_config *c = &x->run->config;
    int64_t rows = p->dims[0], rank = p->dims[1];
    const float *from = x->run->params + p->offset;
    float *to = LS_NEW_ARRAY(float, p->count);
    char layer[LS_NAME];
    ls_adapter_layer(p, layer);
    float times = times_of(c, ls_adapters_alpha(c, layer), rank);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = ls_adapter_gguf_row(&x->arch, id, i);
        for (int64_t k = 0; k < rank; k++) to[row * rank + k] = from[i * rank + k] * times;
    }
    ls_status s = ls_gguf_add(&x->writer, to, p->count * sizeof *to, e);
    free(to);
    return s;
}

/* Its rank, by which llama.cpp divides, is so many times that of its parts: B makes up for that. */
static ls_status add_joined(writing *x, const ls_joined_adapter *j, ls_error *e) {
    size_t n = (size_t)(j->rows * j->rank);
    float *b = LS_NEW_ARRAY(float, n);
    float times = times_of(&x->run->config, j->alpha, j->rank / j->parts) * (float)j->parts;
    for (size_t i = 0; i < n; i++) b[i] = j->b[i] * times;
    ls_status s = ls_gguf_add(&x->writer, j->a, (size_t)(j->rank * j->width) * sizeof *j->a, e);
    if (s == LS_OK) s = ls_gguf_add(&x->writer, b, n * sizeof *b, e);
    free(b);
    return s;
}

static ls_status add_tensors(writing *x, ls_error *e) {
    const ls_model *m = &x->run->model;
    ls_status s = LS_OK;
    for (int i = 0; s == LS_OK && i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        ls_name id;
        bool is_a;
        if (!p->adapter || ls_joined_adapters_has(&x->arch, p) ||
            !ls_adapter_gguf_base(&x->arch, p, &id, &is_a))
            continue;
        s = is_a ? ls_gguf_add(&x->writer, x->run->params + p->offset, p->count * sizeof(float), e)
                 : add_b(x, p, &id, e);
    }
    for (size_t i = 0; s == LS_OK && i < x->joined.n; i++) s = add_joined(x, &x->joined.list[i], e);
    return s;
}

static ls_status write_file(writing *x, const char *path, ls_error *e) {
    put_keys(x);
    LS_TRY(put_tensors(x, e));
    LS_TRY(ls_gguf_begin(&x->writer, path, e));
    LS_TRY(add_tensors(x, e));
    return ls_gguf_end(&x->writer, e);
}

static ls_status write_run(const ls_run_adapters *r, const char *to, ls_peft_written *w_p,
                           ls_error *e) {
    writing x = {.run = r};
    if (r->config.lora.dora)
        return ls_fail(e, LS_EINVAL,
                       "%s: has DoRA adapters (lora.dora), for which GGUF has no form: use --merge",
                       r->checkpoint);
    LS_TRY(ls_run_adapters_architecture(r, &x.arch, e));
    LS_TRY(ls_joined_adapters_make(r, &x.arch, &x.joined, e));
    ls_fresh f;
    ls_status s = ls_fresh_begin(to, LS_FRESH_FILE, &f, e);
    if (s == LS_OK) {
        s = write_file(&x, f.at, e);
        ls_gguf_writer_free(&x.writer);
        if (s == LS_OK)
            s = ls_fresh_end(&f, e);
        else
            ls_fresh_discard(&f);
    }
    ls_joined_adapters_free(&x.joined);
    if (s == LS_OK) *w_p = (ls_peft_written){.ntensors = x.ntensors, .count = x.count};
    return s;
}

ls_status ls_adapter_gguf_export(const char *from, bool ema, const char *to, ls_peft_written *w_p,
                                 ls_error *e) {
    LS_TRY(ls_file_check_new(to, "file", e));
    ls_run_adapters *r = LS_NEW(ls_run_adapters);
    ls_status s = ls_run_adapters_open(from, ema, r, e);
    if (s == LS_OK) s = write_run(r, to, w_p, e);
    ls_run_adapters_close(r);
    free(r);
    return s;
}
