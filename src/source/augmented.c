/* augmented.c - see augmented.h. */
#include "source/augmented.h"

#include <stdlib.h>
#include <string.h>

typedef struct augmented {
    ls_source source;
    ls_source *from; /* with as many fields, in the same order */
    ls_augment augment;
} augmented;

static ls_status change(const augmented *a, uint64_t i, const ls_draw *d, uint8_t *sample,
                        ls_error *e) {
    const ls_source *from = a->from;
    uint8_t *given = ls_alloc(from->nbytes);
    ls_status s = d ? ls_source_draw(from, i, d, given, e) : from->read(from, i, given, e);
    for (int k = 0; s == LS_OK && k < from->nfields; k++) {
        const ls_field *f = &from->fields[k], *to = &a->source.fields[k];
        if (ls_field_is_image(f))
            ls_augment_apply(&a->augment, d, f, given + f->offset, sample + to->offset);
        else
            memcpy(sample + to->offset, given + f->offset, f->nbytes);
    }
    free(given);
    return s;
}

static ls_status read_centred(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return change((const augmented *)s, i, NULL, sample, e);
}

static ls_status draw_changed(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                              ls_error *e) {
    return change((const augmented *)s, i, d, sample, e);
}

static void put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    ls_source_put_name(((const augmented *)s)->from, i, b);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    return ls_source_record(((const augmented *)s)->from, i);
}

static void close_augmented(ls_source *s) {
    augmented *a = (augmented *)s;
    ls_source_close(a->from);
    free(a);
}

static ls_status add_fields(augmented *a, const char *what, ls_error *e) {
    int nimages = 0;
    for (int k = 0; k < a->from->nfields; k++) {
        ls_field f = a->from->fields[k];
        if (ls_field_is_image(&f)) {
            nimages++;
            LS_TRY(ls_augment_shape(&a->augment, what, &f, e));
        }
        LS_TRY(ls_source_add_field(&a->source, what, &f, e));
    }
    if (nimages) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: data.augment changes images, and there are none among the fields; remove "
                   "it",
                   what);
}

ls_status ls_augmented_open(ls_source *from, const ls_augment *augment, const char *what,
                            ls_source **s_p, ls_error *e) {
    augmented *a = LS_NEW(augmented);
    a->source = *from; /* count, hash, classes: those belong to `from` */
    a->source.index = NULL;
    a->source.pixels = NULL;
    a->source.follow = NULL;
    a->source.nparts = 0;
    a->source.read = read_centred;
    a->source.draw = draw_changed;
    if (from->put_name) a->source.put_name = put_name;
    a->source.record = record_of;
    a->source.close = close_augmented;
    a->source.nfields = 0;
    a->source.nbytes = 0;
    a->from = from;
    a->augment = *augment;
    ls_status s = add_fields(a, what, e);
    if (s == LS_OK)
        *s_p = &a->source;
    else
        close_augmented(&a->source);
    return s;
}
