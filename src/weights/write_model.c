/* write_model.c - see write_model.h. */
#include "weights/write_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/suffix.h"
#include "weights/blocks.h"
#include "weights/config_json.h"
#include "weights/gguf_model.h"

enum { PIECE = 1 << 20 }; /* elements that are converted at once */

static ls_status rows_of_weights(const void *arg, const ls_name *n, int64_t first, int64_t end,
                                 float *out, ls_error *e) {
    const ls_weights *w = arg;
    return ls_weights_rows(w, ls_weights_find(w, n->name), first, end, out, e);
}

ls_model_source ls_source_of_weights(const ls_weights *w) {
    return (ls_model_source){&w->arch, rows_of_weights, w};
}

static int64_t width_of(const ls_name *n) { return n->ndims > 1 ? n->dims[1] : 1; }
/* Elements of the file's tensor, whose first part it is; 0: it is another part. */
static int64_t file_count(const ls_name *n) { return n->first ? 0 : n->rows * width_of(n); }

/* Rows that make up a piece; at least `least`, and a multiple of it. */
static int64_t rows_in_piece(int64_t width, int64_t least) {
    int64_t rows = PIECE / width / least * least;
    return rows > least ? rows : least;
}

/* out = x [n], in the type. */
static ls_status convert(ls_block_type type, const ls_name *id, int64_t n, const float *x,
                         uint8_t *out, ls_error *e) {
    const ls_block_info *b = ls_block_of(type);
    if (b->pack(n / b->elements, x, out)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "tensor '%s' has numbers that are not finite, or too large for the type %s",
                   id->name, b->name);
}

/* ---- safetensors ---- */

typedef struct shard {
    int first, end; /* tensors */
} shard;

/* Tensors in their order, as many as fit into each. */
static shard *cut(const ls_architecture *a, ls_block_type type, int64_t most, int *n_p) {
    shard *list = NULL;
    int n = 0;
    size_t nbytes = 0;
    ls_name id;
    for (int i = 0; ls_name_at(a, i, &id); i++) {
        size_t size = ls_block_nbytes(type, file_count(&id));
        if (n == 0 || (most > 0 && nbytes > 0 && size > 0 && nbytes + size > (size_t)most)) {
            list = ls_grow(list, (size_t)n, sizeof *list);
            list[n++] = (shard){i, i};
            nbytes = 0;
        }
        list[n - 1].end = i + 1;
        nbytes += size;
    }
    *n_p = n;
    return list;
}

static char *shard_name(int i, int n) {
    return n == 1 ? ls_strdup(LS_SHARDS_ONE)
                  : ls_format("model-%05d-of-%05d.safetensors", i + 1, n);
}

static ls_status put_tensor(const ls_model_source *s, const ls_name *id, ls_block_type type,
                            ls_file *f, ls_error *e) {
    int64_t width = width_of(id), step = rows_in_piece(width, 1);
    if (step > id->dims[0]) step = id->dims[0];
    float *x = LS_NEW_ARRAY(float, (size_t)(step * width));
    uint8_t *out = ls_alloc(ls_block_nbytes(type, step * width));
    ls_status status = LS_OK;
    for (int64_t i = 0; status == LS_OK && i < id->dims[0]; i += step) {
        int64_t end = id->dims[0] - i < step ? id->dims[0] : i + step, n = (end - i) * width;
        status = s->rows(s->arg, id, i, end, x, e);
        if (status == LS_OK) status = convert(type, id, n, x, out, e);
        if (status == LS_OK) status = ls_file_put(f, out, ls_block_nbytes(type, n), e);
    }
    free(x);
    free(out);
    return status;
}

static ls_status write_shard(const ls_model_source *s, const char *path, shard part,
                             ls_block_type type, ls_error *e) {
    size_t n = 0;
    ls_tensor *list = LS_NEW_ARRAY(ls_tensor, (size_t)(part.end - part.first));
    ls_file f;
    ls_name id;
    for (int i = part.first; i < part.end; i++) {
        ls_name_at(s->arch, i, &id);
        if (file_count(&id) == 0) continue;
        ls_tensor *t = &list[n++];
        *t = (ls_tensor){.ndims = id.ndims, .count = (size_t)file_count(&id), .type = type};
        memcpy(t->name, id.file, sizeof id.file);
        t->dims[0] = id.rows;
        if (id.ndims > 1) t->dims[1] = id.dims[1];
    }
    ls_status status = ls_safetensors_create(path, list, n, &f, e);
    free(list);
    if (status != LS_OK) return status;
    ls_bar bar = ls_bar_begin("writing weights: tensors", (uint64_t)(part.end - part.first));
    for (int i = part.first; status == LS_OK && i < part.end; i++) {
        ls_name_at(s->arch, i, &id);
        status = put_tensor(s, &id, type, &f, e);
        ls_bar_at(&bar, (uint64_t)(i - part.first) + 1);
    }
    ls_bar_end(&bar);
    if (status == LS_OK) return ls_file_close(&f, e);
    ls_file_discard(&f);
    return status;
}

static ls_status write_index(const ls_architecture *a, const char *folder, ls_block_type type,
                             const shard *list, int n, ls_error *e) {
    ls_json *o = ls_json_new_object(), *meta = ls_json_new_object(), *map = ls_json_new_object();
    int64_t count = ls_architecture_count(a);
    ls_json_set_integer(meta, "total_parameters", count);
    ls_json_set_integer(meta, "total_size", (int64_t)ls_block_nbytes(type, count));
    for (int i = 0; i < n; i++) {
        char *name = shard_name(i, n);
        ls_name id;
        for (int k = list[i].first; k < list[i].end; k++) {
            ls_name_at(a, k, &id);
            ls_json_set_text(map, id.file, name);
        }
        free(name);
    }
    ls_json_set(o, "metadata", meta);
    ls_json_set(o, "weight_map", map);
    return ls_json_write_in(o, folder, LS_SHARDS_INDEX, e);
}

ls_status ls_write_safetensors(const ls_model_source *s, const char *folder, ls_block_type type,
                               int64_t shard_nbytes, ls_error *e) {
    int n = 0;
    if (ls_block_of(type)->elements > 1)
        return ls_fail(e, LS_EINVAL, "safetensors can't hold weights of the type %s",
                       ls_block_of(type)->name);
    shard *list = cut(s->arch, type, shard_nbytes, &n);
    ls_status status = LS_OK;
    for (int i = 0; status == LS_OK && i < n; i++) {
        char *name = shard_name(i, n), *path = ls_format("%s/%s", folder, name);
        status = write_shard(s, path, list[i], type, e);
        free(path);
        free(name);
    }
    if (status == LS_OK && n > 1) status = write_index(s->arch, folder, type, list, n, e);
    free(list);
    return status;
}

ls_status ls_write_config(const ls_architecture *a, const char *folder, ls_block_type type,
                          ls_error *e) {
    const char *dtype = type == LS_BLOCK_F16    ? "float16"
                        : type == LS_BLOCK_BF16 ? "bfloat16"
                                                : "float32";
    LS_TRY(ls_json_write_in(ls_config_json_new(a, dtype), folder, LS_WEIGHTS_CONFIG, e));
    return ls_json_write_in(ls_generation_json_new(a), folder, LS_WEIGHTS_GENERATION, e);
}

/* ---- GGUF ---- */

typedef struct gguf_job {
    const ls_model_source *s;
    ls_gguf_writer *w;
    const ls_name *id;
    ls_block_type type; /* of this tensor */
} gguf_job;

/* The type of a tensor in a file of this type; as llama.cpp's converter chooses. */
static ls_block_type type_of(const ls_name *id, ls_block_type type) {
    bool positions = strcmp(id->gguf, "position_embd.weight") == 0;
    bool router = ls_has_suffix(id->gguf, ".ffn_gate_inp.weight");
    return id->ndims == 1 || positions || router ? LS_BLOCK_F32 : type;
}

/* The width of a row in the file. */
static int64_t file_width(const ls_name *id) {
    return id->order == LS_ROWS_TRANSPOSED ? id->dims[0] : width_of(id);
}

static ls_status list_tensors(const ls_architecture *a, ls_block_type type, ls_gguf_writer *w,
                              ls_error *e) {
    ls_name id;
    for (int i = 0; ls_name_at(a, i, &id); i++) {
        const ls_block_info *b = ls_block_of(type_of(&id, type));
        int64_t width = id.ndims > 1 ? file_width(&id) : id.dims[0];
        if (width % b->elements)
            return ls_fail(e, LS_EINVAL,
                           "tensor '%s' has rows of %lld elements; %s takes a multiple of %d",
                           id.name, (long long)width, b->name, b->elements);
        const int64_t dims[3] = {width, file_count(&id) / width, a->experts};
        if (id.expert > 0 || id.first) continue; /* the first one's has all */
        ls_gguf_put_tensor(w, id.gguf, type_of(&id, type), id.ndims + (id.expert == 0), dims);
    }
    return LS_OK;
}

static ls_status add(const gguf_job *j, const float *x, int64_t n, ls_error *e) {
    size_t nbytes = ls_block_nbytes(j->type, n);
    uint8_t *out = ls_alloc(nbytes);
    ls_status s = convert(j->type, j->id, n, x, out, e);
    if (s == LS_OK) s = ls_gguf_add(j->w, out, nbytes, e);
    free(out);
    return s;
}

/* Rows in the file's order: `group` rows at a time are permuted among themselves. */
static ls_status add_rows(const gguf_job *j, int64_t group, ls_error *e) {
    const ls_name *id = j->id;
    int64_t width = width_of(id), step = rows_in_piece(width, group);
    if (step > id->dims[0]) step = id->dims[0];
    float *x = LS_NEW_ARRAY(float, (size_t)(step * width)), *y = x;
    if (group > 1) y = LS_NEW_ARRAY(float, (size_t)(step * width));
    ls_status s = LS_OK;
    for (int64_t i = 0; s == LS_OK && i < id->dims[0]; i += step) {
        int64_t end = id->dims[0] - i < step ? id->dims[0] : i + step;
        s = j->s->rows(j->s->arg, id, i, end, x, e);
        for (int64_t r = 0; s == LS_OK && group > 1 && r < end - i; r++)
            memcpy(y + ls_name_pair_row(group, r) * width, x + r * width,
                   (size_t)width * sizeof *y);
        for (int64_t k = 0; id->order == LS_ROWS_PLUS_ONE && k < (end - i) * width; k++) x[k] += 1;
        if (s == LS_OK) s = add(j, y, (end - i) * width, e);
    }
    if (y != x) free(y);
    free(x);
    return s;
}

static ls_status add_transposed(const gguf_job *j, ls_error *e) {
    int64_t in = j->id->dims[0], out = j->id->dims[1];
    float *x = NULL, *row = LS_NEW_ARRAY(float, (size_t)in);
    void *p = NULL;
    size_t nbytes = (size_t)(in * out) * sizeof *x;
    ls_status s = ls_map(nbytes, "a matrix", &p, e);
    x = p;
    if (s == LS_OK) s = j->s->rows(j->s->arg, j->id, 0, in, x, e);
    for (int64_t o = 0; s == LS_OK && o < out; o++) {
        for (int64_t i = 0; i < in; i++) row[i] = x[i * out + o];
        s = add(j, row, in, e);
    }
    free(row);
    if (p) ls_unmap(p, nbytes);
    return s;
}

/* Adds LS_GGUF_NORMS if any element has bits that 1 + the element loses. */
static ls_status put_norms(const ls_model_source *s, ls_gguf_writer *w, ls_error *e) {
    float *x = NULL;
    size_t n = 0;
    bool loses = false;
    ls_name id;
    ls_status status = LS_OK;
    for (int i = 0; status == LS_OK && ls_name_at(s->arch, i, &id); i++) {
        size_t count = (size_t)id.dims[0];
        if (id.order != LS_ROWS_PLUS_ONE) continue;
        x = ls_realloc(x, (n + count) * sizeof *x);
        status = s->rows(s->arg, &id, 0, id.dims[0], x + n, e);
        for (size_t k = n; status == LS_OK && k < n + count; k++)
            loses = loses || x[k] + 1 - 1 - x[k] != 0;
        n += count;
    }
    if (status == LS_OK && loses) ls_gguf_put_f32s(w, LS_GGUF_NORMS, x, n);
    free(x);
    return status;
}

static ls_status add_divisors(const ls_architecture *a, int64_t n, ls_gguf_writer *w, ls_error *e) {
    bool lists = a->rope.type == LS_ROPE_LONGROPE;
    for (int64_t i = 0; !lists && i < n; i++) {
        float x = (float)ls_rope_divisor(&a->rope, a->head_dim, i);
        LS_TRY(ls_gguf_add(w, &x, sizeof x, e));
    }
    for (int k = 0; lists && k < LS_NROPE_LISTS; k++)
        LS_TRY(ls_gguf_add(w, a->divisors[k], (size_t)n * sizeof(float), e));
    return LS_OK;
}

/* Tensor i; of a tensor of experts those of all, one after the other. */
static ls_status add_tensor(const ls_model_source *s, int i, ls_block_type type, ls_gguf_writer *w,
                            ls_error *e) {
    ls_name id;
    ls_name_at(s->arch, i, &id);
    if (id.expert > 0) return LS_OK;
    const int64_t parts = id.expert == 0 ? s->arch->experts : 1;
    for (int64_t k = 0; k < parts; k++) {
        ls_name_at(s->arch, i + (k ? (int)k * ls_name_expert_step(s->arch) : 0), &id);
        const gguf_job j = {s, w, &id, type_of(&id, type)};
        LS_TRY(id.order == LS_ROWS_TRANSPOSED
                   ? add_transposed(&j, e)
                   : add_rows(&j, id.order == LS_ROWS_PAIRS ? s->arch->head_dim : 1, e));
    }
    return LS_OK;
}

static ls_status add_tensors(const ls_model_source *s, ls_block_type type, ls_gguf_writer *w,
                             ls_error *e) {
    const int n = ls_name_count(s->arch);
    ls_bar bar = ls_bar_begin("writing weights: tensors", (uint64_t)n);
    ls_status status = LS_OK;
    for (int i = 0; status == LS_OK && i < n; i++) {
        status = add_tensor(s, i, type, w, e);
        ls_bar_at(&bar, (uint64_t)i + 1);
    }
    ls_bar_end(&bar);
    return status;
}

ls_status ls_write_gguf(const ls_model_source *s, const char *path, ls_block_type type,
                        ls_gguf_writer *w, ls_error *e) {
    if (!ls_block_of(type)->pack) {
        ls_buf types = {0};
        ls_block_put_writable(&types);
        ls_status status = ls_fail(e, LS_EINVAL, "weights can't be written as %s; use %s",
                                   ls_block_of(type)->name, types.data);
        ls_buf_free(&types);
        return status;
    }
    LS_TRY(ls_gguf_check(s->arch, e));
    ls_gguf_put_architecture(w, s->arch, type);
    LS_TRY(put_norms(s, w, e));
    int64_t divisors = ls_gguf_put_divisors(w, s->arch);
    LS_TRY(list_tensors(s->arch, type, w, e));
    LS_TRY(ls_gguf_begin(w, path, e));
    LS_TRY(add_divisors(s->arch, divisors, w, e));
    LS_TRY(add_tensors(s, type, w, e));
    return ls_gguf_end(w, e);
}
