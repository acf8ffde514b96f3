/* augmented.c - see augmented.h. */
#include "source/images/augmented.h"

#include <stdlib.h>
#include <string.h>

typedef struct augmented {
    ls_source_over over; /* with as many fields, in the same order */
    ls_augment augment;
} augmented;

static ls_status change(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                        ls_error *e) {
    const augmented *a = (const augmented *)s;
    const ls_source *from = a->over.from;
    uint8_t *given = ls_alloc(from->nbytes), *out = sample;
    ls_status status = ls_source_over_read(&a->over, i, d, given, e);
    for (int k = 0; status == LS_OK && k < from->nfields; k++) {
        const ls_field *f = &from->fields[k], *to = &s->fields[k];
        if (ls_field_is_image(f))
            ls_augment_apply(&a->augment, d, f, given + f->offset, out + to->offset);
        else
            memcpy(out + to->offset, given + f->offset, f->nbytes);
    }
    free(given);
    return status;
}

static ls_status add_fields(augmented *a, const char *what, ls_error *e) {
    int nimages = 0;
    for (int k = 0; k < a->over.from->nfields; k++) {
        ls_field f = a->over.from->fields[k];
        if (ls_field_is_image(&f)) {
            nimages++;
            LS_TRY(ls_augment_shape(&a->augment, what, &f, e));
        }
        LS_TRY(ls_source_add_field(&a->over.source, what, &f, e));
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
    ls_source_over_open(&a->over, from, change);
    a->augment = *augment;
    ls_status s = add_fields(a, what, e);
    if (s == LS_OK)
        *s_p = &a->over.source;
    else
        ls_source_close(&a->over.source);
    return s;
}
