/* pictures.h - images that tests make: smooth, like photographs, and written by the libraries'
 * encoders into memory.
 */
#ifndef LS_TESTS_PICTURES_H
#define LS_TESTS_PICTURES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/mem.h"
#include "source/images/image.h"

/* Hills of brightness and colour that depend on `seed`; [height, width, channels]. */
static inline void picture_fill(uint8_t *pixels, ls_image_shape s, int seed) {
    for (int y = 0; y < s.height; y++)
        for (int x = 0; x < s.width; x++)
            for (int c = 0; c < s.channels; c++) {
                double v =
                    128 + 60 * sin(0.11 * x + seed + c) + 50 * cos(0.07 * y * (c + 1) - seed);
                *pixels++ = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
            }
}

typedef struct picture_options {
    int quality;  /* 0: 90 */
    int sampling; /* of chroma: 2: 4:2:0; else 4:4:4 */
    bool progressive;
    int space; /* J_COLOR_SPACE of the pixels; 0: by the channels */
} picture_options;

static inline void picture_jpeg(ls_buf *b, const uint8_t *pixels, ls_image_shape s,
                                picture_options o) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    unsigned long nbytes = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &nbytes);
    c.image_width = (JDIMENSION)s.width, c.image_height = (JDIMENSION)s.height;
    c.input_components = s.channels;
    c.in_color_space = s.channels == 3 ? JCS_RGB : s.channels == 4 ? JCS_CMYK : JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    if (o.space) jpeg_set_colorspace(&c, (J_COLOR_SPACE)o.space);
    jpeg_set_quality(&c, o.quality ? o.quality : 90, TRUE);
    c.dct_method = JDCT_ISLOW;
    c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = o.sampling == 2 ? 2 : 1;
    if (o.progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < s.height; y++) {
        uint8_t row[4 * 2048];
        size_t n = (size_t)s.width * (size_t)s.channels;
        memcpy(row, pixels + (size_t)y * n, n);
        JSAMPROW at = row;
        jpeg_write_scanlines(&c, &at, 1);
    }
    jpeg_finish_compress(&c);
    ls_buf_append(b, out, nbytes);
    jpeg_destroy_compress(&c);
    free(out);
}

static inline void picture_put(png_structp png, png_bytep data, size_t n) {
    ls_buf_append(png_get_io_ptr(png), data, n);
}
static inline void picture_flush(png_structp png) { (void)png; }

/* type: PNG_COLOR_TYPE_...; pixels are [height] rows as PNG has them. A palette has the entries
 * (i, 2i, 255 - i). */
static inline void picture_png_as(ls_buf *b, const uint8_t *pixels, ls_image_shape s, int type,
                                  int bits, bool interlaced) {
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    size_t row = ((size_t)s.width * (size_t)(channels[type] * bits) + 7) / 8;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep *rows = LS_NEW_ARRAY(png_bytep, (size_t)s.height);
    uint8_t *copy = ls_alloc(row * (size_t)s.height);
    memcpy(copy, pixels, row * (size_t)s.height);
    for (int y = 0; y < s.height; y++) rows[y] = copy + (size_t)y * row;
    png_set_write_fn(png, b, picture_put, picture_flush);
    png_set_IHDR(png, info, (png_uint_32)s.width, (png_uint_32)s.height, bits, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        png_byte alpha[256];
        for (int i = 0; i < 256; i++) {
            palette[i] = (png_color){(png_byte)i, (png_byte)(2 * i), (png_byte)(255 - i)};
            alpha[i] = (png_byte)i;
        }
        png_set_PLTE(png, info, palette, 1 << bits);
        png_set_tRNS(png, info, alpha, 1 << bits, NULL);
    }
    png_set_rows(png, info, rows);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
    free(copy);
    free(rows);
}

static inline void picture_png(ls_buf *b, const uint8_t *pixels, ls_image_shape s) {
    picture_png_as(b, pixels, s, s.channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, 8,
                   false);
}

#endif
