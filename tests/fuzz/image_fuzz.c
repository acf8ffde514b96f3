/* image_fuzz.c - JPEG and PNG images, and what EXIF says of them. What can be decoded gives the
 * same bits again, also upright and scaled, and nothing is written beyond the image. */
#include "fuzz.h"
#include "source/images/fit.h"
#include "source/images/orientation.h"

enum { MOST_PIXELS = 1 << 20 }; /* larger images take too long */

static uint8_t *decode(const uint8_t *data, size_t nbytes, ls_image_shape s, ls_status *status_p) {
    ls_error e = {0};
    uint8_t *out = malloc((size_t)s.height * (size_t)s.width * (size_t)s.channels);
    FUZZ_CHECK(out);
    *status_p = ls_image_decode(data, nbytes, s, out, &e);
    FUZZ_CHECK(*status_p == LS_OK || (e.msg[0] && e.code == LS_EINVAL));
    return out;
}

/* The image as 5 x 3 pixels of its own. */
static void check_fit(const uint8_t *data, size_t nbytes, int channels, bool good) {
    ls_image_fit f = {.scaling = LS_IMAGE_TO_COVER, .shape = {5, 3, channels}};
    ls_error e = {0};
    uint8_t *out = malloc((size_t)(5 * 3 * channels));
    FUZZ_CHECK(out);
    FUZZ_CHECK((ls_image_fit_decode(&f, data, nbytes, out, &e) == LS_OK) == good);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_image_shape s;
    ls_error e = {0};
    ls_status first, second;
    int orientation = ls_orientation_find(data, nbytes);
    FUZZ_CHECK(orientation >= 1 && orientation <= 8);
    if (ls_image_inspect(data, nbytes, &s, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && e.code == LS_EINVAL);
        return 0;
    }
    FUZZ_CHECK(s.height > 0 && s.width > 0 && (s.channels == 1 || s.channels == 3));
    FUZZ_CHECK(ls_image_recognize(data, nbytes));
    if ((int64_t)s.height * s.width > MOST_PIXELS) return 0;
    uint8_t *a = decode(data, nbytes, s, &first), *b = decode(data, nbytes, s, &second);
    FUZZ_CHECK(first == second);
    if (first == LS_OK)
        FUZZ_CHECK(memcmp(a, b, (size_t)s.height * (size_t)s.width * (size_t)s.channels) == 0);
    check_fit(data, nbytes, s.channels == 3 ? 1 : 3, first == LS_OK);
    free(a);
    free(b);
    return 0;
}
