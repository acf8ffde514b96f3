/* manifest.c - see manifest.h. */
#include "storage/manifest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/data_record.h"
#include "storage/frozen_file.h"

enum { MAX_MANIFEST = 1 << 20 };

static char *join(const char *folder, const char *name) { return ls_format("%s/%s", folder, name); }

/* ---- writing ---- */

ls_status ls_manifest_list(const char *folder, const char *name, ls_json *files, ls_error *e) {
    char *path = join(folder, name);
    ls_hash hash;
    uint64_t nbytes = 0;
    ls_status s = ls_file_hash(path, &hash, &nbytes, e);
    free(path);
    if (s != LS_OK) return s;
    ls_json *entry = ls_json_new_object();
    ls_json_set_text(entry, "name", name);
    ls_json_set_integer(entry, "bytes", (int64_t)nbytes);
    ls_json_set_hash(entry, "xxh3_128", hash);
    ls_json_push(files, entry);
    return LS_OK;
}

static ls_json *manifest_of(const ls_train_state *s, const ls_state_hashes *hashes,
                            const ls_checkpoint_extra *x, ls_json *files) {
    ls_json *m = ls_json_new_object(), *model = ls_json_new_object();
    char text[LS_HASH_TEXT];
    ls_json_set_text(m, "format", "lockstep checkpoint");
    ls_json_set_integer(m, "version", 1);
    ls_json_set_text(m, "lockstep", LS_VERSION);
    ls_json_set_integer(m, "step", s->step);
    ls_json_set_integer(model, "tensors", s->model->nparams);
    ls_json_set_integer(model, "parameters", (int64_t)s->model->count);
    if (s->model->frozen_count)
        ls_json_set_integer(model, "frozen_parameters", (int64_t)s->model->frozen_count);
    ls_json_set(m, "model", model);
    if (x->sum) ls_json_set_text(m, "sum", x->sum);
    if (s->scaler.scale > 0) {
        ls_json *scaler = ls_json_new_object();
        snprintf(text, sizeof text, "%.17g", s->scaler.scale); /* exact; JSON numbers are not */
        ls_json_set_text(scaler, "scale", text);
        ls_json_set_integer(scaler, "good", s->scaler.good);
        ls_json_set_integer(scaler, "left", s->scaler.left);
        ls_json_set_integer(scaler, "skipped", s->scaler.skipped);
        ls_json_set(m, "loss_scale", scaler);
    }
    if (x->val_samples > 0) {
        snprintf(text, sizeof text, "%.17g", x->val_loss);
        ls_json_set_text(m, "val_loss", text);
        ls_json_set_integer(m, "val_samples", x->val_samples);
    }
    ls_json_set_hash(m, "weights_hash", hashes->weights);
    ls_json_set_hash(m, "optimizer_hash", hashes->optimizer);
    ls_json_set(m, "files", files);
    return m;
}

ls_status ls_manifest_write(const char *folder, const ls_train_state *s,
                            const ls_state_hashes *hashes, const ls_checkpoint_extra *x,
                            ls_json *files, ls_error *e) {
    return ls_json_write_in(manifest_of(s, hashes, x, files), folder, LS_MANIFEST_FILE, e);
}

/* ---- reading ---- */

static ls_status read_scaler(ls_manifest *m, const char *path, ls_error *e) {
    const ls_json *j = ls_json_get(m->json, "loss_scale");
    const char *scale = ls_json_text(ls_json_get(j, "scale"));
    ls_scaler s = {.scale = scale ? strtod(scale, NULL) : 0};
    if (!j) return LS_OK;
    if (!(s.scale > 0) || !isfinite(s.scale) || !ls_json_integer(ls_json_get(j, "good"), &s.good) ||
        s.good < 0 || !ls_json_integer(ls_json_get(j, "left"), &s.left) || s.left < 0 ||
        !ls_json_integer(ls_json_get(j, "skipped"), &s.skipped) || s.skipped < 0 ||
        s.skipped > m->step)
        return ls_fail(e, LS_EINVAL, "%s: its loss_scale is not complete, or out of range", path);
    m->scaler = s;
    return LS_OK;
}

static ls_status parse(ls_manifest *m, const char *path, ls_error *e) {
    const ls_json *files = ls_json_get(m->json, "files");
    const char *format = ls_json_text(ls_json_get(m->json, "format"));
    int64_t version = 0;
    if (!format || strcmp(format, "lockstep checkpoint") != 0 ||
        !ls_json_integer(ls_json_get(m->json, "version"), &version) || version != 1 ||
        !ls_json_is_array(files) || !ls_json_integer(ls_json_get(m->json, "step"), &m->step) ||
        m->step < 0)
        return ls_fail(e, LS_EINVAL, "%s: is not the manifest of a version 1 checkpoint", path);
    if (ls_json_get(m->json, "sum") && !ls_manifest_sum(m))
        return ls_fail(e, LS_EINVAL, "%s: its sum is not the name of an order", path);
    return read_scaler(m, path, e);
}

ls_status ls_manifest_read(const char *folder, ls_manifest *m_p, ls_error *e) {
    char *path = join(folder, LS_MANIFEST_FILE);
    ls_manifest m = {0};
    ls_buf text = {0};
    ls_status s = ls_file_read(path, MAX_MANIFEST, &text, e);
    if (s == LS_OK) s = ls_json_parse(text.data ? text.data : "", text.len, path, &m.json, e);
    if (s == LS_OK) s = parse(&m, path, e);
    ls_buf_free(&text);
    free(path);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_json_free(m.json);
    return s;
}

void ls_manifest_free(ls_manifest *m) {
    ls_json_free(m->json);
    *m = (ls_manifest){0};
}

const char *ls_manifest_sum(const ls_manifest *m) {
    return ls_json_text(ls_json_get(m->json, "sum"));
}

bool ls_manifest_val_loss(const ls_manifest *m, int64_t nsamples, double *loss_p) {
    const char *text = ls_json_text(ls_json_get(m->json, "val_loss"));
    char *end = NULL;
    int64_t got = 0;
    double loss = text ? strtod(text, &end) : 0;
    bool good = text && *text && !*end && isfinite(loss) &&
                ls_json_integer(ls_json_get(m->json, "val_samples"), &got) && got == nsamples;
    if (good) *loss_p = loss;
    return good;
}

/* ---- checking ---- */

static ls_status check_file(const char *folder, const ls_json *entry, ls_error *e) {
    const char *name = ls_json_text(ls_json_get(entry, "name"));
    const char *want = ls_json_text(ls_json_get(entry, "xxh3_128"));
    int64_t nbytes = -1;
    if (!name || !want || strchr(name, '/') ||
        !ls_json_integer(ls_json_get(entry, "bytes"), &nbytes))
        return ls_fail(e, LS_EINVAL, "%s/%s: has a file entry without name, bytes or xxh3_128",
                       folder, LS_MANIFEST_FILE);
    char *path = join(folder, name), got[LS_HASH_TEXT];
    ls_hash hash;
    uint64_t has = 0;
    ls_status s = ls_file_hash(path, &hash, &has, e);
    if (s == LS_OK) {
        ls_hash_text(hash, got);
        if ((int64_t)has != nbytes)
            s = ls_fail(e, LS_EINVAL, "%s: has the wrong size: %llu bytes, the manifest says %lld",
                        path, (unsigned long long)has, (long long)nbytes);
        else if (strcmp(got, want) != 0)
            s = ls_fail(e, LS_EINVAL, "%s: is damaged: its hash is not the manifest's", path);
    }
    free(path);
    return s;
}

bool ls_manifest_has_frozen(const ls_manifest *m) {
    int64_t n = 0;
    const ls_json *model = ls_json_get(m->json, "model");
    return ls_json_integer(ls_json_get(model, "frozen_parameters"), &n) && n > 0;
}

static const ls_json *entry_of(const ls_manifest *m, const char *name) {
    const ls_json *files = ls_json_get(m->json, "files");
    for (size_t i = 0; i < ls_json_count(files); i++) {
        const ls_json *entry = ls_json_at(files, i);
        const char *listed = ls_json_text(ls_json_get(entry, "name"));
        if (listed && strcmp(listed, name) == 0) return entry;
    }
    return NULL;
}

bool ls_manifest_listed(const ls_manifest *m, const char *name, ls_hash *h_p) {
    const char *text = ls_json_text(ls_json_get(entry_of(m, name), "xxh3_128"));
    return text && ls_hash_parse(text, h_p);
}

/* All files that are read must be listed, and all listed files must have their hash. */
ls_status ls_manifest_check_files(const ls_manifest *m, const char *folder, ls_error *e) {
    const ls_json *files = ls_json_get(m->json, "files");
    bool has_samples = entry_of(m, LS_DATA_RECORD);
    const char *const needed[] = {LS_WEIGHTS_FILE, LS_OPTIMIZER_FILE, LS_CONFIG_FILE,
                                  has_samples ? LS_DATA_RECORD : LS_TOKENIZER_FILE,
                                  ls_manifest_has_frozen(m) ? LS_FROZEN_FILE : LS_WEIGHTS_FILE};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!entry_of(m, needed[i]))
            return ls_fail(e, LS_EINVAL, "%s/%s: is not complete: it does not list %s", folder,
                           LS_MANIFEST_FILE, needed[i]);
    for (size_t i = 0; i < ls_json_count(files); i++)
        LS_TRY(check_file(folder, ls_json_at(files, i), e));
    return LS_OK;
}

ls_status ls_manifest_check_hash(const ls_manifest *m, const char *folder, const char *key,
                                 ls_hash got, ls_error *e) {
    char text[LS_HASH_TEXT];
    ls_hash_text(got, text);
    const char *want = ls_json_text(ls_json_get(m->json, key));
    if (!want || strcmp(want, text) != 0)
        return ls_fail(e, LS_EINVAL, "%s: %s in the manifest is %s, the tensors give %s", folder,
                       key, want ? want : "missing", text);
    return LS_OK;
}
