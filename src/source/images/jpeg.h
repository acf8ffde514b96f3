/* jpeg.h - decodes JPEG by libjpeg-turbo, for image.c. */
#ifndef LS_SOURCE_IMAGES_JPEG_H
#define LS_SOURCE_IMAGES_JPEG_H

#include "base/png.h"

ls_status ls_jpeg_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *);
/* `want` is what ls_jpeg_inspect() found, or that with three channels instead of one. */
ls_status ls_jpeg_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                         ls_error *);
const char *ls_jpeg_library(void); /* its name and version */

#endif
