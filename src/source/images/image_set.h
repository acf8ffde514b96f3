/* image_set.h - images of one field while their files are indexed: their sizes, and damage. */
#ifndef LS_SOURCE_IMAGES_IMAGE_SET_H
#define LS_SOURCE_IMAGES_IMAGE_SET_H

#include "base/mem.h"
#include "source/images/fit.h"
#include "source/source.h"

enum { LS_IMAGE_FILE_NBYTES = 256 << 20 }; /* largest file of an image */

typedef struct ls_image_set {
    const ls_image_way *way; /* NULL: images are read as they are */
    ls_image_sizes sizes;
    bool decodes;  /* ls_image_set_check() also decodes: it finds all damage, and takes longer */
    ls_buf pixels; /* scratch */
} ls_image_set;

void ls_image_set_free(ls_image_set *);

/* LS_EINVAL: the image is damaged, or not supported. The message begins with `name`. */
ls_status ls_image_set_check(ls_image_set *, const char *name, const uint8_t *data, size_t nbytes,
                             ls_image_seen *s_p, ls_error *);
/* Decides how images become the field "image", and appends it. */
ls_status ls_image_set_field(const ls_image_set *, ls_source *, const char *what, ls_image_fit *f_p,
                             ls_error *);

#endif
