/* png.h - pictures as PNG files, by libpng: decoded and encoded in memory. */
#ifndef LS_BASE_PNG_H
#define LS_BASE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/mem.h"

typedef struct ls_image_shape {
    int height, width;
    int channels; /* 1: gray, 3: red, green, blue */
} ls_image_shape;

/* LS_EINVAL: an image of shape `s` can't be decoded as `want`, its own shape, or with three
 * channels instead of one. */
ls_status ls_image_shape_check(ls_image_shape s, ls_image_shape want, ls_error *);

/* Reads the header. LS_EINVAL: it is damaged. Messages don't name the file: the caller does. */
ls_status ls_png_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *);
/* Decodes into out [height, width, channels] of `want`, which is the image's shape, or that with
 * three channels instead of one. LS_EINVAL: the image has another shape, or is damaged. */
ls_status ls_png_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                        ls_error *);
const char *ls_png_version(void); /* of libpng, as it is loaded: "1.6.39" */

typedef struct ls_pixels {
    const uint8_t *data; /* [height, width, channels] */
    int64_t width, height;
    int channels; /* 1: gray, 3: red, green, blue */
} ls_pixels;

/* Appends a PNG file. LS_EINVAL: a side is below 1 or over 65500 pixels. */
ls_status ls_png_encode(const ls_pixels *, ls_buf *out, ls_error *);

#endif
