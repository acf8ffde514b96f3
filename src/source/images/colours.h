/* colours.h - brightness, contrast, saturation and hue of images of bytes, as torchvision's
 * ColorJitter changes them, but in whole numbers: the same bits on every processor.
 *
 * The first three are mixtures of the image with something plain, whose part is 1 - factor: black,
 * the mean of its gray, each pixel's gray. Results are cut to 0 to 255, and rounded down.
 */
#ifndef LS_SOURCE_IMAGES_COLOURS_H
#define LS_SOURCE_IMAGES_COLOURS_H

#include <stddef.h>
#include <stdint.h>

enum { LS_COLOURS_ONE = 1 << 16 }; /* a factor of 1, or a turn of hue around all colours */

/* pixels: [n, channels], 1 or 3; factor: from 0 on, in parts of LS_COLOURS_ONE. */
void ls_colours_brightness(uint8_t *pixels, size_t n, int channels, int32_t factor);
void ls_colours_contrast(uint8_t *pixels, size_t n, int channels, int32_t factor);
/* pixels: [n, 3] */
void ls_colours_saturation(uint8_t *pixels, size_t n, int32_t factor);
/* Turns colours by this part of the circle, from -LS_COLOURS_ONE / 2 to LS_COLOURS_ONE / 2. */
void ls_colours_hue(uint8_t *pixels, size_t n, int32_t turn);

/* The gray of a colour, by the weights of ITU-R 601-2, as Pillow has them. */
static inline uint8_t ls_colours_gray(const uint8_t *rgb) {
    return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

#endif
