/* adapter_gguf_read.c - see adapter_gguf_read.h. */
#include "storage/adapter_gguf_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/intern.h"
#include "base/suffix.h"
#include "networks/family.h"
#include "storage/adapter_gguf.h"
#include "storage/adapter_numbers.h"
#include "tensor/stored.h"
#include "weights/blocks.h"
#include "weights/gguf.h"
#include "weights/gguf_model.h"

typedef struct reading {
    ls_gguf g;
    ls_architecture arch; /* of the base */
} reading;

/* The adapter's file says whether the base is a Phi-3. */
static ls_status open_file(const ls_config *c, reading *r, ls_error *e) {
    LS_TRY(ls_family_of(c, &r->arch, e));
    LS_TRY(ls_gguf_open(c->model.adapter, &r->g, e));
    const ls_gguf_value *of = ls_gguf_find(&r->g, "general.architecture");
    if (of && ls_gguf_is_text(of, ls_gguf_family_name(LS_FAMILY_PHI3)))
        (void)ls_family_as_phi3(&r->arch);
    return LS_OK;
}

/* ---- what it is ---- */

static ls_status expect(const reading *r, const char *key, const char *want, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(&r->g, key);
    ls_gguf_text is = {"missing", 7};
    if (v && ls_gguf_is_text(v, want)) return LS_OK;
    if (v && (v->is_array || !ls_gguf_text_at(v, 0, &is))) is = (ls_gguf_text){"no text", 7};
    return ls_fail(e, LS_EINVAL, "%s: %s is %.*s; an adapter for this model has '%s'", r->g.path,
                   key, is.n < 40 ? (int)is.n : 40, is.data, want);
}

static ls_status check_keys(const reading *r, ls_error *e) {
    static const char *const other[] = {"adapter.alora.invocation_tokens", "split.count"};
    LS_TRY(expect(r, "general.type", "adapter", e));
    LS_TRY(expect(r, "adapter.type", "lora", e));
    LS_TRY(expect(r, "general.architecture", ls_gguf_family_name(r->arch.family), e));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (ls_gguf_find(&r->g, other[i]))
            return ls_fail(e, LS_EINVAL, "%s: has %s, which adapters here can't have", r->g.path,
                           other[i]);
    return LS_OK;
}

/* As in llama.cpp, 0 is as if it were missing: the scale is 1. */
static ls_status read_alpha(const reading *r, double *alpha_p, ls_error *e) {
    const ls_gguf_value *v = ls_gguf_find(&r->g, "adapter.lora.alpha");
    double alpha = 0;
    if (v && (v->is_array || !ls_gguf_number(v, 0, &alpha) || !(alpha >= 0 && alpha < 1e9)))
        return ls_fail(e, LS_EINVAL, "%s: adapter.lora.alpha is not a number from 0 on", r->g.path);
    *alpha_p = ls_shortest_f32((float)alpha);
    return LS_OK;
}

/* ---- its layers ---- */

/* Is a tensor of the file A or B of a layer? */
static bool is_part(const reading *r, const char *name) {
    size_t n = strlen(name);
    char layer[LS_NAME_MOST];
    ls_name id;
    if (!ls_has_suffix(name, ".lora_a") && !ls_has_suffix(name, ".lora_b")) return false;
    for (int i = 0; ls_name_at(&r->arch, i, &id); i++)
        if (strlen(id.gguf) == n - 7 && strncmp(id.gguf, name, n - 7) == 0)
            return ls_adapter_takes(&id, layer);
    return false;
}

static ls_status check_tensors(const reading *r, ls_error *e) {
    for (size_t i = 0; i < r->g.ntensors; i++) {
        const ls_gguf_tensor *t = &r->g.tensors[i];
        if (!is_part(r, t->name))
            return ls_fail(e, LS_EINVAL,
                           "%s: %.80s is not A or B of a linear layer of this model; adapters "
                           "here have nothing else",
                           r->g.path, t->name);
        int64_t rank = t->dims[ls_has_suffix(t->name, ".lora_a") ? 1 : 0];
        if (t->ndims != 2 || rank < 1 || rank > 65536)
            return ls_fail(e, LS_EINVAL, "%s: %s is no matrix of a rank", r->g.path, t->name);
    }
    return r->g.ntensors ? LS_OK : ls_fail(e, LS_EINVAL, "%s: has no tensors", r->g.path);
}

/* The rank of the layer's adapter; 0: it has none. */
static int64_t rank_of(const reading *r, const ls_name *id) {
    char *name = ls_format("%s.lora_a", id->gguf);
    const ls_gguf_tensor *a = ls_gguf_find_tensor(&r->g, name);
    free(name);
    return a ? a->dims[1] : 0;
}

/* The layers and their ranks, of which the first one's is the usual one. */
static ls_status take_layers(const reading *r, ls_config *c, ls_error *e) {
    ls_adapter_numbers all = {0};
    ls_name id;
    char layer[LS_NAME_MOST];
    double alpha = 0;
    LS_TRY(read_alpha(r, &alpha, e));
    for (int i = 0; ls_name_at(&r->arch, i, &id); i++) {
        int64_t rank = ls_adapter_takes(&id, layer) ? rank_of(r, &id) : 0;
        if (rank) ls_adapter_numbers_add(&all, layer, rank, alpha > 0 ? alpha : (double)rank);
    }
    if (all.n) all.rank = all.list[0].rank, all.alpha = all.list[0].alpha;
    ls_status s = all.n ? LS_OK : ls_fail(e, LS_EINVAL, "%s: has no tensor NAME.lora_a", r->g.path);
    if (s == LS_OK) s = ls_adapter_numbers_set(&all, r->g.path, c, e);
    if (s == LS_OK) s = ls_adapter_numbers_target(&all, &r->arch, r->g.path, c, e);
    free(all.list);
    return s;
}

static ls_status adopt(const reading *r, ls_config *c, ls_error *e) {
    LS_TRY(check_keys(r, e));
    LS_TRY(check_tensors(r, e));
    LS_TRY(take_layers(r, c, e));
    c->lora.rs = false;
    c->lora.dora = false;
    c->lora.dropout = 0;
    return LS_OK;
}

ls_status ls_adapter_gguf_adopt(ls_config *c, ls_error *e) {
    reading r = {0};
    LS_TRY(open_file(c, &r, e));
    ls_status s = adopt(&r, c, e);
    if (s == LS_OK) s = ls_guard_check(e);
    ls_gguf_close(&r.g);
    return s;
}

/* ---- its numbers ---- */

/* *first_p: is it the first part of its tensor? Phi-3's q, k and v are rows of one, with one A. */
static ls_status read_param(const reading *r, const ls_param *p, const ls_train_state *s,
                            bool *first_p, ls_error *e) {
    ls_name id;
    ls_block_type type;
    bool a = false;
    if (!ls_adapter_gguf_base(&r->arch, p, &id, &a))
        return ls_fail(e, LS_EINVAL, "%s: GGUF has no name for %s", r->g.path, p->name);
    char *name = ls_format("%s.lora_%c", id.gguf, a ? 'a' : 'b');
    const ls_gguf_tensor *t = ls_gguf_find_tensor(&r->g, name);
    free(name);
    if (!t || t->ndims != 2 || t->dims[0] != p->dims[1] || t->dims[1] != (a ? p->dims[0] : id.rows))
        return ls_fail(e, LS_EINVAL,
                       "%s: has no tensor %s.lora_%c of the model's shape: it is the adapter of "
                       "another model",
                       r->g.path, id.gguf, a ? 'a' : 'b');
    if (!ls_block_of_gguf(t->type, &type))
        return ls_fail(e, LS_EINVAL, "%s: the type of %s can't be read", r->g.path, t->name);
    float *x = LS_NEW_ARRAY(float, (size_t)t->count), *ordered = LS_NEW_ARRAY(float, p->count);
    ls_stored_read(ls_kernels_at(0), (ls_stored){.data = t->data, .type = type}, 0, t->count, x);
    int64_t width = p->dims[1];
    for (int64_t i = 0; i < p->dims[0]; i++) {
        int64_t row = a ? i : id.first + ls_adapter_gguf_row(&r->arch, &id, i);
        memcpy(ordered + i * width, x + row * width, (size_t)width * sizeof *x);
    }
    ls_state_put(s, s->flat.of[0], p->offset, p->offset + p->count, ordered);
    *first_p = id.first == 0;
    free(x);
    free(ordered);
    return LS_OK;
}

static ls_status read_all(const reading *r, const ls_train_state *s, ls_error *e) {
    size_t n = 0;
    bool is_first = false;
    for (int i = 0; i < s->model->nparams; i++) {
        if (s->model->params[i].frozen) continue;
        LS_TRY(read_param(r, &s->model->params[i], s, &is_first, e));
        n += is_first;
    }
    if (r->g.ntensors == n) return ls_guard_check(e);
    return ls_fail(e, LS_EINVAL, "%s: has %zu tensors, and the model trains %zu of them", r->g.path,
                   r->g.ntensors, n);
}

ls_status ls_adapter_gguf_load(const ls_config *c, const ls_train_state *s, ls_error *e) {
    reading r = {0};
    LS_TRY(open_file(c, &r, e));
    ls_status status = read_all(&r, s, e);
    ls_gguf_close(&r.g);
    return status;
}
