/* image_set.c - see image_set.h. */
#include "source/images/image_set.h"

#include <stdlib.h>
#include <string.h>

void ls_image_set_free(ls_image_set *s) {
    ls_image_sizes_free(&s->sizes);
    ls_buf_free(&s->pixels);
    *s = (ls_image_set){0};
}

static ls_status check(ls_image_set *set, const uint8_t *data, size_t nbytes, ls_image_seen *s_p,
                       ls_error *e) {
    ls_image_shape s;
    LS_TRY(ls_image_fit_inspect(set->way && set->way->unturned, data, nbytes, s_p, e));
    if (!set->decodes) return LS_OK;
    LS_TRY(ls_image_inspect(data, nbytes, &s, e));
    size_t n = (size_t)s.height * (size_t)s.width * (size_t)s.channels;
    if (set->pixels.cap < n) {
        set->pixels.data = ls_realloc(set->pixels.data, n);
        set->pixels.cap = n;
    }
    return ls_image_decode(data, nbytes, s, (uint8_t *)set->pixels.data, e);
}

ls_status ls_image_set_check(ls_image_set *set, const char *name, const uint8_t *data,
                             size_t nbytes, ls_image_seen *s_p, ls_error *e) {
    ls_error own = {0};
    if (check(set, data, nbytes, s_p, &own) == LS_OK) return LS_OK;
    return ls_fail(e, own.code, "%s: %s", name, own.msg);
}

ls_status ls_image_set_field(const ls_image_set *set, ls_source *s, const char *what,
                             ls_image_fit *f_p, ls_error *e) {
    ls_field f = {.name = "image", .type = LS_U8, .ndims = 3};
    ls_image_case c = {set->way, &set->sizes, f.name, what};
    LS_TRY(ls_image_fit_decide(&c, f_p, s, e));
    f.dims[0] = f_p->shape.height;
    f.dims[1] = f_p->shape.width;
    f.dims[2] = f_p->shape.channels;
    return ls_source_add_field(s, what, &f, e);
}
