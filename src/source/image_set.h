/* image_set.h - images that become one field: all have one size. Gray images are expanded to three
 * channels if any image has colour.
 */
#ifndef LS_SOURCE_IMAGE_SET_H
#define LS_SOURCE_IMAGE_SET_H

#include "base/mem.h"
#include "source/image.h"
#include "source/source.h"

enum { LS_IMAGE_FILE_NBYTES = 256 << 20 }; /* largest file of an image */

typedef struct ls_image_set {
    ls_image_shape shape; /* height 0: no image yet */
    char *first;          /* name of the image that decided the size */
    bool decodes;  /* ls_image_set_check() also decodes: it finds all damage, and takes longer */
    ls_buf pixels; /* scratch */
    uint64_t ndamaged; /* } ls_damage_skip() */
    char *damage;      /* } the first message */
} ls_image_set;

void ls_image_set_free(ls_image_set *);

/* LS_EINVAL: the image is damaged, or not supported. The message begins with `name`. */
ls_status ls_image_set_check(ls_image_set *, const char *name, const uint8_t *data, size_t nbytes,
                             ls_image_shape *s_p, ls_error *);
/* Adds an image. LS_EINVAL: it has another size than the first. */
ls_status ls_image_set_add(ls_image_set *, const char *name, ls_image_shape, ls_error *);
/* Appends the field "image". */
ls_status ls_image_set_field(const ls_image_set *, ls_source *, const char *what, ls_error *);

/* Counts a damaged record that is left out; e has the reason. */
void ls_image_set_skip(ls_image_set *, const ls_error *);
/* Logs how many records were left out, and why the first was. */
void ls_image_set_log(const ls_image_set *, const char *what);

#endif
