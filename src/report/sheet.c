/* sheet.c - see sheet.h. */
#include "report/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/png.h"

enum { GAP = 2, BACKGROUND = 255 };
#define MOST_NBYTES ((int64_t)1 << 30)

static const ls_field *image_of(const ls_source *s) {
    for (int i = 0; i < s->nfields; i++)
        if (ls_field_is_image(&s->fields[i])) return &s->fields[i];
    return NULL;
}

/* Copies an image to row y, column x of pixels. */
static void paste(const ls_field *f, const uint8_t *image, const ls_pixels *sheet, uint8_t *pixels,
                  int64_t y, int64_t x) {
    size_t row = (size_t)(f->dims[1] * f->dims[2]);
    for (int64_t k = 0; k < f->dims[0]; k++)
        memcpy(pixels + ((y + k) * sheet->width + x) * sheet->channels, image + (size_t)k * row,
               row);
}

/* The smallest number whose square is at least n. */
static int64_t columns_for(int64_t n) {
    int64_t c = 1;
    while (c * c < n) c++;
    return c;
}

static void draw(const ls_source *s, const ls_field *f, int64_t n, const ls_pixels *sheet,
                 uint8_t *pixels) {
    int64_t columns = columns_for(n);
    uint8_t *sample = ls_alloc(s->nbytes);
    memset(pixels, BACKGROUND, (size_t)(sheet->width * sheet->height * sheet->channels));
    for (int64_t i = 0; i < n; i++) {
        int64_t y = GAP + i / columns * (f->dims[0] + GAP);
        int64_t x = GAP + i % columns * (f->dims[1] + GAP);
        if (s->read(s, (uint64_t)i, sample, NULL) == LS_OK)
            paste(f, sample + f->offset, sheet, pixels, y, x);
    }
    free(sample);
}

ls_status ls_sheet_write(const ls_source *s, int64_t n, const char *path, ls_file_writer *write,
                         ls_error *e) {
    const ls_field *f = image_of(s);
    if ((uint64_t)n > s->count) n = (int64_t)s->count;
    if (!f || n < 1)
        return ls_fail(e, LS_EINVAL, "%s: there are no images for a contact sheet", path);
    int64_t columns = columns_for(n), rows = (n + columns - 1) / columns;
    ls_pixels sheet = {NULL, GAP + columns * (f->dims[1] + GAP), GAP + rows * (f->dims[0] + GAP),
                       (int)f->dims[2]};
    if (sheet.width > MOST_NBYTES / sheet.channels / sheet.height)
        return ls_fail(e, LS_EINVAL,
                       "%s: a sheet of %lld images of %lld x %lld pixels is too large; choose "
                       "fewer images",
                       path, (long long)n, (long long)f->dims[0], (long long)f->dims[1]);
    size_t nbytes = (size_t)(sheet.width * sheet.height * sheet.channels);
    void *pixels = NULL;
    LS_TRY(ls_map(nbytes, "contact sheet", &pixels, e));
    sheet.data = pixels;
    draw(s, f, n, &sheet, pixels);
    ls_status status = ls_png_write(path, &sheet, write, e);
    ls_unmap(pixels, nbytes);
    return status;
}
