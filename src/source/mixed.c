/* mixed.c - see mixed.h. */
#include "source/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/dtype.h"

typedef struct mixed {
    ls_source source; /* its parts, in memory of its own */
    uint64_t *begins; /* [nparts + 1] */
    bool *moves; /* [nparts] of parts that have their fields elsewhere, since lists have another
                  * most */
} mixed;

/* Copies the fields of a sample of a part. */
static void move_fields(const ls_source *part, const uint8_t *from, const ls_source *s,
                        uint8_t *sample) {
    for (int k = 0; k < s->nfields; k++) {
        const ls_field *a = &part->fields[k], *b = &s->fields[k];
        size_t n = ls_field_count(a, from);
        memcpy(sample + b->offset, from + a->offset, n * ls_dtype_size(a->type));
        if (b->is_list) ls_field_end(b, sample, n);
    }
}

static ls_status read_part(const ls_source *part, uint64_t i, const ls_draw *d, void *sample,
                           ls_error *e) {
    return d ? ls_source_draw(part, i, d, sample, e) : part->read(part, i, sample, e);
}

static ls_status draw_mixed(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                            ls_error *e) {
    const mixed *m = (const mixed *)s;
    size_t k = ls_source_part(m->begins, (size_t)s->nparts, i);
    const ls_source *part = s->parts[k];
    i -= m->begins[k];
    if (!m->moves[k]) return read_part(part, i, d, sample, e);
    uint8_t *given = ls_alloc(part->nbytes);
    ls_status status = read_part(part, i, d, given, e);
    if (status == LS_OK) move_fields(part, given, s, sample);
    free(given);
    return status;
}

static ls_status read_mixed(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return draw_mixed(s, i, NULL, sample, e);
}

static void put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    const mixed *m = (const mixed *)s;
    size_t k = ls_source_part(m->begins, (size_t)s->nparts, i);
    ls_source_put_name(s->parts[k], i - m->begins[k], b);
}

static const char *file_of(const ls_source *s, uint64_t i) {
    const mixed *m = (const mixed *)s;
    size_t k = ls_source_part(m->begins, (size_t)s->nparts, i);
    return ls_source_file(s->parts[k], i - m->begins[k]);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    const mixed *m = (const mixed *)s;
    size_t k = ls_source_part(m->begins, (size_t)s->nparts, i);
    ls_record_at r = ls_source_record(s->parts[k], i - m->begins[k]);
    for (size_t j = 0; j < k; j++)
        r.number += s->parts[j]->count + s->parts[j]->damage.n + s->parts[j]->nmissing;
    return r;
}

static void close_mixed(ls_source *s) {
    mixed *m = (mixed *)s;
    for (int k = 0; k < s->nparts; k++) ls_source_close(s->parts[k]);
    free(s->parts);
    free(m->begins);
    free(m->moves);
    free(m);
}

static bool is_same_field(const ls_field *a, const ls_field *b) {
    bool same = strcmp(a->name, b->name) == 0 && a->type == b->type && a->ndims == b->ndims;
    if (a->is_list || b->is_list) return same;
    for (int i = 0; same && i < a->ndims; i++) same = a->dims[i] == b->dims[i];
    return same;
}

static ls_status check_same(const ls_source *a, const char *name_a, const ls_source *b,
                            const char *name_b, ls_error *e) {
    int most = a->nfields > b->nfields ? a->nfields : b->nfields;
    for (int i = 0; i < most; i++)
        if (i >= a->nfields || i >= b->nfields || !is_same_field(&a->fields[i], &b->fields[i]))
            return ls_fail(e, LS_EINVAL,
                           "%s: its field '%s' is not that of %s: the sources of data.mix need the "
                           "same fields; `lockstep data FILE` prints them",
                           name_b, (i < b->nfields ? b : a)->fields[i].name, name_a);
    bool same = a->nclasses == b->nclasses;
    for (int i = 0; same && i < a->nclasses; i++) same = strcmp(a->classes[i], b->classes[i]) == 0;
    if (same) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: its classes are not those of %s: the sources of data.mix need the same "
                   "ones, in the same order",
                   name_b, name_a);
}

/* A list has room for the longest one of all parts. */
static ls_status place_fields(mixed *m, ls_error *e) {
    ls_source *s = &m->source;
    ls_field wanted[LS_SOURCE_FIELDS];
    int n = s->nfields;
    memcpy(wanted, s->fields, sizeof wanted);
    for (int k = 1; k < s->nparts; k++)
        for (int f = 0; f < n; f++) {
            const ls_field *has = &s->parts[k]->fields[f];
            wanted[f].is_list = wanted[f].is_list || has->is_list;
            wanted[f].is_whole = wanted[f].is_whole && has->is_whole;
            if (has->trouble) wanted[f].trouble = has->trouble;
            if (has->dims[0] > wanted[f].dims[0]) wanted[f].dims[0] = has->dims[0];
        }
    s->nfields = 0;
    s->nbytes = 0;
    for (int f = 0; f < n; f++) LS_TRY(ls_source_add_field(s, "data.mix", &wanted[f], e));
    for (int k = 0; k < s->nparts; k++)
        for (int f = 0; f < n; f++) {
            const ls_field *a = &s->fields[f], *b = &s->parts[k]->fields[f];
            if (a->offset != b->offset || a->nbytes != b->nbytes) m->moves[k] = true;
        }
    return LS_OK;
}

/* What differs between parts is summed. */
static void add_up(mixed *m) {
    ls_source *s = &m->source;
    ls_hash *hashes = LS_NEW_ARRAY(ls_hash, (size_t)s->nparts);
    s->nfiles = s->file_nbytes = s->damage.n = s->nmissing = 0;
    for (int k = 0; k < s->nparts; k++) {
        const ls_source *part = s->parts[k];
        m->begins[k + 1] = m->begins[k] + part->count;
        hashes[k] = part->hash;
        s->decodes = s->decodes || part->decodes;
        s->nfiles += part->nfiles;
        s->file_nbytes += part->file_nbytes;
        s->damage.n += part->damage.n;
        s->nmissing += part->nmissing;
    }
    s->count = m->begins[s->nparts];
    s->hash = ls_hash_bytes(hashes, (size_t)s->nparts * sizeof *hashes);
    free(hashes);
}

ls_status ls_mixed_open(ls_source *const *parts, const char *const *names, int n, ls_source **s_p,
                        ls_error *e) {
    mixed *m = LS_NEW(mixed);
    ls_status s = LS_OK;
    m->source = *parts[0]; /* fields and classes: those belong to the first part */
    m->source.index = NULL;
    m->source.pixels = NULL;
    m->source.follow = NULL;
    m->source.read = read_mixed;
    m->source.draw = draw_mixed;
    m->source.put_name = put_name;
    m->source.file = file_of;
    m->source.record = record_of;
    m->source.close = close_mixed;
    m->source.nparts = n;
    m->source.parts = LS_NEW_ARRAY(ls_source *, (size_t)n);
    m->begins = LS_NEW_ARRAY(uint64_t, (size_t)n + 1);
    m->moves = LS_NEW_ARRAY(bool, (size_t)n);
    memcpy(m->source.parts, parts, (size_t)n * sizeof *parts);
    for (int k = 1; s == LS_OK && k < n; k++)
        s = check_same(parts[0], names[0], parts[k], names[k], e);
    if (s == LS_OK) s = place_fields(m, e);
    if (s == LS_OK) {
        add_up(m);
        *s_p = &m->source;
    } else {
        close_mixed(&m->source);
    }
    return s;
}
