/* image.h - decodes JPEG and PNG from memory: 8-bit samples [height, width, channels].
 *
 * Decoded bits are part of the promise of same bits, so each choice of a decoder is fixed:
 *
 *   JPEG  The integer DCT (JDCT_ISLOW), chroma repeated instead of interpolated, no smoothing of
 *         blocks: these give the same bits with SIMD and without, and in all versions of
 *         libjpeg-turbo. The interpolation and the smoothing changed between versions.
 *   PNG   A palette becomes RGB; 1, 2 and 4 bits are scaled to 8, and 16 bits are, rounded to
 *         nearest. Alpha and transparent colours are dropped, not blended. Gamma and colour
 *         profiles are ignored.
 *
 * Gray has one channel, colour has three. Pixels are as they are stored; fit.h turns, scales and
 * cuts them.
 *
 * An image that ends early, fails a checksum or has a bad code is refused, never completed with
 * gray. Any thread may call; nothing is retained between calls.
 */
#ifndef LS_SOURCE_IMAGES_IMAGE_H
#define LS_SOURCE_IMAGES_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/png.h"

enum {
    LS_IMAGE_SIDE = 16384,      /* largest height and width */
    LS_IMAGE_PIXELS = 32 << 20, /* most pixels */
    LS_IMAGE_RECOGNIZED = 8     /* bytes that ls_image_recognize() needs */
};

/* True if these first bytes of a file are those of a JPEG or PNG file. */
bool ls_image_recognize(const uint8_t *data, size_t nbytes);

/* Are these the first bytes of an image that is not decoded? *name_p: "a GIF"; *converter_p: what
 * converts it. Static texts. */
bool ls_image_is_other(const uint8_t *data, size_t nbytes, const char **name_p,
                       const char **converter_p);
/* Reads the image's header. LS_EINVAL: not a JPEG or PNG image, of a kind that is not supported, or
 * over the limits. Messages don't name the file: the caller does. */
ls_status ls_image_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *);

/* Decodes into out [height, width, channels] of `want`, which is the image's own shape, or the
 * shape of a gray image with three channels: each pixel is then repeated. On failure `out` is
 * undefined. LS_EINVAL: as for ls_image_inspect(), the image has another shape, or it is
 * damaged. */
ls_status ls_image_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                          ls_error *);

/* "libjpeg-turbo 2.1.5, libpng 1.6.39": the decoders, static. */
const char *ls_image_decoders(void);

#endif
