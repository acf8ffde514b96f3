/* png.h - writes a picture as a PNG file, by libpng. */
#ifndef LS_REPORT_PNG_H
#define LS_REPORT_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_pixels {
    const uint8_t *data; /* [height, width, channels] */
    int64_t width, height;
    int channels; /* 1: gray, 3: red, green, blue */
} ls_pixels;

/* Replaces `path` atomically. LS_EINVAL: a side is below 1 or over 65500 pixels. LS_EIO. */
ls_status ls_png_write(const char *path, const ls_pixels *, ls_error *);

#endif
