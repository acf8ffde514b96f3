/* png.h - decodes PNG by libpng, for image.c. */
#ifndef LS_SOURCE_PNG_H
#define LS_SOURCE_PNG_H

#include "source/image.h"

ls_status ls_png_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *);
/* `want` is what ls_png_inspect() found, or that with three channels instead of one. */
ls_status ls_png_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                        ls_error *);
const char *ls_png_library(void); /* its name and version */

#endif
