/* own_source.c - see own_source.h. */
#include "networks/own_source.h"

#include <stdlib.h>
#include <string.h>

#include "networks/program_model.h"

typedef struct own_source {
    ls_source s;
    ls_own_source given;
    ls_own_limits limits;
} own_source;

ls_own_limits ls_own_limits_of(const ls_model *m) {
    ls_own_limits x;
    _Static_assert(sizeof x.classes == sizeof m->classes && sizeof x.padded == sizeof m->padded &&
                       sizeof x.ignored == sizeof m->ignored,
                   "as the model has them");
    memcpy(x.classes, m->classes, sizeof x.classes);
    memcpy(x.padded, m->padded, sizeof x.padded);
    memcpy(x.ignored, m->ignored, sizeof x.ignored);
    return x;
}

static ls_status check_field(const ls_own_limits *x, int k, const ls_field *f, const int32_t *v,
                             ls_error *e) {
    for (size_t i = 0; i < f->nbytes / sizeof *v; i++) {
        bool is_none = x->padded[k] && (v[i] < 0 || (x->ignored[k] && v[i] == x->ignored[k]));
        if (is_none || (v[i] >= 0 && v[i] < x->classes[k])) continue;
        return ls_fail(e, LS_EINVAL, "field '%s' has %d; the model reads 0 to %d%s", f->name,
                       (int)v[i], x->classes[k] - 1,
                       x->padded[k] ? ", and a negative number for none" : "");
    }
    return LS_OK;
}

ls_status ls_own_limits_check(const ls_own_limits *x, const ls_source *s, const void *sample,
                              uint64_t number, ls_error *e) {
    for (int k = 0; k < s->nfields; k++) {
        const ls_field *f = &s->fields[k];
        const void *at = (const unsigned char *)sample + f->offset;
        ls_error own;
        if (!x->classes[k] || f->type != LS_I32 || check_field(x, k, f, at, &own) == LS_OK)
            continue;
        return ls_fail(e, LS_EINVAL, "sample %llu of the program's data: %.300s",
                       (unsigned long long)number, own.msg);
    }
    return LS_OK;
}

void *ls_sample_field(ls_sample *s, const char *name) {
    const ls_field *f = s && name ? ls_source_field(s->source, name) : NULL;
    return f ? s->bytes + f->offset : NULL;
}

static ls_status read_sample(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    const own_source *o = (const own_source *)(const void *)s;
    ls_sample to = {s, sample};
    ls_error own = {0};
    memset(sample, 0, s->nbytes);
    ls_status status = o->given.read(o->given.own, i, &to, &own);
    if (status == LS_OK) return ls_own_limits_check(&o->limits, s, sample, i, e);
    own.msg[sizeof own.msg - 1] = 0;
    return ls_fail(e, status, "sample %llu of the program's data: %.300s", (unsigned long long)i,
                   *own.msg ? own.msg : ls_status_name(status));
}

static void close_source(ls_source *s) { free(s); }

ls_status ls_own_source_check_count(uint64_t count, const char *whose, ls_error *e) {
    if (count >> 62 == 0) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: a count of %llu samples; it must be below 2^62", whose,
                   (unsigned long long)count);
}

ls_status ls_own_source_of(const ls_own_source *given, const ls_model *m, ls_source **s_p,
                           ls_error *e) {
    if (!given || !given->read || given->count == 0)
        return ls_fail(e, LS_EINVAL,
                       "the program's data have no samples, or no function to read them");
    LS_TRY(ls_own_source_check_count(given->count, "the program's data", e));
    own_source *o = LS_NEW(own_source);
    o->given = *given;
    o->limits = ls_own_limits_of(m);
    o->s = (ls_source){.format = "program",
                       .count = given->count,
                       .nfields = m->ninputs,
                       .nbytes = m->sample_nbytes,
                       .hash = {.lo = given->hash, .hi = given->count},
                       .read = read_sample,
                       .close = close_source};
    memcpy(o->s.fields, m->inputs, (size_t)m->ninputs * sizeof *m->inputs);
    *s_p = &o->s;
    return LS_OK;
}

ls_status ls_own_source_open(const ls_config *c, const ls_model *m, ls_source **s_p, ls_error *e) {
    ls_own_source given = {0};
    LS_TRY(ls_program_open_data(c, &given, e));
    return ls_own_source_of(&given, m, s_p, e);
}
