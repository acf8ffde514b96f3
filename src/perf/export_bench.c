/* export_bench.c - see export_bench.h. */
#include "perf/export_bench.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "config/write_config.h"
#include "data/order.h"
#include "storage/frozen_file.h"

/* DIR/NAME: the weights that begin at flat, and frozen ones. */
static ls_status write_weights(const ls_host *h, float *flat, const char *dir, const char *name,
                               ls_error *e) {
    char *path = ls_format("%s/%s", dir, name);
    ls_train_state state = {.model = &h->layout.model, .flat = {.n = 1, .of = {flat}}};
    ls_status s = ls_frozen_write_all(&state, NULL, &h->run->config, path, e);
    free(path);
    return s;
}

ls_status ls_export_weights(ls_member *m, const char *dir, const char *name, ls_error *e) {
    ls_world *w = &m->worlds[0];
    const ls_plan *p = &m->layout->plan;
    ls_status s = LS_OK;
    LS_TRY(ls_world_collect(w, &p->share, e));
    if (m->worker == 0) s = write_weights(m->host, w->flat.of[0], dir, name, e);
    ls_world_drop_collected(w, &p->share);
    return ls_member_wait(m, s, e);
}

/* Samples in the order in which the steps take them. */
static ls_status write_samples(const ls_run *r, const ls_dataset *d, int64_t steps,
                               const char *path, ls_error *e) {
    ls_loader_config c = ls_dataset_loader(d, &r->config);
    ls_buf out = {0};
    void *sample = ls_alloc(d->sample_nbytes);
    ls_status s = LS_OK;
    for (int64_t step = 0; s == LS_OK && step < steps; step++) {
        ls_batch b = ls_loader_batch(&c, (uint64_t)step);
        if (b.count < c.batch)
            s = ls_fail(e, LS_EINVAL,
                        "step %lld, at the end of an epoch of %llu samples, has %llu of them, not "
                        "%llu: --export needs batches of one size; use fewer steps, or another "
                        "train.batch",
                        (long long)step + 1, (unsigned long long)d->ntrain,
                        (unsigned long long)b.count, (unsigned long long)c.batch);
        for (uint64_t i = 0; s == LS_OK && i < b.count; i++) {
            ls_draw draw = {c.order.seed, b.epoch, 0};
            draw.sample = ls_order_at(&c.order, b.epoch, b.first + i);
            s = c.read(c.data, &draw, d->sample_nbytes, sample, e);
            ls_buf_append(&out, sample, d->sample_nbytes);
        }
    }
    if (s == LS_OK) s = ls_file_replace(path, out.data, out.len, e);
    free(sample);
    ls_buf_free(&out);
    return s;
}

static ls_json *fields_of(const ls_model *m) {
    ls_json *list = ls_json_new_array();
    for (int i = 0; i < m->ninputs; i++) {
        const ls_field *f = &m->inputs[i];
        ls_json *o = ls_json_new_object(), *shape = ls_json_new_array();
        for (int k = 0; k < f->ndims; k++) ls_json_push(shape, ls_json_new_integer(f->dims[k]));
        ls_json_set_path(o, "name", f->name);
        ls_json_set_text(o, "dtype", ls_dtype_name(f->type));
        ls_json_set(o, "shape", shape);
        ls_json_set_integer(o, "offset", (int64_t)f->offset);
        ls_json_push(list, o);
    }
    return list;
}

static ls_status write_config(const ls_config *c, const char *path, ls_error *e) {
    ls_buf text = {0};
    ls_config_write(c, &text);
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    ls_buf_free(&text);
    return s;
}

/* What follows from the config, or is drawn. */
static ls_status write_settings(const ls_host *h, uint64_t nsamples, int64_t steps,
                                const char *path, ls_error *e) {
    const ls_run *r = h->run;
    const ls_model *m = &h->layout.model;
    const ls_config *c = &r->config;
    const ls_schedule schedule = ls_schedule_of(c, nsamples);
    ls_json *o = ls_json_new_object(), *rates = ls_json_new_array(), *decay = ls_json_new_array();
    ls_json *frozen = ls_json_new_array();
    for (int64_t i = 0; i < steps; i++)
        ls_json_push(rates, ls_json_new_number(ls_schedule_rate(&schedule, i)));
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].decay) ls_json_push(decay, ls_json_new_text(m->params[i].name));
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].frozen) ls_json_push(frozen, ls_json_new_text(m->params[i].name));
    ls_json_set(o, "fields", fields_of(m));
    ls_json_set_integer(o, "sample_bytes", (int64_t)m->sample_nbytes);
    ls_json_set_integer(o, "batch", c->train.batch);
    ls_json_set_integer(o, "steps", steps);
    ls_json_set(o, "lr", rates);
    ls_json_set(o, "decay", decay);
    ls_json_set(o, "frozen", frozen);
    ls_buf text = {0};
    ls_json_write(o, 1, &text);
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    ls_buf_free(&text);
    ls_json_free(o);
    return s;
}

ls_status ls_export_samples(const ls_run *r, const ls_dataset *d, int64_t steps, const char *dir,
                            ls_error *e) {
    bool has_tokens = ls_config_has_tokens(&r->config);
    char *path = ls_format("%s/%s", dir, has_tokens ? "tokens.u32" : "samples.bin");
    ls_status s = write_samples(r, d, steps, path, e);
    free(path);
    return s;
}

ls_status ls_export(const ls_host *h, const ls_dataset *d, int64_t steps, const char *dir,
                    ls_error *e) {
    char *settings = ls_format("%s/settings.json", dir), *config = ls_format("%s/config.yaml", dir);
    ls_status s = ls_file_make_dirs(dir, e);
    if (s == LS_OK && !ls_config_has_pairs(&h->run->config))
        s = ls_export_samples(h->run, d, steps, dir, e);
    if (s == LS_OK) s = write_settings(h, d->ntrain, steps, settings, e);
    if (s == LS_OK) s = write_config(&h->run->config, config, e);
    free(settings);
    free(config);
    return s;
}
