/* features.c - see features.h. */
#include "source/features.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plural.h"
#include "source/note.h"
#include "tensor/dtype.h"

static const char joined_name[] = "x"; /* of the field of many numbers, and maybe of one of them */
static const char *const label_names[] = {"label", "class", "target"};
enum { NLABEL_NAMES = sizeof label_names / sizeof *label_names };

ls_feature *ls_features_add(ls_features *s, const char *name, size_t n) {
    s->list = ls_grow(s->list, s->n, sizeof *s->list);
    ls_feature *f = &s->list[s->n++];
    *f = (ls_feature){.name = ls_alloc(n + 1), .type = LS_F32, .count = 1, .whole = true};
    memcpy(f->name, name, n);
    bool fresh = false;
    uint32_t number = ls_words_add(&s->names, (const uint8_t *)name, n, &fresh);
    if (fresh) {
        s->of_name = ls_grow(s->of_name, number, sizeof *s->of_name);
        s->of_name[number] = s->n - 1;
    }
    return f;
}

void ls_feature_set_image(ls_feature *f, ls_image_shape s) {
    f->type = LS_U8;
    f->ndims = 3;
    f->dims[0] = s.height;
    f->dims[1] = s.width;
    f->dims[2] = s.channels;
    f->count = (size_t)s.height * (size_t)s.width * (size_t)s.channels;
}

ls_feature *ls_features_find(const ls_features *s, const char *name) {
    uint32_t number = ls_words_find(&s->names, (const uint8_t *)name, strlen(name));
    return number == UINT32_MAX ? NULL : &s->list[s->of_name[number]];
}

void ls_features_free(ls_features *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->list[i].name);
        free(s->list[i].taken);
        free(s->list[i].trouble);
        ls_classes_free(&s->list[i].classes);
    }
    free(s->list);
    ls_words_free(&s->names);
    free(s->of_name);
    ls_numbering_free(&s->numbering);
    *s = (ls_features){0};
}

static bool is_integer(ls_dtype t) { return ls_dtype_is_whole(t) && t != LS_BOOL; }

bool ls_feature_grow(ls_feature *f, size_t n) {
    bool can = f->type == LS_I32 || f->type == LS_I64 || (f->spelled && f->integers && f->whole);
    if (!can || f->has_least || f->ndims > 1 || n > LS_SAMPLE_NBYTES / sizeof(int64_t))
        return false;
    if (f->ndims == 0) f->dims[0] = 1;
    f->ndims = 1;
    f->is_list = true;
    if ((int64_t)n > f->dims[0]) f->dims[0] = (int64_t)n;
    f->count = (size_t)f->dims[0];
    return true;
}

static bool can_be_label(const ls_feature *f) {
    if (f->left_out || f->ndims) return false;
    return f->text || (f->whole && (f->spelled || is_integer(f->type)));
}

/* Returns the place of the name among those of labels, or NLABEL_NAMES. */
static int label_rank(const ls_feature *f) {
    int rank = f->own_name ? NLABEL_NAMES : 0;
    while (rank < NLABEL_NAMES && strcasecmp(f->name, label_names[rank]) != 0) rank++;
    return rank;
}

const ls_feature *ls_features_label(const ls_features *s) {
    const ls_feature *best = NULL;
    for (size_t i = 0; i < s->n && !s->no_label; i++) {
        const ls_feature *f = &s->list[i];
        if (!can_be_label(f) || label_rank(f) == NLABEL_NAMES) continue;
        if (!best || label_rank(f) < label_rank(best)) best = f;
    }
    return best;
}

static void decide_type(ls_feature *f, const ls_feature *label) {
    bool whole = f->whole && !f->nmissing && (f->integers || label_rank(f) < NLABEL_NAMES);
    f->as = f->type;
    if (f->spelled && f->integers && f->wide) f->as = LS_I64;
    if (f->text || f == label || (f->spelled && whole)) f->as = LS_I32;
}

/* Reasons that hold until another source is followed. */
static const char crowded[] = "there are too many fields beside it";
static const char unknown[] = "the training data do not have it";
static const char unchosen[] = "data.columns does not name it";
static const char unlike[] = "it is not as in the training data";
static const char counting[] =
    "it has no name and numbers the rows; data.columns reads it, if it names it";

static ls_status fail_choice(const ls_features *f, const char *name, size_t n, const char *what,
                             ls_error *e) {
    enum { SHOWN = 20 };
    ls_buf has = {0};
    for (size_t i = 0; i < f->n && i < SHOWN; i++)
        ls_buf_printf(&has, "%s'%.40s'", i ? ", " : "", f->list[i].name);
    ls_status s = ls_fail(e, LS_EINVAL, "%s: data.columns: there is no '%.*s'; it has %.300s%s",
                          what, (int)(n < 80 ? n : 80), name, has.len ? has.data : "nothing",
                          f->n > SHOWN ? ", ..." : "");
    ls_buf_free(&has);
    return s;
}

ls_status ls_features_choose(ls_features *f, const char *names, bool may_lack, const char *what,
                             ls_error *e) {
    if (!names || !*names) return LS_OK;
    for (size_t i = 0; i < f->n; i++) f->list[i].unchosen = true;
    for (size_t n = 0; *names; names += n, names += *names == '\n') {
        n = strcspn(names, "\n");
        bool found = false;
        for (size_t i = 0; i < f->n; i++) {
            if (strlen(f->list[i].name) != n || strncmp(f->list[i].name, names, n) != 0) continue;
            f->list[i].unchosen = f->list[i].row_numbers = false;
            found = true;
        }
        if (!found && !may_lack) return fail_choice(f, names, n, what, e);
    }
    return LS_OK;
}

/* names: one a line; NULL: none. */
static bool is_among(const char *name, const char *names) {
    size_t length = strlen(name);
    for (const char *at = names; at && *at; at += *at == '\n') {
        size_t n = strcspn(at, "\n");
        if (n == length && strncmp(at, name, n) == 0) return true;
        at += n;
    }
    return false;
}

void ls_features_pass_over(ls_features *f, const char *names) {
    for (size_t i = 0; i < f->n; i++)
        if (is_among(f->list[i].name, names)) f->list[i].unchosen = true;
}

/* Features that become no field are logged, so that nothing disappears silently. */
static ls_status leave_out(const ls_features *s, ls_feature *f, const char *what, ls_error *e) {
    if (f->unchosen) f->left_out = unchosen;
    if (f->unchosen) return LS_OK;
    if (!f->left_out && f->count == 0) f->left_out = "it has no values";
    if (f->is_list && f->dims[0] == 1 && label_rank(f) < NLABEL_NAMES)
        f->left_out = "some records have no value of it";
    if (f->text && f->classes.too_many) f->left_out = "it has too many different texts for classes";
    if (!f->left_out) return LS_OK;
    if (label_rank(f) < NLABEL_NAMES && !s->no_label)
        return ls_fail(e, LS_EINVAL, "%s: '%s' can't be a label: %s", what, f->name, f->left_out);
    if (!s->follows) ls_note("%s: '%s' is left out: %s", what, f->name, f->left_out);
    return LS_OK;
}

/* Does it stay a field where many are joined? So does what the model's config names, and a label
 * that has fractions. */
static bool is_single(const ls_features *s, const char *named, const ls_feature *f,
                      const ls_feature *label) {
    if (is_among(f->name, named) && strcmp(f->name, joined_name) != 0) return true;
    return !label && !s->no_label && label_rank(f) < NLABEL_NAMES;
}

/* Can this feature be a part of the field "x"? */
static bool can_join(const ls_feature *f, const ls_feature *label) {
    return !f->left_out && !f->single && f != label && !f->text && f->ndims == 0 &&
           (f->spelled || f->type == LS_F32);
}

static ls_status add_joined(ls_features *s, const ls_feature *label, ls_source *source,
                            const char *what, ls_error *e) {
    ls_field x = {.type = LS_F32, .ndims = 1};
    snprintf(x.name, sizeof x.name, "%s", joined_name);
    for (size_t i = 0; i < s->n; i++) x.dims[0] += can_join(&s->list[i], label);
    if (x.dims[0] == 0) return LS_OK;
    LS_TRY(ls_source_add_field(source, what, &x, e));
    size_t offset = source->fields[source->nfields - 1].offset, nrounded = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!can_join(&s->list[i], label)) continue;
        nrounded += s->list[i].as == LS_I64;
        s->list[i].as = LS_F32;
        s->list[i].offset = offset;
        offset += sizeof(float);
    }
    if (nrounded)
        ls_note("%s: %zu column%s of integers beyond 32 bits %s in 'x', which is f32: these are "
                "rounded",
                what, nrounded, ls_plural((int64_t)nrounded), nrounded == 1 ? "is" : "are");
    return LS_OK;
}

static ls_status add_field(ls_feature *f, const char *name, ls_source *source, const char *what,
                           ls_error *e) {
    ls_field field = {.type = f->as,
                      .ndims = f->ndims,
                      .is_list = f->is_list,
                      .is_whole = f->spelled && f->whole && !f->nmissing};
    if (strlen(name) >= sizeof field.name)
        return ls_fail(e, LS_EINVAL,
                       "%s: the name '%.60s...' has %zu bytes, at most %zu are "
                       "possible; shorten it",
                       what, name, strlen(name), sizeof field.name - 1);
    snprintf(field.name, sizeof field.name, "%s", name);
    memcpy(field.dims, f->dims, sizeof field.dims);
    for (int i = 0; i < source->nfields; i++)
        if (strcmp(source->fields[i].name, name) == 0)
            return ls_fail(e, LS_EINVAL, "%s: two fields are named '%s'; rename one", what, name);
    LS_TRY(ls_source_add_field(source, what, &field, e));
    f->offset = source->fields[source->nfields - 1].offset;
    return LS_OK;
}

/* The name of the field: a label that has fractions, or is no single number, must not be called
 * "label". */
static const char *field_name(const ls_feature *f, const ls_feature *label) {
    if (f == label) return label_names[0];
    return strcmp(f->name, label_names[0]) == 0 ? label_names[2] : f->name;
}

/* Data that have many fields stay readable: lists that find no place beside others become none. */
static ls_status leave_out_lists(ls_features *s, const ls_feature *label, bool join,
                                 const char *what, ls_error *e) {
    size_t nfields = 0, njoined = 0;
    for (size_t i = 0; i < s->n; i++) {
        const ls_feature *f = &s->list[i];
        bool joins = join && can_join(f, label);
        njoined += joins;
        nfields += !f->left_out && !f->is_list && !joins;
    }
    nfields += njoined > 0;
    for (size_t i = 0; i < s->n; i++) {
        ls_feature *f = &s->list[i];
        if (f->left_out || !f->is_list || nfields++ < LS_SOURCE_FIELDS) continue;
        f->left_out = crowded;
        LS_TRY(leave_out(s, f, what, e));
    }
    return LS_OK;
}

/* The label's classes. */
static void name_classes(const ls_features *s, ls_source *source) {
    source->numbering = &s->numbering;
    source->classes = NULL;
    source->nclasses = 0;
    for (size_t i = 0; i < s->numbering.n; i++) {
        const ls_numbered *c = &s->numbering.list[i];
        if (!c->text || strcmp(c->field, label_names[0]) != 0) continue;
        source->classes = c->in.names;
        source->nclasses = c->in.n;
    }
}

static void note_codes(ls_features *s, const ls_feature *label, bool join, ls_source *source) {
    ls_numbering_free(&s->numbering);
    for (size_t i = 0; i < s->n; i++) {
        const ls_feature *f = &s->list[i];
        if (f->left_out) continue;
        bool joined = join && can_join(f, label);
        ls_numbered *c =
            ls_numbering_add(&s->numbering, f->name, joined ? joined_name : field_name(f, label));
        c->joined = joined;
        c->text = f->text;
        c->fills = f->nvalues > 0;
        c->mean = f->mean;
        c->nvalues = f->nvalues;
        if (f->text) c->in = ls_classes_copy(&f->classes);
    }
    name_classes(s, source);
}

ls_status ls_features_finish(ls_features *s, const char *named, ls_source *source, const char *what,
                             ls_error *e) {
    s->nfields = source->nfields;
    s->nbytes = source->nbytes;
    size_t nfields = 0, nlists = 0;
    for (size_t i = 0; i < s->n; i++) {
        ls_feature *f = &s->list[i];
        bool is_named = is_among(f->name, named);
        f->own_name = is_named && strcmp(f->name, label_names[0]) != 0;
        if (f->row_numbers && !f->left_out && !is_named) f->left_out = counting;
        LS_TRY(leave_out(s, f, what, e));
        nfields += !s->list[i].left_out && !s->list[i].is_list;
        nlists += !s->list[i].left_out && s->list[i].is_list;
    }
    if (nfields + nlists == 0 && source->nfields == 0)
        return ls_fail(e, LS_EINVAL, "%s: no field can be read from it", what);
    const ls_feature *label = ls_features_label(s);
    for (size_t i = 0; i < s->n; i++) decide_type(&s->list[i], label);
    for (size_t i = 0; i < s->n; i++) s->list[i].single = is_single(s, named, &s->list[i], label);
    bool join = nfields > (s->most_fields ? s->most_fields : LS_FEATURES_APART);
    LS_TRY(leave_out_lists(s, label, join, what, e));
    if (join) LS_TRY(add_joined(s, label, source, what, e));
    for (size_t i = 0; i < s->n; i++) {
        ls_feature *f = &s->list[i];
        if (f->left_out || (join && can_join(f, label))) continue;
        LS_TRY(add_field(f, field_name(f, label), source, what, e));
    }
    note_codes(s, label, join, source);
    return LS_OK;
}

/* ---- as another source has decided ---- */

/* The label may be named class in one file, and target in another one. */
const ls_numbered *ls_features_numbered(const ls_features *s, const ls_numbering *numbering,
                                        size_t i) {
    const ls_numbered *c = ls_numbering_find(numbering, s->list[i].name, i);
    if (c || label_rank(&s->list[i]) == NLABEL_NAMES) return c;
    if (&s->list[i] != ls_features_label(s)) return NULL;
    for (size_t k = 0; k < numbering->n; k++)
        if (strcmp(numbering->list[k].field, label_names[0]) == 0 &&
            !ls_features_find(s, numbering->list[k].name))
            return &numbering->list[k];
    return NULL;
}

bool ls_features_knows(const ls_features *s, const ls_numbering *numbering, size_t i,
                       const char *text, size_t n) {
    const ls_feature *f = &s->list[i];
    const ls_numbered *c = ls_features_numbered(s, numbering, i);
    if (!f->text || !c || c->in.n == 0 || f == ls_features_label(s)) return true;
    return n <= LS_CLASS_NBYTES && ls_classes_find(&c->in, text, n) >= 0;
}

bool ls_features_have_unknown(const ls_features *s, const ls_numbering *numbering) {
    bool found = false;
    for (size_t i = 0; i < s->n; i++) {
        const ls_feature *f = &s->list[i];
        if (f->unchosen || !f->text) continue;
        found = found || f->classes.too_many;
        for (int k = 0; !found && k < f->classes.n; k++) {
            const char *text = f->classes.names[k];
            found = !ls_features_knows(s, numbering, i, text, strlen(text));
        }
    }
    return found;
}

static ls_status fail_unlike(const char *what, const ls_numbered *c, const char *why, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: '%s' %s; both need the same kind of values", what, c->name,
                   why);
}

/* Can the feature be what it is in the training data? */
static ls_status check_alike(ls_feature *f, const ls_numbered *c, const char *what, ls_error *e) {
    bool is_label = strcmp(c->field, label_names[0]) == 0;
    if (c->text && f->text && f->classes.too_many)
        return fail_unlike(what, c, "has too many texts, and fewer in the training data", e);
    if (f->left_out)
        return ls_fail(e, LS_EINVAL,
                       "%s: '%s' can't be read, but is a field of the training data: "
                       "%s",
                       what, c->name, f->left_out);
    if (c->text != f->text)
        return fail_unlike(what, c,
                           f->text ? "has texts, and numbers in the training data"
                                   : "has numbers, and texts in the training data",
                           e);
    if (is_label && !can_be_label(f))
        return fail_unlike(what, c, "has fractions, and whole numbers in the training data", e);
    if (f->nmissing && !c->fills)
        return ls_fail(e, LS_EINVAL,
                       "%s: '%s' lacks values, and the run has no mean for it (data.missing); set "
                       "drop, which leaves such samples out",
                       what, c->name);
    if (c->joined && !can_join(f, NULL))
        return fail_unlike(what, c, "has no single numbers, as it has in the training data", e);
    return LS_OK;
}

/* Sets the type of a feature, the numbers of its texts, and what stands for a missing value. */
static ls_status take_code(ls_feature *f, const ls_numbered *c, const char *what, ls_error *e) {
    LS_TRY(check_alike(f, c, what, e));
    decide_type(f, strcmp(c->field, label_names[0]) == 0 ? f : NULL);
    if (c->fills) {
        f->mean = c->mean;
        f->nvalues = c->nvalues ? c->nvalues : 1;
    }
    if (!c->text || c->in.n == 0) return LS_OK;
    LS_TRY(ls_classes_check(&f->classes, &c->in, what, c->name, e));
    ls_classes_free(&f->classes);
    f->classes = ls_classes_copy(&c->in);
    return LS_OK;
}

/* Code i and those after it which are joined with it. */
static size_t count_joined(const ls_numbering *c, size_t i) {
    size_t n = 0;
    for (; i < c->n; i++) n += c->list[i].joined;
    return n;
}

static ls_status follow_joined(ls_feature *f, const ls_numbering *numbering, size_t i,
                               ls_source *source, const char *what, ls_error *e) {
    const ls_numbered *c = &numbering->list[i];
    const ls_field *x = ls_source_field(source, c->field);
    size_t left = count_joined(numbering, i);
    LS_TRY(take_code(f, c, what, e));
    if (!x) {
        ls_field all = {.type = LS_F32, .ndims = 1, .dims = {(int64_t)left}};
        snprintf(all.name, sizeof all.name, "%s", c->field);
        LS_TRY(ls_source_add_field(source, what, &all, e));
        x = &source->fields[source->nfields - 1];
    }
    f->as = LS_F32;
    f->offset = x->offset + ((size_t)x->dims[0] - left) * sizeof(float);
    return LS_OK;
}

static ls_status add_trouble(ls_feature *f, const ls_numbered *c, const ls_error *why,
                             ls_source *source, ls_error *e) {
    ls_field field = {.type = LS_I32};
    free(f->trouble);
    field.trouble = f->trouble = ls_strdup(why->msg);
    f->left_out = unlike;
    snprintf(field.name, sizeof field.name, "%s", c->field);
    return ls_source_add_field(source, why->msg, &field, e);
}

/* f: the feature of code i; NULL: there is none. */
static ls_status follow_one(ls_feature *f, const ls_numbering *numbering, size_t i,
                            ls_source *source, const char *what, ls_error *e) {
    const ls_numbered *c = &numbering->list[i];
    ls_error why = {0};
    if (!f && c->joined)
        return ls_fail(e, LS_EINVAL,
                       "%s: has no '%s', which the training data have; add it, with the same name",
                       what, c->name);
    if (!f) return LS_OK; /* reading it will fail */
    if (c->joined) return follow_joined(f, numbering, i, source, what, e);
    if (take_code(f, c, what, &why) == LS_OK) return add_field(f, c->field, source, what, e);
    return add_trouble(f, c, &why, source, e);
}

/* The features of the numbering, which the caller frees; others are left out, and that is
 * logged. */
static ls_feature **find_features(ls_features *s, const ls_numbering *numbering, const char *what) {
    ls_feature **of = LS_NEW_ARRAY(ls_feature *, numbering->n);
    for (size_t i = 0; i < s->n; i++) {
        ls_feature *f = &s->list[i];
        if (f->left_out == crowded || f->left_out == unknown || f->left_out == unlike ||
            f->left_out == counting)
            f->left_out = NULL;
        const ls_numbered *c = ls_features_numbered(s, numbering, i);
        if (c) of[c - numbering->list] = f;
        if (c || f->unchosen || (f->left_out && !s->follows)) continue;
        if (!f->left_out) f->left_out = unknown;
        ls_note("%s: '%s' is left out: %s", what, f->name, f->left_out);
    }
    return of;
}

/* The numbering, with the texts of the features that have their own numbers. */
static ls_numbering codes_with_texts(const ls_numbering *numbering, ls_feature *const *of) {
    ls_numbering own = ls_numbering_copy(numbering);
    for (size_t i = 0; i < own.n; i++)
        if (own.list[i].text && own.list[i].in.n == 0 && of[i])
            own.list[i].in = ls_classes_copy(&of[i]->classes);
    return own;
}

ls_status ls_features_follow(ls_features *s, const ls_numbering *numbering, ls_source *source,
                             const char *what, ls_error *e) {
    ls_feature **of = find_features(s, numbering, what);
    ls_status status = LS_OK;
    source->nfields = s->nfields;
    source->nbytes = s->nbytes;
    for (size_t i = 0; status == LS_OK && i < numbering->n; i++)
        status = follow_one(of[i], numbering, i, source, what, e);
    if (status == LS_OK) {
        ls_numbering own = codes_with_texts(numbering, of);
        ls_numbering_free(&s->numbering);
        s->numbering = own;
        name_classes(s, source);
    }
    free(of);
    return status;
}

/* ---- index ---- */

static unsigned flags_of(const ls_feature *f) {
    return (unsigned)f->spelled | (unsigned)f->text << 1 | (unsigned)f->whole << 2 |
           (unsigned)f->integers << 3 | (unsigned)f->classes.too_many << 4 |
           (unsigned)(f->left_out != NULL) << 5 | (unsigned)f->is_list << 6 |
           (unsigned)f->wide << 7 | (unsigned)f->row_numbers << 8;
}

void ls_features_put(const ls_features *s, ls_buf *b) {
    ls_bytes_put_u64(b, s->n);
    for (size_t i = 0; i < s->n; i++) {
        const ls_feature *f = &s->list[i];
        ls_bytes_put_text(b, f->name);
        ls_bytes_put_u64(b, f->type);
        ls_bytes_put_array(b, f->dims, (size_t)f->ndims, sizeof *f->dims);
        ls_bytes_put_u64(b, flags_of(f));
        ls_bytes_put_text(b, f->left_out);
        ls_bytes_put_u64(b, f->nmissing);
        ls_bytes_put_u64(b, f->nvalues);
        ls_bytes_put(b, &f->mean, sizeof f->mean);
        ls_bytes_put_u64(b, (uint64_t)f->classes.n);
        for (int k = 0; k < f->classes.n; k++) ls_bytes_put_text(b, f->classes.names[k]);
    }
}

static void take_shape(ls_feature *f, ls_bytes *in) {
    size_t ndims = 0;
    f->type = (ls_dtype)ls_bytes_take_u64(in, LS_BOOL);
    int64_t *dims = ls_bytes_take_array(in, sizeof *dims, &ndims);
    if (ndims > LS_FIELD_DIMS) in->bad = true;
    for (size_t i = 0; i < ndims && !in->bad; i++) {
        if (dims[i] < 0 || (dims[i] && f->count > LS_SAMPLE_NBYTES / (uint64_t)dims[i])) {
            in->bad = true;
            break;
        }
        f->dims[f->ndims++] = dims[i];
        f->count *= (size_t)dims[i];
    }
    free(dims);
}

/* Names ascend, or a text would not be found. */
static void take_classes(ls_classes *c, bool too_many, ls_bytes *in) {
    int n = (int)ls_bytes_take_u64(in, LS_CLASSES_MOST);
    c->too_many = too_many;
    if (too_many && n) in->bad = true;
    for (int i = 0; i < n && !in->bad; i++) {
        c->names = ls_grow(c->names, (size_t)c->n, sizeof *c->names);
        c->names[c->n++] = ls_bytes_take_text(in, LS_CLASS_NBYTES);
        if (i && strcmp(c->names[i - 1], c->names[i]) >= 0) in->bad = true;
    }
}

static void take_feature(ls_feature *f, ls_bytes *in) {
    take_shape(f, in);
    unsigned flags = (unsigned)ls_bytes_take_u64(in, 511);
    f->spelled = flags & 1, f->text = flags & 2, f->whole = flags & 4, f->integers = flags & 8;
    f->taken = ls_bytes_take_text(in, 256);
    f->left_out = flags & 32 ? f->taken : NULL;
    f->nmissing = ls_bytes_take_u64(in, UINT64_MAX);
    f->nvalues = ls_bytes_take_u64(in, UINT64_MAX);
    ls_bytes_take(in, &f->mean, sizeof f->mean);
    if (!isfinite(f->mean)) in->bad = true;
    f->is_list = flags & 64;
    f->wide = flags & 128;
    f->row_numbers = flags & 256;
    take_classes(&f->classes, flags & 16, in);
    bool can_be_list = f->ndims == 1 && (f->type == LS_I32 || f->type == LS_I64 ||
                                         (f->spelled && f->integers && f->whole));
    if (!f->left_out && f->count == 0 && f->ndims != 1) in->bad = true;
    if (f->is_list && !can_be_list) in->bad = true;
    if (f->text && f->ndims) in->bad = true;
    if ((f->text || f->spelled) && f->type != LS_F32) in->bad = true;
    if (f->nmissing && (f->text || f->ndims)) in->bad = true;
}

void ls_features_take(ls_features *s, ls_bytes *in) {
    ls_features_free(s);
    uint64_t n = ls_bytes_take_u64(in, in->left);
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        char *name = ls_bytes_take_text(in, in->left);
        take_feature(ls_features_add(s, name, strlen(name)), in);
        free(name);
    }
}

/* ---- values ---- */

void ls_feature_store(const ls_feature *f, void *sample, size_t i, double value) {
    char *to = (char *)sample + f->offset + 4 * i;
    if (f->as == LS_I32) {
        int32_t whole = (int32_t)value;
        memcpy(to, &whole, sizeof whole);
    } else {
        float rounded = (float)value;
        memcpy(to, &rounded, sizeof rounded);
    }
}

void ls_feature_store_whole(const ls_feature *f, void *sample, size_t i, int64_t value) {
    if (f->as == LS_I64)
        memcpy((char *)sample + f->offset + i * sizeof value, &value, sizeof value);
    else
        ls_feature_store(f, sample, i, (double)value);
}

bool ls_feature_fits_i32(const ls_feature *f, const void *from) {
    if (!is_integer(f->type)) return false;
    int64_t v = ls_whole_at(f->type, from);
    return v >= INT32_MIN && v <= INT32_MAX;
}

void ls_feature_copy(const ls_feature *f, void *sample, const void *from, size_t n) {
    char *to = (char *)sample + f->offset;
    if (f->as == f->type) {
        if (n) memcpy(to, from, n * ls_dtype_size(f->type));
        if (f->is_list) ls_feature_end(f, sample, n);
    } else {
        int32_t v = (int32_t)ls_whole_at(f->type, from);
        memcpy(to, &v, sizeof v);
    }
}

void ls_feature_end(const ls_feature *f, void *sample, size_t n) {
    ls_field field = {
        .type = f->as, .offset = f->offset, .nbytes = f->count * ls_dtype_size(f->as)};
    ls_field_end(&field, sample, n);
}
