/* image.c - see image.h. */
#include "source/images/image.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "source/images/jpeg.h"

typedef struct decoder {
    const char *name;
    uint8_t first[LS_IMAGE_RECOGNIZED];
    size_t nfirst;
    ls_status (*inspect)(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *);
    ls_status (*decode)(const uint8_t *data, size_t nbytes, ls_image_shape, uint8_t *out,
                        ls_error *);
} decoder;

static const decoder decoders[] = {
    {"JPEG", {0xff, 0xd8, 0xff}, 3, ls_jpeg_inspect, ls_jpeg_decode},
    {"PNG", {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, 8, ls_png_inspect, ls_png_decode},
};

static const decoder *find(const uint8_t *data, size_t nbytes) {
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        const decoder *d = &decoders[i];
        if (nbytes >= d->nfirst && memcmp(data, d->first, d->nfirst) == 0) return d;
    }
    return NULL;
}

bool ls_image_recognize(const uint8_t *data, size_t nbytes) { return find(data, nbytes) != NULL; }

/* Formats that are not decoded, by bytes at an offset, and what converts them. */
static const struct other {
    const char *name;
    size_t at;
    const char *bytes;
    size_t nbytes;
    const char *converter;
} others[] = {
    {"a GIF", 0, "GIF8", 4, "convert IN.gif[0] OUT.png (ImageMagick)"},
    {"a WebP", 8, "WEBP", 4, "dwebp IN.webp -o OUT.png (package webp)"},
    {"an AVIF", 4, "ftypavi", 7, "avifdec IN.avif OUT.png (package libavif-bin)"},
    {"a HEIC", 4, "ftyphei", 7, "heif-convert IN.heic OUT.jpg (package libheif-examples)"},
    {"a HEIC", 4, "ftyphev", 7, "heif-convert IN.heic OUT.jpg (package libheif-examples)"},
    {"a HEIF", 4, "ftypmi", 6, "heif-convert IN.heif OUT.jpg (package libheif-examples)"},
    {"a HEIF", 4, "ftypms", 6, "heif-convert IN.heif OUT.jpg (package libheif-examples)"},
    {"a TIFF", 0, "II*\0", 4, "convert IN.tif OUT.png (ImageMagick)"},
    {"a TIFF", 0, "MM\0*", 4, "convert IN.tif OUT.png (ImageMagick)"},
    {"a BMP", 0, "BM", 2, "convert IN.bmp OUT.png (ImageMagick)"},
    {"a JPEG XL", 4, "JXL ", 4, "djxl IN.jxl OUT.png (package libjxl-tools)"},
    {"a JPEG XL", 0, "\xff\x0a", 2, "djxl IN.jxl OUT.png (package libjxl-tools)"},
    {"a Photoshop image", 0, "8BPS", 4, "convert IN.psd[0] OUT.png (ImageMagick)"},
    {"an icon", 0, "\0\0\1\0", 4, "convert IN.ico[0] OUT.png (ImageMagick)"},
    {"a PPM", 0, "P6\n", 3, "convert IN.ppm OUT.png (ImageMagick)"},
    {"a PGM", 0, "P5\n", 3, "convert IN.pgm OUT.png (ImageMagick)"},
    {"a JPEG 2000", 4, "jP  ", 4, "opj_decompress -i IN.jp2 -o OUT.png (package libopenjp2-tools)"},
};

bool ls_image_is_other(const uint8_t *data, size_t nbytes, const char **name_p,
                       const char **converter_p) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct other *o = &others[i];
        if (nbytes < o->at + o->nbytes || memcmp(data + o->at, o->bytes, o->nbytes) != 0) continue;
        *name_p = o->name;
        *converter_p = o->converter;
        return true;
    }
    return false;
}

static ls_status fail_unknown(const uint8_t *data, size_t nbytes, ls_error *e) {
    const char *name = NULL, *converter = NULL;
    if (nbytes == 0) return ls_fail(e, LS_EINVAL, "the image is empty (0 bytes)");
    if (ls_image_is_other(data, nbytes, &name, &converter))
        return ls_fail(e, LS_EINVAL, "not a JPEG or PNG image, but %s: convert it, e.g. %s", name,
                       converter);
    return ls_fail(e, LS_EINVAL, "not a JPEG or PNG image");
}

ls_status ls_image_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *e) {
    const decoder *d = find(data, nbytes);
    ls_image_shape s = {0};
    if (!d) return fail_unknown(data, nbytes, e);
    LS_TRY(d->inspect(data, nbytes, &s, e));
    if (s.height > LS_IMAGE_SIDE || s.width > LS_IMAGE_SIDE ||
        (int64_t)s.height * s.width > LS_IMAGE_PIXELS)
        return ls_fail(e, LS_EINVAL,
                       "a %s image of %d x %d pixels; at most %d on a side and %d pixels are "
                       "decoded",
                       d->name, s.width, s.height, LS_IMAGE_SIDE, LS_IMAGE_PIXELS);
    *s_p = s;
    return LS_OK;
}

ls_status ls_image_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                          ls_error *e) {
    const decoder *d = find(data, nbytes);
    if (!d) return fail_unknown(data, nbytes, e);
    return d->decode(data, nbytes, want, out, e);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char names[128];

static void name_decoders(void) {
    snprintf(names, sizeof names, "%s, libpng %s", ls_jpeg_library(), ls_png_version());
}

const char *ls_image_decoders(void) {
    pthread_once(&once, name_decoders);
    return names;
}
