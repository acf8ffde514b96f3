/* source.c - see source.h. */
#include "source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "source/index.h"
#include "source/note.h"
#include "source/numbering.h"
#include "source/options.h"
#include "source/pixel_cache.h"
#include "tensor/dtype.h"

ls_status ls_source_refuse(const ls_error *damage, ls_error *e) {
    if (e) *e = *damage;
    if (damage->code != LS_EINVAL || strstr(damage->msg, "; ")) return damage->code;
    return ls_fail(e, LS_EINVAL,
                   "%s; repair the file, or skip damaged records (--skip-damaged, data.damaged: "
                   "skip)",
                   damage->msg);
}

ls_status ls_source_leave_out(ls_source *s, const ls_source_options *o, const ls_error *why,
                              ls_error *e) {
    if (why->code != LS_EINVAL || !o->skip_damaged) return ls_source_refuse(why, e);
    ls_damage_add(&s->damage, why->msg);
    return LS_OK;
}

/* What its labels are, if one side has names and the other has numbers. */
static void compare_labels(ls_source *s, const ls_numbering *numbering, const char *what) {
    static const char unlike[] =
        "the labels of data.val_path have names, and those of the training "
        "data are numbers; give both the same";
    const ls_numbered *label = NULL;
    ls_field *f = NULL;
    for (size_t i = 0; numbering && i < numbering->n; i++)
        if (numbering->list[i].text && strcmp(numbering->list[i].field, "label") == 0)
            label = &numbering->list[i];
    for (int i = 0; i < s->nfields; i++)
        if (strcmp(s->fields[i].name, "label") == 0) f = &s->fields[i];
    for (int i = 0; f && !label && i < s->nclasses; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        if (strcmp(s->classes[i], number) != 0) f->trouble = unlike;
    }
    if (f && !s->classes && label)
        ls_note("%s: its labels are numbers, and count the classes of the training data in the "
                "order of their names: 0 is '%.60s'",
                what, label->in.n ? label->in.names[0] : "");
}

ls_status ls_source_follow(ls_source *s, const ls_numbering *numbering, const char *what,
                           ls_error *e) {
    uint64_t ndamaged = s->damage.n;
    if (numbering && numbering->n && s->follow) LS_TRY(s->follow(s, numbering, what, e));
    if (s->damage.n != ndamaged) ls_damage_note(&s->damage, what); /* rows were read again */
    compare_labels(s, numbering, what);
    return LS_OK;
}

void ls_source_close(ls_source *s) {
    if (!s) return;
    ls_index *x = s->index;
    ls_pixel_cache_close(s->pixels);
    s->close(s);
    ls_index_free(x);
}

ls_status ls_source_verify(const ls_source *s, ls_error *e) {
    for (int k = 0; k < s->nparts; k++) LS_TRY(ls_source_verify(s->parts[k], e));
    return ls_index_verify(s->index, e);
}

/* ---- fields ---- */

const ls_field *ls_source_field(const ls_source *s, const char *name) {
    for (int i = 0; i < s->nfields; i++)
        if (strcmp(s->fields[i].name, name) == 0) return &s->fields[i];
    return NULL;
}

ls_status ls_source_draw(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                         ls_error *e) {
    return s->draw ? s->draw(s, i, d, sample, e) : s->read(s, i, sample, e);
}

const ls_field *ls_source_image(const ls_source *s) {
    for (int i = 0; i < s->nfields; i++)
        if (ls_field_is_image(&s->fields[i])) return &s->fields[i];
    return NULL;
}

size_t ls_field_count(const ls_field *f, const void *sample) {
    size_t n = f->nbytes / ls_dtype_size(f->type), i = 0;
    const char *at = (const char *)sample + f->offset;
    if (!f->is_list) return n;
    for (; i < n; i++) {
        int32_t x = 0;
        int64_t y = 0;
        if (f->type == LS_I32) memcpy(&x, at + i * sizeof x, sizeof x);
        if (f->type == LS_I64) memcpy(&y, at + i * sizeof y, sizeof y);
        if (x == INT32_MIN || y == INT64_MIN) break;
    }
    return i;
}

void ls_field_end(const ls_field *f, void *sample, size_t n) {
    static const int32_t end32 = INT32_MIN;
    static const int64_t end64 = INT64_MIN;
    size_t size = ls_dtype_size(f->type);
    if (n * size < f->nbytes)
        memcpy((char *)sample + f->offset + n * size,
               size == sizeof end64 ? (const void *)&end64 : &end32, size);
}

ls_status ls_source_add_field(ls_source *s, const char *what, const ls_field *like, ls_error *e) {
    if (s->nfields == LS_SOURCE_FIELDS)
        return ls_fail(e, LS_EINVAL, "%s: has more than %d fields, the limit", what,
                       LS_SOURCE_FIELDS);
    if (like->ndims > LS_FIELD_DIMS)
        return ls_fail(e, LS_EINVAL, "%s: field %s has %d dimensions, at most %d are possible",
                       what, like->name, like->ndims, LS_FIELD_DIMS);
    ls_field f = *like;
    f.offset = ls_round_up(s->nbytes, LS_FIELD_ALIGN);
    f.nbytes = ls_dtype_size(f.type);
    for (int i = 0; i < f.ndims; i++) {
        if (f.dims[i] < 1)
            return ls_fail(e, LS_EINVAL,
                           "%s: field %s has a dimension of %lld, at least 1 is needed", what,
                           f.name, (long long)f.dims[i]);
        if ((uint64_t)f.dims[i] > LS_SAMPLE_NBYTES / f.nbytes)
            return ls_fail(e, LS_EINVAL, "%s: a sample has more than %zu MB, the limit", what,
                           LS_SAMPLE_NBYTES >> 20);
        f.nbytes *= (size_t)f.dims[i];
    }
    if (f.offset + f.nbytes > LS_SAMPLE_NBYTES)
        return ls_fail(e, LS_EINVAL, "%s: a sample has more than %zu MB, the limit", what,
                       LS_SAMPLE_NBYTES >> 20);
    s->fields[s->nfields++] = f;
    s->nbytes = f.offset + f.nbytes;
    return LS_OK;
}

int ls_source_classes(const ls_source *s, const char *field, char *const **names_p) {
    for (size_t i = 0; s->numbering && i < s->numbering->n; i++) {
        const ls_numbered *c = &s->numbering->list[i];
        if (!c->text || strcmp(c->field, field) != 0) continue;
        *names_p = c->in.names;
        return c->in.n;
    }
    *names_p = s->classes;
    return s->classes && strcmp(field, "label") == 0 ? s->nclasses : 0;
}

void ls_source_put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    if (s->put_name) s->put_name(s, i, b);
}

const char *ls_source_file(const ls_source *s, uint64_t i) {
    return s->file ? s->file(s, i) : NULL;
}

ls_record_at ls_source_record(const ls_source *s, uint64_t i) {
    return s->record ? s->record(s, i) : (ls_record_at){i, i};
}

size_t ls_source_part(const uint64_t *begins, size_t nparts, uint64_t i) {
    size_t low = 0, high = nparts; /* begins[low] <= i < begins[high] */
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (begins[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- sources over others ---- */

static const ls_source *under(const ls_source *s) { return ((const ls_source_over *)s)->from; }

ls_status ls_source_over_read(const ls_source_over *o, uint64_t i, const ls_draw *d, void *sample,
                              ls_error *e) {
    return d ? ls_source_draw(o->from, i, d, sample, e) : o->from->read(o->from, i, sample, e);
}

static ls_status read_undrawn(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return s->draw(s, i, NULL, sample, e);
}

static void put_name_under(const ls_source *s, uint64_t i, ls_buf *b) {
    ls_source_put_name(under(s), i, b);
}

static const char *file_under(const ls_source *s, uint64_t i) {
    return ls_source_file(under(s), i);
}

static ls_record_at record_under(const ls_source *s, uint64_t i) {
    return ls_source_record(under(s), i);
}

static void close_over(ls_source *s) {
    ls_source_close(((ls_source_over *)s)->from);
    free(s);
}

void ls_source_over_open(ls_source_over *o, ls_source *from, ls_source_change *change) {
    o->source = *from; /* count, hash, classes: those belong to `from` */
    o->source.index = NULL;
    o->source.pixels = NULL;
    o->source.follow = NULL;
    o->source.nparts = 0;
    o->source.read = read_undrawn;
    o->source.draw = change;
    if (from->put_name) o->source.put_name = put_name_under;
    o->source.file = file_under;
    o->source.record = record_under;
    o->source.close = close_over;
    o->source.nfields = 0;
    o->source.nbytes = 0;
    o->from = from;
}
