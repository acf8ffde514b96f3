/* orientation.h - how a camera was held, as EXIF says it, and the image turned upright.
 *
 * Source: CIPA DC-008, "Exchangeable image file format for digital still cameras: Exif", 4.6.2 and
 * 4.6.4 A (tag Orientation); "TIFF Revision 6.0", 1992, section 2.
 */
#ifndef LS_SOURCE_IMAGES_ORIENTATION_H
#define LS_SOURCE_IMAGES_ORIENTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/png.h"

/* The tag of a JPEG file (APP1) or a PNG file (eXIf): 1 to 8. 1: the image is upright, or the file
 * does not say; a damaged tag says nothing, as for other programs. */
int ls_orientation_find(const uint8_t *data, size_t nbytes);

/* The shape of an image of shape s once it is upright. */
ls_image_shape ls_orientation_shape(int orientation, ls_image_shape s);
/* in: [s.height, s.width, s.channels]; out: the same pixels in the upright shape. */
void ls_orientation_turn(int orientation, const uint8_t *in, ls_image_shape s, uint8_t *out);

#endif
