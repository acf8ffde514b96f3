/* samples.c - see samples.h. */
#include "dataset/samples.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "config/needs.h"
#include "dataset/base_numbering.h"
#include "dataset/data_paths.h"
#include "dataset/images.h"
#include "dataset/mixture.h"
#include "dataset/opened.h"
#include "networks/program_model.h"
#include "source/adapt.h"

/* The fields that a model reads. */
typedef struct fields {
    ls_field list[LS_SOURCE_FIELDS];
    int n, classes[LS_SOURCE_FIELDS], ignored[LS_SOURCE_FIELDS];
    bool padded[LS_SOURCE_FIELDS];
} fields;

/* wanted [ninputs]; NULL: all. */
static fields fields_of(const ls_model *m, const bool *wanted) {
    fields f = {.n = 0};
    for (int i = 0; i < m->ninputs; i++) {
        if (wanted && !wanted[i]) continue;
        f.list[f.n] = m->inputs[i];
        f.classes[f.n] = m->classes[i];
        f.ignored[f.n] = m->ignored[i];
        f.padded[f.n++] = m->padded[i];
    }
    return f;
}

/* Images are squares of the usual side only where the model's input does not say their size. */
static ls_status check_side(const ls_source *s, const char *name, ls_error *e) {
    if (!s->side) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: has images of several sizes, of which data.augment cuts a part; set "
                   "data.resize, e.g. %lld",
                   name, (long long)s->side);
}

/* Takes the source over, which o_p then has as the model reads it. paths: its files, for messages;
 * wanted: as in fields_of(). */
static ls_status adapt(const ls_config *c, const ls_model *m, const bool *wanted, const char *paths,
                       ls_opened *o_p, ls_error *e) {
    char *name = ls_opened_name(paths);
    fields f = fields_of(m, wanted);
    ls_opened o = *o_p;
    ls_adapt_wanted how = {.fields = f.list,
                           .nfields = f.n,
                           .classes = f.classes,
                           .padded = f.padded,
                           .ignored = f.ignored,
                           .cuts = c->data.lists == LS_LISTS_CUT,
                           .nbytes = m->sample_nbytes,
                           .what = name,
                           .missing_p = o_p->missing_p};
    bool has_lists = wanted != NULL;
    for (int i = 0; i < m->ninputs; i++)
        has_lists = has_lists || (m->padded[i] && m->inputs[i].ndims == 1);
    ls_status s = LS_OK;
    if (!has_lists)
        s = ls_config_refuse_written(c, "data.lists", "a model that reads lists of ids", e);
    if (s == LS_OK) s = check_side(o.source, name, e);
    if (s == LS_OK)
        s = ls_adapt(o.source, &how, &o.source, e);
    else
        ls_source_close(o.source);
    if (s == LS_OK) *o_p = o;
    free(name);
    return s;
}

/* The number of training samples below `sample`. */
static uint64_t ntrain_below(const ls_split *s, uint64_t sample) {
    uint64_t low = 0, high = s->ntrain;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ls_split_train(s, middle) < sample)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mixture as ranges of training samples. */
static ls_mix mix_of_training(const ls_mix *files, const ls_split *s) {
    ls_mix m = *files;
    for (int k = 1; k <= m.nparts; k++) m.begins[k] = ntrain_below(s, m.begins[k]);
    ls_mix_count(&m);
    return m;
}

/* The mixture, as ranges of the source's samples. */
static ls_status read_mix(const ls_config *c, const ls_source *files, ls_mix *m, ls_error *e) {
    ls_mixture given;
    if (!*c->data.mix) return LS_OK;
    LS_TRY(ls_mixture_read(c->data.mix, &given, e));
    m->nparts = given.n;
    for (int k = 0; k < given.n; k++) {
        m->weights[k] = given.parts[k].weight;
        m->begins[k + 1] = m->begins[k] + files->parts[k]->count;
    }
    ls_mixture_free(&given);
    return LS_OK;
}

static void write_record(ls_samples *s, const ls_opening *how) {
    const ls_config *c = how->c;
    char here[PATH_MAX] = "";
    if (!how->dir && !getcwd(here, sizeof here)) *here = 0;
    ls_data_record_write(
        &(ls_data_given){.source = s->source,
                         .paths = c->data.path,
                         .labels = c->data.labels,
                         .mix = &s->record.mix,
                         .directory = how->dir ? how->dir : here},
        &(ls_data_given){.source = s->val, .paths = c->data.val_path, .labels = c->data.val_labels},
        &s->record_text);
}

static ls_status open_parts(ls_samples *s, const ls_opening *how, const ls_model *m, ls_error *e) {
    const ls_config *c = how->c;
    ls_opened train = {0}, val = {0};
    LS_TRY(ls_program_has_data() ? ls_opening_own(how, m, &train, e)
                                 : ls_opening_training(how, &train, e));
    LS_TRY(adapt(c, m, NULL, ls_opened_train_name(c), &train, e));
    s->source = train.source;
    if (*c->data.val_path) {
        ls_opening next = *how;
        next.numbering = s->source->numbering;
        next.follows = true;
        LS_TRY(ls_opening_files(&next, c->data.val_path, c->data.val_labels, &val, e));
        LS_TRY(adapt(c, m, NULL, c->data.val_path, &val, e));
    }
    if (ls_config_has_ratings(c)) {
        s->ratings = ls_ratings_of(train.files);
        LS_TRY(ls_ratings_held_out(train.files, c->data.path, &val.source, e));
        LS_TRY(adapt(c, m, NULL, c->data.path, &val, e));
    }
    s->val = val.source;
    s->files[0] = train.files;
    s->files[1] = val.files;
    if (s->source->count == 0 || (s->val && s->val->count == 0))
        return ls_fail(e, LS_EINVAL, "%s: has no samples",
                       s->source->count ? c->data.val_path : ls_opened_train_name(c));
    LS_TRY(ls_opened_split(c, s->source->count, &s->split, e));
    s->nval = s->val ? s->val->count : s->split.nval;
    s->record = (ls_data_record){.training = ls_data_part_of(s->source),
                                 .validation = ls_data_part_of(s->val)};
    LS_TRY(read_mix(c, s->files[0], &s->record.mix, e));
    write_record(s, how);
    if (s->files[0]->ids) ls_ids_write(s->files[0]->ids, &s->ids_text);
    s->mix = mix_of_training(&s->record.mix, &s->split);
    return ls_samples_order(c, &s->record, &s->order, e);
}

/* The numbering that the training data of a run with train.from follow: that of the run itself,
 * once it has begun, else the base's. None, if there is none: the base has texts, or a program's
 * data. run: NULL: a new one. */
static ls_numbering base_of(const ls_config *c, const char *run) {
    ls_numbering n = {0};
    if (*c->train.from) ls_data_record_numbering(run ? run : c->train.from, &n, NULL);
    return n;
}

ls_status ls_samples_open(const ls_config *c, const ls_model *m, const char *run,
                          const ls_data_record *r, ls_samples **s_p, ls_error *e) {
    ls_images images = {0};
    ls_opening how = {.c = c, .images = &images.way};
    LS_TRY(ls_images_of(c, m, &images, e));
    if (r && !ls_program_has_data()) LS_TRY(ls_data_paths_find(c, r->directory, &how.dir, e));
    ls_samples *s = LS_NEW(ls_samples);
    ls_numbering base = base_of(c, run);
    how.base = &base;
    ls_status status = open_parts(s, &how, m, e);
    ls_numbering_free(&base);
    if (status == LS_OK && !run && *c->train.from)
        status = ls_base_ids_check(s->files[0]->ids, c->train.from, e);
    if (status == LS_OK)
        *s_p = s;
    else
        ls_samples_close(s);
    return status;
}

/* Ratings: the run's own, of which those in the other files are held out. */
static ls_status open_other_ratings(const ls_config *c, const ls_model *m,
                                    const ls_other_samples *other, ls_samples *s, ls_error *e) {
    ls_data_record r = {0};
    ls_images images = {0};
    bool there = false;
    ls_opening how = {.c = c, .images = &images.way};
    ls_opened o = {0}, held = {0};
    ls_columns_wanted columns;
    ls_source_options options = ls_opening_options(&how);
    ls_csv_rules rules = {0};
    LS_TRY(ls_images_of(c, m, &images, e));
    LS_TRY(ls_data_record_read(other->dir, &r, &there, e));
    LS_TRY(ls_data_paths_find(c, r.directory, &how.dir, e));
    LS_TRY(ls_opening_read_columns(c, &columns, &options, e));
    LS_TRY(ls_opening_training(&how, &o, e));
    s->source = o.source;
    s->files[0] = o.files;
    s->ratings = ls_ratings_of(o.files);
    ls_status status = ls_opening_read_rules(c, &rules, &options, e);
    if (status == LS_OK) status = ls_ratings_hold_out(o.source, other->paths, &options, e);
    ls_csv_rules_free(&rules);
    if (status != LS_OK) return status;
    s->source = NULL; /* adapt() has it */
    LS_TRY(adapt(c, m, other->fields, ls_opened_train_name(c), &o, e));
    s->source = o.source;
    LS_TRY(ls_ratings_held_out(o.files, other->paths, &held.source, e));
    LS_TRY(adapt(c, m, other->fields, other->paths, &held, e));
    s->val = held.source;
    return LS_OK;
}

/* The columns of the fields that are not read: a prediction's labels. */
static void put_unread(const ls_model *m, const bool *read, const ls_numbering *numbering,
                       ls_buf *out) {
    for (int i = 0; read && i < m->ninputs; i++) {
        const char *field = m->inputs[i].name;
        if (read[i]) continue;
        ls_buf_printf(out, "%s\n", field);
        for (size_t k = 0; numbering && k < numbering->n; k++)
            if (strcmp(numbering->list[k].field, field) == 0)
                ls_buf_printf(out, "%s\n", numbering->list[k].name);
    }
}

static ls_status open_other(const ls_config *c, const ls_model *m, const ls_numbering *numbering,
                            const ls_other_samples *other, ls_samples *s, ls_error *e) {
    ls_images images = {0};
    ls_opening how = {.c = c, .images = &images.way, .numbering = numbering, .follows = true};
    ls_opened o = {.missing_p = other->missing_p};
    if (ls_config_has_ratings(c)) return open_other_ratings(c, m, other, s, e);
    LS_TRY(ls_images_of(c, m, &images, e));
    if (ls_config_has_clicks(c)) {
        LS_TRY(ls_ids_read(other->dir, &s->given, e));
        how.ids = &s->given;
    }
    ls_buf unread = {0};
    put_unread(m, other->fields, numbering, &unread);
    how.unread = unread.data;
    ls_status status = ls_opening_files(&how, other->paths, other->labels, &o, e);
    ls_buf_free(&unread);
    LS_TRY(status);
    LS_TRY(adapt(c, m, other->fields, other->paths, &o, e));
    s->source = s->val = o.source;
    s->files[0] = s->files[1] = o.files;
    return LS_OK;
}

ls_status ls_samples_open_other(const ls_config *c, const ls_model *m,
                                const ls_numbering *numbering, const ls_other_samples *other,
                                ls_samples **s_p, ls_error *e) {
    ls_samples *s = LS_NEW(ls_samples);
    ls_status status = open_other(c, m, numbering, other, s, e);
    if (status == LS_OK) {
        s->nval = s->val->count;
        *s_p = s;
    } else {
        ls_samples_close(s);
    }
    return status;
}

ls_samples *ls_samples_of(ls_source *source, uint64_t seed) {
    ls_samples *s = LS_NEW(ls_samples);
    s->source = source;
    s->files[0] = source;
    s->split = ls_split_nothing(source->count);
    s->order = (ls_order){.n = source->count, .seed = seed};
    return s;
}

void ls_samples_close(ls_samples *s) {
    if (!s) return;
    ls_source_close(s->source);
    if (s->val != s->source) ls_source_close(s->val);
    ls_buf_free(&s->record_text);
    ls_buf_free(&s->ids_text);
    ls_ids_free(&s->given);
    free(s);
}

ls_status ls_samples_open_files(const ls_config *c, bool fresh, ls_source **s_p, ls_error *e) {
    ls_opened o = {0};
    LS_TRY(ls_opening_unbuilt(c, fresh, &o, e));
    *s_p = o.source;
    return LS_OK;
}

/* ---- counting ---- */

static ls_status count_files(const ls_config *c, ls_data_record *r, ls_error *e) {
    ls_opened o = {0};
    LS_TRY(ls_opening_unbuilt(c, false, &o, e));
    r->training = ls_data_part_of(o.source);
    ls_status s = read_mix(c, o.files, &r->mix, e);
    ls_source_close(o.source);
    return s;
}

ls_status ls_samples_count(const ls_config *c, uint64_t *n_p, ls_error *e) {
    ls_data_record r = {0};
    ls_own_source own = {0};
    ls_order order;
    if (ls_program_has_data()) {
        LS_TRY(ls_program_open_data(c, &own, e));
        r.training.samples = own.count;
    } else {
        LS_TRY(count_files(c, &r, e));
    }
    LS_TRY(ls_samples_order(c, &r, &order, e));
    *n_p = order.n;
    return LS_OK;
}

/* ---- the record ---- */

/* With data.order auto the files decide. */
static ls_status check_order(const ls_config *c, ls_error *e) {
    static const char needs[] = "data.order: blocks, or files of records";
    LS_TRY(ls_config_refuse_written(c, "data.block", needs, e));
    return ls_config_refuse_written(c, "data.window", needs, e);
}

ls_status ls_samples_order(const ls_config *c, const ls_data_record *r, ls_order *o_p,
                           ls_error *e) {
    ls_split s = ls_split_nothing(r->training.samples);
    if (!r->training.is_whole) LS_TRY(ls_opened_split(c, r->training.samples, &s, e));
    ls_mix m = mix_of_training(&r->mix, &s);
    *o_p = (ls_order){.n = m.nparts ? ls_mix_count(&m) : s.ntrain, .seed = (uint64_t)c->train.seed};
    if (o_p->n == 0)
        return ls_fail(e, LS_EINVAL,
                       "data.mix: an epoch has no sample with these weights; raise one");
    bool blocks =
        c->data.order == LS_ORDER_AUTO ? r->training.in_records : c->data.order == LS_ORDER_BLOCKS;
    if (!blocks) return check_order(c, e);
    o_p->block = (uint64_t)c->data.block;
    o_p->window = (uint64_t)c->data.window;
    return LS_OK;
}

/* key, paths: that name the files of the part. */
static ls_status compare(const ls_data_part *has, const ls_data_part *was, const char *key,
                         const char *paths, const char *dir, ls_error *e) {
    char a[LS_HASH_TEXT], b[LS_HASH_TEXT], count[64] = "";
    if (has->samples == was->samples && ls_hash_same(has->hash, was->hash)) return LS_OK;
    if (!was->samples)
        return ls_fail(e, LS_EINVAL,
                       "%s: this run holds out a part of its training files for validation, and "
                       "has no files of its own for it: leave %s out, or begin a new run",
                       key, key);
    if (!has->samples)
        return ls_fail(e, LS_EINVAL,
                       "%s is not set, but this run has files of its own for validation, of %llu "
                       "samples: set it, or begin a new run",
                       key, (unsigned long long)was->samples);
    ls_hash_text(has->hash, a);
    ls_hash_text(was->hash, b);
    if (has->samples != was->samples)
        snprintf(count, sizeof count, "%llu samples, not %llu; ", (unsigned long long)has->samples,
                 (unsigned long long)was->samples);
    char *name = ls_opened_name(paths);
    ls_status s = ls_fail(e, LS_EINVAL,
                          "%.120s: is not the data that this run was trained with (%shash %s, "
                          "%.120s/" LS_DATA_RECORD
                          " has %s); restore the files, name them with --set %s=FILE, or begin a "
                          "new run",
                          *name ? name : key, count, a, dir, b, key);
    free(name);
    return s;
}

static ls_status compare_mix(const ls_mix *has, const ls_mix *was, ls_error *e) {
    if (has->nparts != was->nparts)
        return ls_fail(
            e, LS_EINVAL,
            "data.mix has %d sources, but the run began with %d; resuming would not give "
            "the bits of a single run: change it back, or begin a new run",
            has->nparts, was->nparts);
    for (int k = 0; k < has->nparts; k++)
        if (has->weights[k] != was->weights[k])
            return ls_fail(
                e, LS_EINVAL,
                "data.mix: source %d has weight %g, but the run began with %g; resuming "
                "would not give the bits of a single run: change it back, or begin a new "
                "run",
                k + 1, has->weights[k], was->weights[k]);
    return LS_OK;
}

/* The same files may be read in another way: by another version, or with another key. */
static ls_status compare_numbering(const ls_samples *s, const char *dir, ls_error *e) {
    static const ls_numbering none;
    ls_numbering was = {0};
    const ls_numbering *now = s->source->numbering ? s->source->numbering : &none;
    LS_TRY(ls_data_record_numbering(dir, &was, e));
    bool same = ls_numbering_same(now, &was);
    ls_numbering_free(&was);
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s/" LS_DATA_RECORD
                   ": texts of the data have other numbers there, or other columns are texts; "
                   "restore the file (each checkpoint has a copy), or begin a new run",
                   dir);
}

ls_status ls_samples_check(const ls_samples *s, const ls_config *c, const ls_data_record *r,
                           const char *dir, ls_error *e) {
    LS_TRY(compare_mix(&s->record.mix, &r->mix, e));
    LS_TRY(compare(&s->record.training, &r->training, *c->data.mix ? "data.mix" : "data.path",
                   ls_opened_train_name(c), dir, e));
    LS_TRY(
        compare(&s->record.validation, &r->validation, "data.val_path", c->data.val_path, dir, e));
    return r->has_numbering ? compare_numbering(s, dir, e) : LS_OK;
}

/* ---- reading ---- */

ls_status ls_samples_train(const void *samples, const ls_draw *d, size_t nbytes, void *sample,
                           ls_error *e) {
    const ls_samples *s = samples;
    (void)nbytes;
    uint64_t i = s->mix.nparts ? ls_mix_at(&s->mix, &s->order, d->epoch, d->sample) : d->sample;
    return ls_source_draw(s->source, ls_split_train(&s->split, i), d, sample, e);
}

uint64_t ls_samples_val_at(const ls_samples *s, uint64_t i, const ls_source **source_p) {
    *source_p = s->val ? s->val : s->source;
    return s->val ? i : ls_split_val(&s->split, i);
}

ls_status ls_samples_val(const ls_samples *s, uint64_t i, void *sample, ls_error *e) {
    const ls_source *from = NULL;
    uint64_t at = ls_samples_val_at(s, i, &from);
    return from->read(from, at, sample, e);
}

ls_record_at ls_samples_record(const ls_samples *s, uint64_t i) {
    const ls_source *from = NULL;
    uint64_t at = ls_samples_val_at(s, i, &from);
    return ls_source_record(from, at);
}

/* Some parts of a mixture may have names and others not. */
bool ls_samples_have_names(const ls_samples *s) {
    ls_buf name = {0};
    for (uint64_t i = 0; i < s->nval && !name.len; i++) ls_samples_put_name(s, i, &name);
    bool have = name.len > 0;
    ls_buf_free(&name);
    return have;
}

void ls_samples_put_name(const ls_samples *s, uint64_t i, ls_buf *b) {
    const ls_source *from = NULL;
    uint64_t at = ls_samples_val_at(s, i, &from);
    ls_source_put_name(from, at, b);
}

ls_status ls_samples_verify(const ls_samples *s, ls_error *e) {
    LS_TRY(ls_source_verify(s->files[0], e));
    return s->files[1] ? ls_source_verify(s->files[1], e) : LS_OK;
}

void ls_samples_describe(const ls_samples *s, ls_buf *b) {
    uint64_t n = s->files[0]->damage.n + (s->files[1] ? s->files[1]->damage.n : 0);
    for (int i = 0; i < s->source->nfields; i++) {
        const ls_field *f = &s->source->fields[i];
        ls_buf_printf(b, "%s", i ? ", " : "");
        ls_buf_escape(b, LS_ESCAPE_LINE, f->name, strlen(f->name));
        ls_buf_printf(b, " ");
        ls_field_put_shape(f, b);
    }
    if (n > 0)
        ls_buf_printf(b, " (%llu damaged record%s left out)", (unsigned long long)n,
                      n == 1 ? "" : "s");
}
