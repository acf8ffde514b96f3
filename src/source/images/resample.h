/* resample.h - scales images of bytes by the antialiased bilinear filter that Pillow, torchvision
 * and others use: each new pixel is a mean of the old ones under a triangle, which spans two old
 * pixels where the image grows, and as much more as the image shrinks.
 *
 * All arithmetic is in whole numbers, so the bits are the same on every processor: the weights of a
 * new pixel are exact fractions, rounded to 22 bits; columns are scaled first, and rounded to
 * bytes, then rows. Pixels differ from Pillow's by at most 1.
 */
#ifndef LS_SOURCE_IMAGES_RESAMPLE_H
#define LS_SOURCE_IMAGES_RESAMPLE_H

#include <stdint.h>

#include "base/png.h"

/* A rectangle of the image as it is after scaling to height x width. */
typedef struct ls_resample_window {
    int64_t height, width;   /* of the whole scaled image; up to 2^28 */
    int64_t top, left;       /* } the rectangle, which lies within it */
    int64_t nrows, ncolumns; /* } */
} ls_resample_window;

/* in: [s.height, s.width, s.channels]; out: [nrows, ncolumns, s.channels]. They do not overlap. Any
 * thread may call. */
void ls_resample(const uint8_t *in, ls_image_shape s, const ls_resample_window *, uint8_t *out);

#endif
