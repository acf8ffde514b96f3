/* fitted.c - see fitted.h. */
#include "source/images/fitted.h"

#include <stdlib.h>
#include <string.h>

typedef struct fitted {
    ls_source_over over;                 /* with as many fields, in the same order */
    ls_image_fit fits[LS_SOURCE_FIELDS]; /* of those that are images */
} fitted;

static ls_status change(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                        ls_error *e) {
    const fitted *f = (const fitted *)s;
    const ls_source *from = f->over.from;
    uint8_t *given = ls_alloc(from->nbytes), *out = sample;
    ls_status status = ls_source_over_read(&f->over, i, d, given, e);
    for (int k = 0; status == LS_OK && k < from->nfields; k++) {
        const ls_field *has = &from->fields[k], *to = &s->fields[k];
        ls_image_shape shape = {(int)has->dims[0], (int)has->dims[1], (int)has->dims[2]};
        if (ls_field_is_image(has))
            status =
                ls_image_fit_pixels(&f->fits[k], given + has->offset, shape, out + to->offset, e);
        else
            memcpy(out + to->offset, given + has->offset, has->nbytes);
    }
    free(given);
    return status;
}

static ls_status add_fields(fitted *f, const ls_image_way *way, const char *what, ls_error *e) {
    for (int k = 0; k < f->over.from->nfields; k++) {
        ls_field field = f->over.from->fields[k];
        if (ls_field_is_image(&field)) {
            LS_TRY(ls_image_fit_of(way, &field, what, &f->fits[k], e));
            field.dims[0] = f->fits[k].shape.height;
            field.dims[1] = f->fits[k].shape.width;
            field.dims[2] = f->fits[k].shape.channels;
        }
        LS_TRY(ls_source_add_field(&f->over.source, what, &field, e));
    }
    return LS_OK;
}

ls_status ls_fitted_open(ls_source *from, const ls_image_way *way, const char *what,
                         ls_source **s_p, ls_error *e) {
    *s_p = from;
    if (way->unturned && !from->fits) {
        ls_source_close(from);
        return ls_fail(e, LS_EINVAL,
                       "%s: has no JPEG or PNG files, of which data.exif is; leave it out", what);
    }
    if (!ls_image_way_is_given(way) || (from->fits && ls_source_image(from))) return LS_OK;
    fitted *f = LS_NEW(fitted);
    ls_source_over_open(&f->over, from, change);
    f->over.source.parts = &f->over.from; /* for ls_source_verify() */
    f->over.source.nparts = 1;
    ls_status s = LS_OK;
    if (!ls_source_image(from))
        s = ls_fail(
            e, LS_EINVAL,
            "%s: has no images, which data.resize, data.crop and data.channels change; name files "
            "of images, or leave these keys out",
            what);
    if (s == LS_OK) s = add_fields(f, way, what, e);
    if (s == LS_OK)
        *s_p = &f->over.source;
    else
        ls_source_close(&f->over.source);
    return s;
}
