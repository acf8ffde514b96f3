/* opened.c - see opened.h. */
#include "dataset/opened.h"

#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "config/needs.h"
#include "dataset/base_numbering.h"
#include "dataset/images.h"
#include "dataset/mixture.h"
#include "networks/own_source.h"
#include "networks/program_model.h"
#include "source/fetch.h"
#include "source/formats/open.h"
#include "source/images/augmented.h"
#include "source/images/fitted.h"

char *ls_opened_name(const char *paths) {
    if (ls_program_has_data() && !*paths) return ls_strdup("the program's data");
    return ls_format("%.*s", (int)strcspn(paths, "\n"), paths);
}

/* Notes an open source, with the changes of data.augment; closes it if these fail. */
static ls_status add_changes(const ls_config *c, const char *paths, ls_source *from, ls_opened *o_p,
                             ls_error *e) {
    ls_augment a;
    o_p->files = o_p->source = from;
    if (!*c->data.augment) return LS_OK;
    ls_status s = ls_augment_read(c->data.augment, &a, e);
    if (s != LS_OK) {
        ls_source_close(from);
        return s;
    }
    char *name = ls_opened_name(paths);
    s = ls_augmented_open(from, &a, name, &o_p->source, e);
    free(name);
    return s;
}

ls_status ls_opening_own(const ls_opening *how, const ls_model *m, ls_opened *o_p, ls_error *e) {
    ls_source *s = NULL;
    LS_TRY(ls_own_source_open(how->c, m, &s, e));
    LS_TRY(ls_fitted_open(s, how->images, "the program's data", &s, e));
    return add_changes(how->c, "", s, o_p, e);
}

ls_source_options ls_opening_options(const ls_opening *how) {
    const ls_config *c = how->c;
    return (ls_source_options){.format = ls_config_format(c),
                               .cache = *c->data.cache ? c->data.cache : NULL,
                               .skip_damaged = c->data.damaged == LS_DAMAGED_SKIP,
                               .missing = c->data.missing,
                               .images = how->images,
                               .window = c->model.context,
                               .pixels_nbytes = (uint64_t)(c->data.cache_gb * 1e9),
                               .fresh = how->fresh};
}

ls_status ls_opening_read_rules(const ls_config *c, ls_csv_rules *r_p, ls_source_options *o,
                                ls_error *e) {
    const ls_config_tree *csv = &c->data.csv, *missing = &c->data.missing_by;
    ls_csv_rules r = ls_csv_rules_of(c->data.columns, c->data.na);
    *r_p = (ls_csv_rules){0};
    ls_status s = ls_csv_rules_read_csv(csv->text, csv->file, csv->line, &r, e);
    if (s == LS_OK)
        s = ls_csv_rules_read_missing(missing->text, missing->file, missing->line, &r, e);
    if (s != LS_OK) {
        ls_csv_rules_free(&r);
        return s;
    }
    *r_p = r;
    if (*csv->text || *missing->text || r.columns || r.na) o->csv = r_p;
    return LS_OK;
}

ls_status ls_opening_read_columns(const ls_config *c, ls_columns_wanted *w, ls_source_options *o,
                                  ls_error *e) {
    const ls_config_tree *t = &c->data.ratings, *u = &c->data.clicks;
    if (ls_config_has_ratings(c)) {
        o->ratings = &w->ratings;
        LS_TRY(ls_ratings_read(t->text, t->file, t->line, c->data.val_fraction, &w->ratings, e));
        if (!w->ratings.leave_one_out) return LS_OK;
        return ls_config_refuse_written(c, "data.val_fraction", "split: ratio in data.ratings", e);
    }
    if (!ls_config_has_clicks(c)) return LS_OK;
    o->clicks = &w->clicks;
    return ls_clicks_read(u->text, u->file, u->line, &w->clicks, e);
}

static void put_texts(const ls_yaml_node *n, ls_buf *out) {
    if (n->kind == LS_YAML_TEXT) ls_buf_printf(out, "%s\n", n->text);
    for (int i = 0; i < n->nitems; i++) put_texts(n->items[i], out);
}

static void put_keys(const ls_yaml_node *n, ls_buf *out) {
    for (int i = 0; i < n->nitems; i++)
        if (n->items[i]->key) ls_buf_printf(out, "%s\n", n->items[i]->key);
}

/* A tree that can't be read has no names; the code that needs it reports what is wrong. */
static void put_tree(const ls_config_tree *t, void (*put)(const ls_yaml_node *, ls_buf *),
                     ls_buf *out) {
    ls_yaml_node *root = NULL;
    ls_error e;
    if (!*t->text || ls_yaml_parse_tree(t->text, t->file, t->line, &root, &e) != LS_OK) return;
    put(root, out);
    ls_yaml_node_free(root);
}

/* Appends each name that may be a field's, one a line: the keys of model.input,
 * model.sample_weight, and all texts of model.loss, model.metrics and model.layers, some of which
 * are other words. */
static void put_mentioned(const ls_config *c, ls_buf *out) {
    put_tree(&c->model.input, put_keys, out);
    put_tree(&c->model.loss, put_texts, out);
    put_tree(&c->model.metrics, put_texts, out);
    put_tree(&c->model.list, put_texts, out);
    if (*c->model.sample_weight) ls_buf_printf(out, "%s\n", c->model.sample_weight);
}

ls_status ls_opening_files(const ls_opening *how, const char *paths, const char *labels,
                           ls_opened *o_p, ls_error *e) {
    ls_source_options o = ls_opening_options(how);
    char *from = ls_paths_from(paths, how->dir), *of = ls_paths_from(labels, how->dir);
    ls_columns_wanted columns;
    ls_source *s = NULL;
    if (*of) o.labels = of;
    o.ids = how->ids;
    o.follows = how->follows;
    o.unread = how->unread;
    ls_csv_rules rules = {0};
    ls_status status = ls_opening_read_columns(how->c, &columns, &o, e);
    if (status == LS_OK) status = ls_opening_read_rules(how->c, &rules, &o, e);
    ls_buf named = {0};
    put_mentioned(how->c, &named);
    o.named = named.data;
    if (status == LS_OK) status = ls_source_open(from, &o, &s, e);
    ls_buf_free(&named);
    char *name = ls_opened_name(from);
    if (status == LS_OK) {
        status = how->follows ? ls_source_follow(s, how->numbering, name, e)
                              : ls_base_numbering_follow(s, how->base, name, e);
        if (status != LS_OK) ls_source_close(s);
    }
    if (status == LS_OK) status = ls_fitted_open(s, how->images, name, &s, e);
    free(name);
    free(from);
    free(of);
    ls_csv_rules_free(&rules);
    return status == LS_OK ? add_changes(how->c, paths, s, o_p, e) : status;
}

static ls_status open_mixture(const ls_opening *how, ls_opened *o_p, ls_error *e) {
    ls_source_options o = ls_opening_options(how);
    ls_mixture m;
    ls_source *s = NULL;
    ls_csv_rules rules = {0};
    LS_TRY(ls_mixture_read(how->c->data.mix, &m, e));
    ls_status status = ls_opening_read_rules(how->c, &rules, &o, e);
    ls_buf named = {0};
    put_mentioned(how->c, &named);
    o.named = named.data;
    if (status == LS_OK) status = ls_mixture_open(&m, how->dir, how->base, &o, &s, e);
    ls_buf_free(&named);
    ls_mixture_free(&m);
    ls_csv_rules_free(&rules);
    return status == LS_OK ? add_changes(how->c, "data.mix", s, o_p, e) : status;
}

ls_status ls_opening_training(const ls_opening *how, ls_opened *o_p, ls_error *e) {
    const ls_config *c = how->c;
    return *c->data.mix ? open_mixture(how, o_p, e)
                        : ls_opening_files(how, c->data.path, c->data.labels, o_p, e);
}

ls_status ls_opening_unbuilt(const ls_config *c, bool fresh, ls_opened *o_p, ls_error *e) {
    ls_images images = {0};
    LS_TRY(ls_images_of(c, NULL, &images, e));
    return ls_opening_training(&(ls_opening){.c = c, .images = &images.way, .fresh = fresh}, o_p,
                               e);
}

/* ---- the training part ---- */

const char *ls_opened_train_name(const ls_config *c) {
    return *c->data.mix ? "data.mix" : c->data.path;
}

ls_status ls_opened_split(const ls_config *c, uint64_t n, ls_split *s_p, ls_error *e) {
    char *name = ls_opened_name(ls_opened_train_name(c));
    ls_status s = LS_OK;
    if (*c->data.val_path || ls_config_has_ratings(c))
        *s_p = ls_split_nothing(n);
    else if (c->data.folds)
        s = ls_split_by_folds(n, (uint64_t)c->data.folds, (uint64_t)c->data.fold, name, s_p, e);
    else
        s = ls_split_by_fraction(n, c->data.val_fraction, name, s_p, e);
    free(name);
    return s;
}
