/* orientation.c - see orientation.h. Nothing that a file says is trusted: each place is compared
 * with the end of its bytes before it is read. */
#include "source/images/orientation.h"

#include <string.h>

enum { ORIENTATION = 0x112, SHORT = 3, ENTRY_NBYTES = 12 };

/* ---- the tag ---- */

typedef struct bytes {
    const uint8_t *at;
    size_t n;
    bool little; /* the least byte of a number comes first */
} bytes;

/* The number of `width` bytes at place `at`, which lies within them. */
static uint32_t number_at(const bytes *b, size_t at, int width) {
    uint32_t x = 0;
    for (int i = 0; i < width; i++)
        x |= (uint32_t)b->at[at + (size_t)i] << 8 * (b->little ? i : width - 1 - i);
    return x;
}

/* The orientation in a TIFF header and the entries that follow it; 1: there is none. */
static int find_in_tiff(bytes b) {
    static const size_t head = 8;
    if (b.n < head) return 1;
    b.little = memcmp(b.at, "II*\0", 4) == 0;
    if (!b.little && memcmp(b.at, "MM\0*", 4) != 0) return 1;
    size_t at = number_at(&b, 4, 4);
    if (at < head || at > b.n - 2) return 1;
    size_t n = number_at(&b, at, 2);
    at += 2;
    for (size_t i = 0; i < n && b.n - at >= ENTRY_NBYTES; i++, at += ENTRY_NBYTES) {
        if (number_at(&b, at, 2) != ORIENTATION) continue;
        uint32_t value = number_at(&b, at + 8, 2);
        bool good = number_at(&b, at + 2, 2) == SHORT && number_at(&b, at + 4, 4) == 1;
        return good && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* A marker has 0xff, its kind, and but for some the length of its segment, two bytes that count
 * themselves. Pixels begin at SOS. */
static int find_in_jpeg(bytes b) {
    enum { TEM = 0x01, RST0 = 0xd0, SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1 };
    static const uint8_t exif[6] = "Exif\0";
    size_t at = 2;
    while (b.n - at >= 4) {
        if (b.at[at] != 0xff) return 1;
        uint8_t kind = b.at[at + 1];
        if (kind == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        if (kind == TEM || (kind >= RST0 && kind <= SOI)) {
            at += 2;
            continue;
        }
        size_t n = number_at(&b, at + 2, 2);
        if (kind == EOI || kind == SOS || n < 2 || n > b.n - at - 2) return 1;
        const uint8_t *segment = b.at + at + 4;
        if (kind == APP1 && n >= 2 + sizeof exif && memcmp(segment, exif, sizeof exif) == 0)
            return find_in_tiff((bytes){segment + sizeof exif, n - 2 - sizeof exif, false});
        at += 2 + n;
    }
    return 1;
}

/* A chunk has the length of its data, its kind, the data, and a checksum. */
static int find_in_png(bytes b) {
    size_t at = 8;
    while (b.n - at >= 12) {
        size_t n = number_at(&b, at, 4);
        if (n > b.n - at - 12 || memcmp(b.at + at + 4, "IEND", 4) == 0) return 1;
        if (memcmp(b.at + at + 4, "eXIf", 4) == 0)
            return find_in_tiff((bytes){b.at + at + 8, n, false});
        at += 12 + n;
    }
    return 1;
}

int ls_orientation_find(const uint8_t *data, size_t nbytes) {
    bytes b = {data, nbytes, false};
    if (nbytes >= 4 && data[0] == 0xff && data[1] == 0xd8) return find_in_jpeg(b);
    if (nbytes >= 20 && memcmp(data, "\x89PNG", 4) == 0) return find_in_png(b);
    return 1;
}

/* ---- turning ---- */

/* What the first row and the first column of the file are, by the tag: 1 top and left, 2 top and
 * right, 3 bottom and right, 4 bottom and left; 5 to 8 left and top, right and top, right and
 * bottom, left and bottom. */
static bool swaps_sides(int orientation) { return orientation >= 5; }

ls_image_shape ls_orientation_shape(int orientation, ls_image_shape s) {
    if (!swaps_sides(orientation)) return s;
    return (ls_image_shape){s.width, s.height, s.channels};
}

void ls_orientation_turn(int orientation, const uint8_t *in, ls_image_shape s, uint8_t *out) {
    bool swaps = swaps_sides(orientation);
    bool bottom = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    bool right = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    ls_image_shape upright = ls_orientation_shape(orientation, s);
    size_t pixel = (size_t)s.channels;
    for (int y = 0; y < upright.height; y++)
        for (int x = 0; x < upright.width; x++) {
            int down = bottom ? upright.height - 1 - y : y,
                across = right ? upright.width - 1 - x : x;
            int row = swaps ? across : down, column = swaps ? down : across;
            const uint8_t *from = in + ((size_t)row * (size_t)s.width + (size_t)column) * pixel;
            for (size_t c = 0; c < pixel; c++) *out++ = from[c];
        }
}
