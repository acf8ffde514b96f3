/* image.c - see image.h. */
#include "source/image.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "source/jpeg.h"

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

static ls_status check_known(const decoder *d, size_t nbytes, ls_error *e) {
    if (d) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   nbytes == 0 ? "the image is empty (0 bytes)" : "not a JPEG or PNG image");
}

ls_status ls_image_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *e) {
    const decoder *d = find(data, nbytes);
    ls_image_shape s = {0};
    LS_TRY(check_known(d, nbytes, e));
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
    LS_TRY(check_known(d, nbytes, e));
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
