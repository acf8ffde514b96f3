/* resolve.c - what a config leaves open of its model, and the data decide; see network.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/escape.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/plural.h"
#include "networks/fields.h"
#include "networks/list.h"
#include "networks/losses.h"
#include "networks/model_metrics.h"
#include "networks/network.h"
#include "networks/pixels.h"
#include "networks/recommenders.h"
#include "source/note.h"
#include "source/numbering.h"

enum { MOST_NAMES = 64 };
/* A model learns of each text of a column, if they are at most so many, and each stands for so many
 * samples at least. */
enum { MOST_TEXTS = 256, ROWS_OF_TEXT = 4 };

/* Names that a config has for fields, or for values. */
typedef struct named {
    const char *name;
    bool is_target, is_class, is_ids;
} named;

typedef struct resolver {
    ls_config *c;
    ls_losses losses;
    ls_metric_list metrics;
    ls_yaml_node *list; /* model.layers; NULL: the kind has none */
    named names[MOST_NAMES];
    int n;
    bool has_input; /* a layer reads a field that the config does not name */
    bool is_ids;    /* its numbers are ids */
} resolver;

/* ---- names ---- */

static void add_name(resolver *r, named x) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->names[i].name, x.name) == 0) {
            r->names[i].is_ids |= x.is_ids;
            return;
        }
    if (r->n < MOST_NAMES) r->names[r->n++] = x;
}

static void add_layer_name(void *arg, const char *name, bool is_ids) {
    add_name(arg, (named){.name = name, .is_ids = is_ids});
}

static void add_of(resolver *r, const ls_want *item) {
    if (item && item->of) add_name(r, (named){.name = item->of});
}

static const named *find_name(const resolver *r, const char *name) {
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->names[i].name, name) == 0) return &r->names[i];
    return NULL;
}

static ls_status open_resolver(resolver *r, ls_config *c, ls_error *e) {
    const ls_config_tree *t = &c->model.list;
    *r = (resolver){.c = c, .has_input = true};
    LS_TRY(ls_losses_read(c, &r->losses, e));
    LS_TRY(ls_metrics_read(c, &r->metrics, e));
    if (c->model.kind == LS_MODEL_LAYERS)
        LS_TRY(ls_yaml_parse_tree(t->text, t->file, t->line, &r->list, e));
    for (int i = 0; i < r->losses.n; i++)
        add_name(r, (named){r->losses.list[i].target, true, r->losses.list[i].of_classes, false});
    for (int i = 0; i < r->metrics.n; i++) {
        const ls_metric_wanted *m = &r->metrics.list[i];
        if (m->item->target) add_name(r, (named){m->item->target, true, m->of_classes, false});
    }
    if (*c->model.sample_weight)
        add_name(r, (named){.name = c->model.sample_weight, .is_target = true});
    for (int i = 0; i < r->losses.n; i++) add_of(r, r->losses.list[i].item);
    for (int i = 0; i < r->metrics.n; i++) add_of(r, r->metrics.list[i].item);
    const char *const *fields = ls_recommender_fields(c->model.kind);
    for (int i = 0; fields && i < LS_RECOMMENDER_FIELDS; i++)
        add_name(r, (named){.name = fields[i]});
    if (fields) r->has_input = false;
    if (r->list) r->has_input = ls_list_has_input(r->list, &r->is_ids);
    if (r->list) ls_list_names(r->list, add_layer_name, r);
    return LS_OK;
}

static void close_resolver(resolver *r) {
    ls_losses_free(&r->losses);
    ls_metrics_free(&r->metrics);
    ls_yaml_node_free(r->list);
}

/* ---- fields ---- */

/* The type that a model has for a field: bytes stay bytes, and other numbers become floats. */
static ls_field model_field(const ls_field *f, bool is_whole) {
    ls_field g = *f;
    g.is_list = false;
    if (is_whole || g.ids)
        g.type = LS_I32;
    else if (g.type != LS_U8)
        g.type = LS_F32;
    return g;
}

/* A column that is named as a class, and is none; NULL: there is none. */
static const ls_numbered *find_unfit(const ls_source *s) {
    static const char *const names[] = {"label", "class", "target"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; s->numbering && i < s->numbering->n; i++)
            if (strcasecmp(s->numbering->list[i].name, names[k]) == 0)
                return &s->numbering->list[i];
    return NULL;
}

/* Where a field that a source lacks comes from, in its format. */
static const char *advise_field(const ls_source *s, const char *name) {
    const char *format = s->format ? s->format : "";
    if (strcmp(name, "rating") == 0 && strcmp(format, "ratings") == 0)
        return "name its column in data.ratings (rating: COLUMN), or ";
    if (strcmp(name, "label") != 0) return "";
    if (strcmp(format, "images") == 0)
        return "put the images of each class into a directory of their own "
               "(DIR/CLASS/NAME.jpg), or ";
    if (strcmp(format, "idx") == 0 || strcmp(format, "npy") == 0)
        return "name the file of labels by data.labels, or ";
    return "";
}

static ls_status fail_missing(const ls_source *s, const char *name, ls_error *e) {
    const ls_numbered *unfit = find_unfit(s);
    if (unfit && strcmp(name, "label") == 0)
        return ls_fail(e, LS_EINVAL,
                       "data.path: '%.60s' has no classes, which the loss needs: not all of its "
                       "values are single whole numbers from 0 to 2147483647; for amounts set "
                       "model.loss to {mean_squared_error: {target: %s}}",
                       unfit->name, unfit->field);
    ls_buf all = {0}, kinds = {0};
    const char *meant = NULL;
    for (int i = 0; i < s->nfields; i++) {
        ls_buf_printf(&all, "%s%s", i ? ", " : "", s->fields[i].name);
        if (ls_is_near(name, s->fields[i].name)) meant = s->fields[i].name;
    }
    ls_losses_put_kinds(&kinds);
    ls_status status = ls_fail(
        e, LS_EINVAL,
        "data.path: no field '%s', which the loss needs%s%.60s%s; the fields are %.160s: %sset "
        "model.loss to {KIND: {target: FIELD}}, where KIND is %s",
        name, meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "", all.data,
        advise_field(s, name), kinds.data);
    ls_buf_free(&all);
    ls_buf_free(&kinds);
    return status;
}

/* The texts of this field; NULL: it has none. */
static const ls_numbered *texts_of(const ls_source *s, const char *field) {
    for (size_t i = 0; s->numbering && i < s->numbering->n; i++) {
        const ls_numbered *c = &s->numbering->list[i];
        if (c->text && c->in.n > 0 && strcmp(c->field, field) == 0) return c;
    }
    return NULL;
}

/* An amount is no code of a text, which texts of its kind, such as $1,200, have become. */
static ls_status refuse_texts(const char *target, const ls_numbered *texts, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "data.path: '%s' has texts, such as '%.40s', and mean_squared_error compares "
                   "with amounts: write numbers, or for classes set model.loss to {cross_entropy: "
                   "{target: '%s'}}",
                   target, texts->in.names[0], target);
}

/* Each target of a loss must be among the data's fields, unless it is a value of the model. */
static ls_status check_targets(const resolver *r, const ls_source *s, ls_error *e) {
    for (int i = 0; i < r->losses.n; i++) {
        const ls_loss_wanted *loss = &r->losses.list[i];
        const ls_numbered *texts = texts_of(s, loss->target);
        if (!r->list && !ls_source_field(s, loss->target)) return fail_missing(s, loss->target, e);
        if (texts && !texts->joined && ls_loss_has_scale(loss))
            return refuse_texts(loss->target, texts, e);
    }
    return LS_OK;
}

/* Are there so few texts that a model can learn of each? */
static bool are_few(const ls_numbered *texts, const ls_source *s) {
    return texts->in.n <= MOST_TEXTS && (uint64_t)texts->in.n * ROWS_OF_TEXT <= s->count;
}

/* An MLP has a row of numbers for each text: they become ids. */
static void set_texts(const resolver *r, const ls_source *s, ls_field *f) {
    const ls_numbered *texts = texts_of(s, f->name);
    if (r->c->model.kind != LS_MODEL_MLP || find_name(r, f->name) || !texts) return;
    if (!are_few(texts, s)) return;
    f->type = LS_I32;
    f->ids = texts->in.n;
}

/* Texts that the model reads as if they were amounts. */
static void note_texts(const ls_source *s, const ls_fields *f) {
    ls_buf b = {0};
    for (int i = 0; i < f->n; i++) {
        const ls_numbered *c = texts_of(s, f->list[i].name);
        if (!c || f->list[i].type != LS_F32) continue;
        ls_buf_printf(&b, "%s'", b.len ? ", " : "");
        ls_buf_escape(&b, LS_ESCAPE_LINE, c->name, strlen(c->name));
        ls_buf_printf(&b, "' (%d text%s) as 0 to %d", c->in.n, ls_plural(c->in.n), c->in.n - 1);
    }
    if (b.len)
        ls_note(
            "data.path: columns of texts are read as numbers, in the order of their bytes: %s; an "
            "embedding often learns more from them (docs/guide/data.md)",
            b.data);
    ls_buf_free(&b);
}

static ls_status choose_fields(resolver *r, const ls_source *s, ls_error *e) {
    ls_fields f = {0};
    LS_TRY(check_targets(r, s, e));
    for (int i = 0; i < s->nfields; i++) {
        const ls_field *field = &s->fields[i];
        const named *name = find_name(r, field->name);
        bool can_read = !field->is_list || r->is_ids; /* only embeddings read lists */
        bool is_input = r->has_input && !name && can_read && strcmp(field->name, "label") != 0;
        if (!name && !is_input) continue;
        bool is_whole = name ? (name->is_target && name->is_class) || name->is_ids : r->is_ids;
        f.list[f.n] = model_field(field, is_whole);
        set_texts(r, s, &f.list[f.n++]);
    }
    if (f.n == 0) return fail_missing(s, r->losses.list[0].target, e);
    note_texts(s, &f);
    ls_fields_write(&f, &r->c->model.input);
    return LS_OK;
}

/* ---- classes ---- */

/* The label that a loss ignores beside negative ones; INT64_MAX: none. */
static int64_t ignored_by(const ls_loss_wanted *loss) {
    const ls_yaml_node *n = NULL;
    if (loss->item && loss->item->options) n = ls_yaml_node_find(loss->item->options, "ignore");
    return n && n->kind == LS_YAML_TEXT ? strtol(n->text, NULL, 10) : INT64_MAX;
}

/* The labels of all samples. */
typedef struct labels {
    int32_t most;
    uint64_t n, nbelow; /* of them below 0 */
    uint64_t nclasses;  /* numbers that occur; of those beyond the bits at most one is counted */
    uint8_t *bits;      /* a bit for each of the first BITS numbers that occurs */
} labels;

enum { BITS = 1 << 24 };

static void add_label(labels *l, int32_t x) {
    if (x < 0) {
        l->nbelow++;
        return;
    }
    size_t at = x < BITS ? (size_t)x : BITS - 1;
    uint8_t bit = (uint8_t)(1 << at % 8);
    l->nclasses += !(l->bits[at / 8] & bit);
    l->bits[at / 8] |= bit;
    if (x > l->most) l->most = x;
    l->n++;
}

/* A class, of a field of i32 or of whole numbers as f32, which whole numbers of a table are. */
static int32_t label_in(const ls_field *f, const char *sample) {
    int32_t x = 0;
    float real = 0;
    memcpy(&x, sample + f->offset, sizeof x);
    memcpy(&real, sample + f->offset, sizeof real);
    return f->type == LS_F32 ? (int32_t)real : x;
}

static void note_single(const char *target, const char *class) {
    ls_note("data.path: '%s' is '%s' in all samples: there is nothing to learn", target, class);
}

/* What the labels show is often not what was meant. */
static void note_labels(const labels *l, const char *target) {
    unsigned long long n = l->n, below = l->nbelow, nclasses = l->nclasses;
    long long classes = (long long)l->most + 1;
    if (below && n)
        ls_note(
            "data.path: '%s' is below 0 in %llu of %llu samples, which have no loss; if they are "
            "a class, of a CSV file data.csv: {texts: [NAME]} numbers the classes that occur",
            target, below, below + n);
    if (nclasses == 1)
        ls_note("data.path: '%s' is %lld in all samples: there is nothing to learn", target,
                classes - 1);
    else if (classes > 16 && (uint64_t)classes > 4 * l->nclasses)
        ls_note(
            "data.path: '%s' has numbers up to %lld, so the model has %lld classes, of which %llu "
            "occur; of a CSV file data.csv: {texts: [NAME]} numbers those that occur; if it is an "
            "amount, set model.loss to {mean_squared_error: {target: NAME}}",
            target, classes - 1, classes, nclasses);
}

static ls_status fail_class(const char *target, ls_error *e) {
    return ls_fail(
        e, LS_EINVAL,
        "data.path: field '%s' has numbers that are no classes (whole numbers from 0); for "
        "a number set model.loss to {mean_squared_error: {target: '%s'}}",
        target, target);
}

/* One more than the largest class of a label without names. */
static ls_status count_classes(ls_config *c, const ls_source *s, const ls_loss_wanted *loss,
                               ls_error *e) {
    const char *target = loss->target;
    const int64_t ignored = ignored_by(loss);
    const ls_field *f = ls_source_field(s, target);
    if (!f) return fail_missing(s, target, e);
    bool whole = f->type == LS_I32 || (f->type == LS_F32 && f->is_whole && f->ndims == 0);
    if (!whole || f->ndims > 1) return fail_class(target, e);
    labels l = {.most = -1, .bits = ls_alloc(BITS / 8)};
    char *sample = ls_alloc(s->nbytes);
    ls_status status = LS_OK;
    for (uint64_t i = 0; status == LS_OK && i < s->count; i++) {
        status = s->read(s, i, sample, e);
        int32_t x = label_in(f, sample);
        if (status == LS_OK && x != ignored) add_label(&l, x);
    }
    free(sample);
    free(l.bits);
    LS_TRY(status);
    if (l.most < 0) return ls_fail(e, LS_EINVAL, "data.path: field '%s' has no classes", target);
    const ls_numbered *texts = texts_of(s, target);
    if (texts && texts->in.n == 1) note_single(target, texts->in.names[0]);
    if (f->ndims == 0 && !texts) note_labels(&l, target);
    c->model.classes = (int64_t)l.most + 1;
    return LS_OK;
}

/* Sets model.classes to the number of classes of the loss's target, if the loss needs classes. A
 * list of layers with several losses declares its own numbers of logits. */
static ls_status choose_classes(resolver *r, const ls_source *s, ls_error *e) {
    const ls_loss_wanted *loss = &r->losses.list[0];
    if (r->losses.n > 1 && r->list) return LS_OK;
    if (!loss->of_classes || r->c->model.classes) return LS_OK;
    if (!s->classes || strcmp(loss->target, "label") != 0) return count_classes(r->c, s, loss, e);
    r->c->model.classes = s->nclasses;
    if (s->nclasses == 1) note_single(loss->target, s->classes[0]);
    return LS_OK;
}

/* ---- all ---- */

bool ls_network_is_open(const ls_config *c) {
    ls_losses losses;
    if (ls_config_has_tokens(c) || c->model.kind == LS_MODEL_PROGRAM) return false;
    if (!*c->model.input.text || ls_pixels_are_open(c)) return true;
    if (c->model.kind == LS_MODEL_LAYERS || c->model.classes) return false;
    bool is_open = ls_losses_read(c, &losses, NULL) == LS_OK && losses.list[0].of_classes;
    ls_losses_free(&losses);
    return is_open;
}

ls_status ls_network_resolve(ls_config *c, const ls_source *s, ls_error *e) {
    resolver r;
    ls_status status = open_resolver(&r, c, e);
    if (status == LS_OK && !*c->model.input.text) status = choose_fields(&r, s, e);
    if (status == LS_OK) status = choose_classes(&r, s, e);
    close_resolver(&r);
    return status;
}
