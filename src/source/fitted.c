/* fitted.c - see fitted.h. */
#include "source/fitted.h"

#include <stdlib.h>
#include <string.h>

typedef struct fitted {
    ls_source source;
    ls_source *from;                     /* with as many fields, in the same order */
    ls_image_fit fits[LS_SOURCE_FIELDS]; /* of those that are images */
} fitted;

/* d NULL: not for training. */
static ls_status read_fitted(const fitted *f, uint64_t i, const ls_draw *d, uint8_t *sample,
                             ls_error *e) {
    const ls_source *from = f->from;
    uint8_t *given = ls_alloc(from->nbytes);
    ls_status s = d ? ls_source_draw(from, i, d, given, e) : from->read(from, i, given, e);
    for (int k = 0; s == LS_OK && k < from->nfields; k++) {
        const ls_field *has = &from->fields[k], *to = &f->source.fields[k];
        ls_image_shape shape = {(int)has->dims[0], (int)has->dims[1], (int)has->dims[2]};
        if (ls_field_is_image(has))
            s = ls_image_fit_pixels(&f->fits[k], given + has->offset, shape, sample + to->offset,
                                    e);
        else
            memcpy(sample + to->offset, given + has->offset, has->nbytes);
    }
    free(given);
    return s;
}

static ls_status read_sample(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    return read_fitted((const fitted *)s, i, NULL, sample, e);
}

static ls_status draw_sample(const ls_source *s, uint64_t i, const ls_draw *d, void *sample,
                             ls_error *e) {
    return read_fitted((const fitted *)s, i, d, sample, e);
}

static void put_name(const ls_source *s, uint64_t i, ls_buf *b) {
    ls_source_put_name(((const fitted *)s)->from, i, b);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    return ls_source_record(((const fitted *)s)->from, i);
}

static void close_fitted(ls_source *s) {
    fitted *f = (fitted *)s;
    ls_source_close(f->from);
    free(f);
}

static ls_status add_fields(fitted *f, const ls_image_way *way, const char *what, ls_error *e) {
    for (int k = 0; k < f->from->nfields; k++) {
        ls_field field = f->from->fields[k];
        if (ls_field_is_image(&field)) {
            LS_TRY(ls_image_fit_of(way, &field, what, &f->fits[k], e));
            field.dims[0] = f->fits[k].shape.height;
            field.dims[1] = f->fits[k].shape.width;
            field.dims[2] = f->fits[k].shape.channels;
        }
        LS_TRY(ls_source_add_field(&f->source, what, &field, e));
    }
    return LS_OK;
}

static bool has_images(const ls_source *s) {
    for (int k = 0; k < s->nfields; k++)
        if (ls_field_is_image(&s->fields[k])) return true;
    return false;
}

ls_status ls_fitted_open(ls_source *from, const ls_image_way *way, const char *what,
                         ls_source **s_p, ls_error *e) {
    *s_p = from;
    if (way->unturned && !from->fits) {
        ls_source_close(from);
        return ls_fail(e, LS_EINVAL,
                       "%s: has no JPEG or PNG files, of which data.exif is; leave it out", what);
    }
    if (!ls_image_way_is_given(way) || (from->fits && has_images(from))) return LS_OK;
    fitted *f = LS_NEW(fitted);
    f->source = *from; /* count, hash, classes: those belong to `from` */
    f->source.index = NULL;
    f->source.pixels = NULL;
    f->source.follow = NULL;
    f->source.parts = &f->from; /* for ls_source_verify() */
    f->source.nparts = 1;
    f->source.read = read_sample;
    f->source.draw = draw_sample;
    f->source.put_name = put_name;
    f->source.record = record_of;
    f->source.close = close_fitted;
    f->source.nfields = 0;
    f->source.nbytes = 0;
    f->from = from;
    ls_status s = LS_OK;
    if (!has_images(from))
        s = ls_fail(
            e, LS_EINVAL,
            "%s: has no images, which data.resize, data.crop and data.channels change; name files "
            "of images, or leave these keys out",
            what);
    if (s == LS_OK) s = add_fields(f, way, what, e);
    if (s == LS_OK)
        *s_p = &f->source;
    else
        close_fitted(&f->source);
    return s;
}
