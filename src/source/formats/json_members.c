/* json_members.c - see json_members.h. */
#include "source/formats/json_members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "source/number.h"

/* Why a member becomes no field; the first one holds until an object has a value. */
static const char no_value[] = "it is null in every object";
static const char is_rare[] = "most objects have no value of it";
static const char lacks_texts[] = "some objects have no text in it";
static const char has_objects[] = "it has objects";
static const char no_shape[] = "its values have no shape that a field can have";
static const char has_texts[] = "its arrays have texts";

static const char is_unknown[] = "has a text that the training data do not have";
static const char no_number[] = "is null, or has null in an array, but numbers elsewhere";
static const char no_text[] = "is null, but has texts elsewhere";
static const char no_mean[] =
    "is null or missing, and only numbers that are no label have a mean; write a value, or set "
    "data.missing: {NAME: drop, \"*\": mean}";

static bool has_value(const ls_json *value) { return value && !ls_json_is_null(value); }

/* Is a value absent or null, or one of an array? */
static bool lacks(const ls_json *value) {
    if (!has_value(value)) return true;
    bool lacking = false;
    for (size_t i = 0; !lacking && ls_json_is_array(value) && i < ls_json_count(value); i++)
        lacking = lacks(ls_json_at(value, i));
    return lacking;
}

/* ---- shapes ---- */

static const ls_json *first_of(const ls_json *value) {
    while (ls_json_is_array(value) && ls_json_count(value)) value = ls_json_at(value, 0);
    return value;
}

/* Sets the shape of a member from its first value. */
static const char *set_shape(ls_feature *f, const ls_json *value) {
    const ls_json *inner = first_of(value);
    f->text = ls_json_text(value) != NULL;
    f->spelled = !f->text;
    f->integers = f->wide = true;
    f->left_out = NULL;
    if (!has_value(value)) f->left_out = no_value;
    if (ls_json_is_object(value)) f->left_out = has_objects;
    if (ls_json_is_array(value) && ls_json_is_object(inner))
        return "has objects, which are no samples; conversations are for data.format: chat";
    if (ls_json_is_array(value) && ls_json_text(inner)) f->left_out = has_texts;
    while (!f->left_out && ls_json_is_array(value)) {
        size_t n = ls_json_count(value);
        if (n == 0 && f->ndims) return "is an empty array";
        if (f->ndims == LS_FIELD_DIMS) return "is an array of too many dimensions";
        if (n > LS_SAMPLE_NBYTES / f->count) return "is too large";
        f->dims[f->ndims++] = (int64_t)n;
        f->count *= n;
        if (n == 0) return NULL;
        value = ls_json_at(value, 0);
    }
    return NULL;
}

/* ---- values ---- */

/* The values of one member, on their way to a sample or into what is known about the member. */
typedef struct values {
    ls_feature *learn;   /* NULL: known already */
    const ls_feature *f; /* its shape */
    bool whole_reals;
    bool sums;    /* `learn` gets the sum of the numbers as its mean, and how many they are */
    void *sample; /* NULL: values are only checked */
    size_t n;     /* values so far */
} values;

/* A number as an integer; false: it is none. */
static bool integer_of(const values *v, const ls_json *value, int64_t *whole_p) {
    const double most = 9007199254740992; /* beyond, reals are integers that were rounded */
    double x = 0;
    if (ls_json_integer(value, whole_p)) return true;
    if (ls_json_is_bool(value)) {
        *whole_p = ls_json_is_true(value);
        return true;
    }
    bool whole = ls_json_number(value, &x) && x == floor(x) && fabs(x) <= most;
    if (whole && v->whole_reals) *whole_p = (int64_t)x;
    return whole && v->whole_reals;
}

static const char *wrong_number(const ls_json *value) {
    if (ls_json_is_null(value)) return no_number;
    return "has no number where one is expected";
}

static const char *add_number(values *v, const ls_json *value) {
    double x = 0;
    int64_t whole = 0;
    bool integer = integer_of(v, value, &whole);
    if (integer)
        x = (double)whole;
    else if (!ls_json_number(value, &x))
        return wrong_number(value);
    else if (v->learn)
        v->learn->integers = false;
    if (!ls_number_is_f32(x)) return "has a number that no f32 can hold";
    if (v->learn) v->learn->whole = v->learn->whole && ls_number_is_i32(x);
    if (v->sums) {
        v->learn->mean += x;
        v->learn->nvalues++;
    }
    if (v->learn && x <= INT32_MIN) v->learn->has_least = true;
    if (v->sample && v->f->as == LS_I32 && !ls_number_is_i32(x)) return "has no integer";
    if (v->sample && v->f->as == LS_I64 && !integer) return "has no integer";
    if (v->sample && v->n == v->f->count) return "has more numbers than when the file was opened";
    if (v->sample && integer)
        ls_feature_store_whole(v->f, v->sample, v->n, whole);
    else if (v->sample)
        ls_feature_store(v->f, v->sample, v->n, x);
    v->n++;
    return NULL;
}

/* Numbers that a list may have: integers above the least i32, which ends a list. */
static bool has_ids(const ls_json *list) {
    for (size_t i = 0; i < ls_json_count(list); i++) {
        int64_t x = 0;
        const ls_json *value = ls_json_at(list, i);
        if (ls_json_is_bool(value) || !ls_json_integer(value, &x)) return false;
        if (x <= INT32_MIN || x > INT32_MAX) return false;
    }
    return true;
}

/* May a member be a list, whose array has another length than the first one? */
static bool can_be_list(const ls_feature *f, const ls_json *value) {
    return f->ndims == 1 && f->integers && f->whole && !f->has_least && has_ids(value);
}

/* Arrays are nested at most LS_FIELD_DIMS deep. */
static const char *add_values(values *v, const ls_json *value, int dim) {
    if (dim == v->f->ndims) return add_number(v, value);
    size_t n = (size_t)v->f->dims[dim];
    if (ls_json_is_null(value)) return wrong_number(value);
    if (!ls_json_is_array(value)) return "has another shape than in the first object";
    if (v->f->is_list || ls_json_count(value) != n) {
        if (!can_be_list(v->f, value))
            return v->f->is_list ? "is no list of integers, but is one in other objects"
                                 : "has another shape than in the first object, and only integers "
                                   "of 32 bits can be lists of several lengths";
        n = ls_json_count(value);
        if (v->learn && !ls_feature_grow(v->learn, n)) return "is too large";
        if (v->sample) ls_feature_end(v->f, v->sample, n < v->f->count ? n : v->f->count);
    }
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < n; i++) wrong = add_values(v, ls_json_at(value, i), dim + 1);
    return wrong;
}

static const char *add_text(values *v, const ls_json *value) {
    const char *text = ls_json_text(value);
    if (!text && ls_json_is_null(value)) return no_text;
    if (!text) return "is no text, but is one elsewhere";
    if (v->learn) ls_classes_add(&v->learn->classes, text, strlen(text));
    if (!v->sample) return NULL;
    int code = ls_classes_find(&v->f->classes, text, strlen(text));
    if (code < 0) return "has changed since the file was opened";
    ls_feature_store(v->f, v->sample, 0, code);
    return NULL;
}

static const char *add_value(values *v, const ls_json *value) {
    if (v->f->left_out == no_value)
        return has_value(value) ? "has a value, but is null in other objects" : NULL;
    if (v->f->left_out) return NULL;
    return v->f->text ? add_text(v, value) : add_values(v, value, 0);
}

/* ---- objects ---- */

static ls_json_wrong wrong_in(const char *name, const char *why) {
    return (ls_json_wrong){ls_strdup(name), why, .missing = false};
}

static ls_json_wrong start(ls_json_members *m, const ls_json *object) {
    const char *name = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(object, it, &name, &value));) {
        const char *why = set_shape(ls_features_add(&m->features, name, strlen(name)), value);
        if (why) return wrong_in(name, why);
    }
    return (ls_json_wrong){0};
}

/* Does the mean of the others stand for a missing value? */
static bool can_fill(const ls_json_members *m, size_t i) {
    const ls_feature *f = &m->features.list[i];
    return !f->ndims && !f->text && f != ls_features_label(&m->features);
}

static ls_json_wrong missing_in(const char *name, const char *why) {
    return (ls_json_wrong){ls_strdup(name), why, .missing = true};
}

/* What becomes of an object that lacks a value of feature i, which is absent if `value` is NULL. */
static ls_json_wrong judge_missing(const ls_json_members *m, size_t i, const ls_json *value) {
    const ls_feature *f = &m->features.list[i];
    ls_missing rule = m->of ? m->of[i].missing : LS_MISSING_REFUSE;
    if (rule == LS_MISSING_DROP) return (ls_json_wrong){.missing = true};
    if (rule == LS_MISSING_MEAN)
        return can_fill(m, i) ? (ls_json_wrong){0} : wrong_in(f->name, no_mean);
    return missing_in(f->name, !value ? "is missing" : f->text ? no_text : no_number);
}

static bool is_known(const ls_json_members *m, size_t i, const ls_json *value) {
    const char *text = m->known ? ls_json_text(value) : NULL;
    return !text || ls_features_knows(&m->features, m->known, i, text, strlen(text));
}

/* Compares the object with the members, and checks all values. */
static ls_json_wrong check(const ls_json_members *m, const ls_json *object) {
    const ls_features *s = &m->features;
    const char *name = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(object, it, &name, &value));) {
        const ls_feature *f = ls_features_find(s, name);
        if (!f) return missing_in(name, "is not in the first object");
        if (f->unchosen || (!f->left_out && lacks(value))) continue;
        const char *why = add_value(&(values){.f = f, .whole_reals = m->whole_reals}, value);
        if (why && f->left_out == no_value) return missing_in(name, why);
        if (!why && !is_known(m, (size_t)(f - s->list), value)) why = is_unknown;
        if (why) return wrong_in(name, why);
    }
    ls_json_wrong result = {0};
    for (size_t i = 0; i < s->n; i++) {
        const ls_feature *f = &s->list[i];
        if (f->unchosen || (m->decided && f->left_out)) continue;
        value = ls_json_get(object, f->name);
        if (f->left_out ? value != NULL : !lacks(value)) continue;
        ls_json_wrong wrong = judge_missing(m, i, value);
        if (wrong.why) return wrong;
        result.missing = result.missing || wrong.missing;
    }
    return result;
}

ls_json_wrong ls_json_members_add(ls_json_members *m, const ls_json *object, bool first) {
    ls_json_wrong wrong = {0};
    if (first && !m->decided) {
        ls_json_members_free(m); /* those of a damaged object before */
        wrong = start(m, object);
    }
    if (!wrong.why) wrong = check(m, object);
    for (size_t i = 0; !wrong.why && !wrong.missing && i < m->features.n; i++) {
        ls_feature *f = &m->features.list[i];
        bool sums = m->of && can_fill(m, i);
        values v = {.f = f, .learn = f, .whole_reals = m->whole_reals, .sums = sums};
        const ls_json *value = ls_json_get(object, f->name);
        if (f->left_out || f->unchosen) continue;
        if (lacks(value))
            f->nmissing++;
        else
            add_value(&v, value);
    }
    return wrong;
}

void ls_json_members_forget(ls_json_members *m) {
    for (size_t i = 0; i < m->features.n; i++) {
        ls_feature *f = &m->features.list[i];
        ls_classes_free(&f->classes);
        f->nmissing = f->nvalues = 0;
        f->mean = 0;
        f->integers = f->wide = f->whole = true;
        f->has_least = false;
    }
}

void ls_json_members_finish(ls_json_members *m) {
    for (size_t i = 0; i < m->features.n; i++) {
        ls_feature *f = &m->features.list[i];
        if (f->nmissing) f->integers = f->wide = false; /* the mean has a fraction */
        if (!m->of || m->of[i].missing != LS_MISSING_MEAN) f->nvalues = 0;
        /* as a sample has it, and as nine digits in data.json say it exactly */
        f->mean = f->nvalues ? (float)(f->mean / (double)f->nvalues) : 0;
    }
}

ls_json_wrong ls_json_members_store(const ls_json_members *m, const ls_json *object, void *sample) {
    for (size_t i = 0; i < m->features.n; i++) {
        const ls_feature *f = &m->features.list[i];
        values v = {.f = f, .sample = sample, .whole_reals = m->whole_reals};
        const ls_json *value = ls_json_get(object, f->name);
        if (f->left_out) continue;
        if (f->nmissing && lacks(value)) {
            ls_feature_store(f, sample, 0, f->mean);
            continue;
        }
        const char *why = value ? add_value(&v, value) : "is missing";
        if (why) return wrong_in(f->name, why);
    }
    return (ls_json_wrong){0};
}

/* ---- counting ---- */

static void free_counts(ls_json_members *m) {
    for (size_t i = 0; m->counts && i < m->features.n; i++) ls_json_free(m->counts[i].value);
    free(m->counts);
    m->counts = NULL;
}

void ls_json_members_free(ls_json_members *m) {
    free_counts(m);
    ls_features_free(&m->features);
    free(m->of);
    m->of = NULL;
}

void ls_json_members_count(ls_json_members *m, const ls_json *object) {
    ls_features *s = &m->features;
    const char *name = NULL;
    const ls_json *value = NULL;
    m->nobjects++;
    for (void *it = NULL; (it = ls_json_next(object, it, &name, &value));) {
        const ls_feature *f = ls_features_find(s, name);
        if (!f) {
            m->counts = ls_grow(m->counts, s->n, sizeof *m->counts);
            memset(&m->counts[s->n], 0, sizeof *m->counts);
            f = ls_features_add(s, name, strlen(name));
        }
        struct ls_json_count *c = &m->counts[f - s->list];
        bool text = ls_json_text(value) != NULL;
        if (!has_value(value)) continue;
        if (set_shape(&(ls_feature){.count = 1}, value)) {
            c->nothers++;
            continue;
        }
        if (c->nvalues++ == 0) c->text = text;
        c->ntexts += text;
        if (!text && !c->value) c->value = ls_json_share(value);
    }
}

void ls_json_members_decide(ls_json_members *m) {
    ls_json *text = ls_json_new_text("");
    for (size_t i = 0; i < m->features.n; i++) {
        ls_feature *f = &m->features.list[i];
        const struct ls_json_count *c = &m->counts[i];
        uint64_t others = c->nvalues - c->ntexts;
        bool is_text = c->ntexts > others || (c->text && c->ntexts == others);
        set_shape(f, is_text ? text : c->value);
        if (c->nvalues == 0 && c->nothers) f->left_out = no_shape;
        bool keeps = m->keeps_rare || (m->of && m->of[i].missing != LS_MISSING_REFUSE);
        if (c->nvalues && !keeps && 2 * c->nvalues < m->nobjects) f->left_out = is_rare;
        if (is_text && m->loose_texts && c->ntexts < m->nobjects) f->left_out = lacks_texts;
    }
    ls_json_free(text);
    free_counts(m);
    m->decided = true;
}

bool ls_json_member_is_empty(const ls_feature *f) {
    return f->left_out && strcmp(f->left_out, no_value) == 0;
}

/* ---- index ---- */

void ls_json_members_take(ls_json_members *m, ls_bytes *in) {
    ls_features_take(&m->features, in);
    for (size_t i = 0; i < m->features.n; i++)
        if (!m->features.list[i].text && !m->features.list[i].spelled) in->bad = true;
}
