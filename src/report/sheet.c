/* sheet.c - see sheet.h. */
#include "report/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/png.h"
#include "base/utf8.h"
#include "report/letters.h"

enum { GAP = 2, BACKGROUND = 255, MOST_LETTERS = 24, ELLIPSIS = 0x2026 };
#define MOST_NBYTES ((int64_t)1 << 30)

static const ls_field *image_of(const ls_source *s) {
    for (int i = 0; i < s->nfields; i++)
        if (ls_field_is_image(&s->fields[i])) return &s->fields[i];
    return NULL;
}

/* The picture. */
typedef struct page {
    ls_pixels sheet;
    uint8_t *pixels; /* those of the sheet */
    int64_t columns, rows;
    int64_t height, width; /* of a cell, without the gaps */
} page;

/* ---- captions ---- */

/* The next letter of a text of n bytes; returns its bytes, at least 1. */
static size_t next_letter(const char *text, size_t n, uint32_t *point_p) {
    size_t length = ls_utf8_decode(text, n, point_p);
    if (length) return length;
    *point_p = '?';
    return 1;
}

/* The letters of the line that begins here. */
static int64_t count_letters(const char *line) {
    int64_t count = 0;
    uint32_t point = 0;
    for (size_t n = strcspn(line, "\n"), length; n; n -= length, line += length, count++)
        length = next_letter(line, n, &point);
    return count < MOST_LETTERS ? count : MOST_LETTERS;
}

static void measure_caption(const char *text, int64_t *letters_p, int64_t *lines_p) {
    int64_t lines = 0;
    for (;; text++) {
        int64_t letters = count_letters(text);
        if (letters > *letters_p) *letters_p = letters;
        lines++;
        text += strcspn(text, "\n");
        if (!*text) break;
    }
    if (lines > *lines_p) *lines_p = lines;
}

static void put_letter(page *p, int64_t y, int64_t x, uint32_t point) {
    const uint8_t *rows = ls_letter(point);
    for (int64_t k = 0; k < LS_LETTER_HEIGHT; k++)
        for (int64_t i = 0; i < LS_LETTER_WIDTH; i++)
            if (rows[k] >> (LS_LETTER_WIDTH - 1 - i) & 1)
                memset(p->pixels + ((y + k) * p->sheet.width + x + i) * p->sheet.channels, 0,
                       (size_t)p->sheet.channels);
}

/* As many letters as the cell has room for. */
static void put_line(page *p, int64_t y, int64_t x, const char *line) {
    int64_t room = p->width / LS_LETTER_WIDTH, count = 0;
    uint32_t point = 0;
    if (room > MOST_LETTERS) room = MOST_LETTERS;
    for (size_t n = strcspn(line, "\n"), length; n && count < room; count++) {
        length = next_letter(line, n, &point);
        n -= length;
        line += length;
        put_letter(p, y, x + count * LS_LETTER_WIDTH, n && count + 1 == room ? ELLIPSIS : point);
    }
}

static void put_caption(page *p, int64_t y, int64_t x, const char *text) {
    for (;; text++, y += LS_LETTER_HEIGHT) {
        put_line(p, y, x, text);
        text += strcspn(text, "\n");
        if (!*text) return;
    }
}

/* ---- images ---- */

/* Copies an image to row y, column x of the sheet. */
static void paste(const ls_field *f, const uint8_t *image, page *p, int64_t y, int64_t x) {
    size_t row = (size_t)(f->dims[1] * f->dims[2]);
    for (int64_t k = 0; k < f->dims[0]; k++)
        memcpy(p->pixels + ((y + k) * p->sheet.width + x) * p->sheet.channels,
               image + (size_t)k * row, row);
}

/* The smallest number whose square is at least n. */
static int64_t columns_for(int64_t n) {
    int64_t c = 1;
    while (c * c < n) c++;
    return c;
}

static void draw(const ls_sheet *s, const ls_field *f, page *p) {
    uint8_t *sample = ls_alloc(s->source->nbytes);
    memset(p->pixels, BACKGROUND, (size_t)(p->sheet.width * p->sheet.height * p->sheet.channels));
    for (int64_t i = 0; i < s->n; i++) {
        int64_t y = GAP + i / p->columns * (p->height + GAP);
        int64_t x = GAP + i % p->columns * (p->width + GAP);
        if (s->source->read(s->source, s->samples[i], sample, NULL) == LS_OK)
            paste(f, sample + f->offset, p, y, x);
        if (s->captions) put_caption(p, y + f->dims[0], x, s->captions[i]);
    }
    free(sample);
}

static page lay_out(const ls_sheet *s, const ls_field *f) {
    page p = {.columns = columns_for(s->n), .height = f->dims[0], .width = f->dims[1]};
    int64_t letters = 0, lines = 0;
    for (int64_t i = 0; s->captions && i < s->n; i++)
        measure_caption(s->captions[i], &letters, &lines);
    p.rows = (s->n + p.columns - 1) / p.columns;
    p.height += lines * LS_LETTER_HEIGHT;
    if (p.width < letters * LS_LETTER_WIDTH) p.width = letters * LS_LETTER_WIDTH;
    p.sheet = (ls_pixels){NULL, GAP + p.columns * (p.width + GAP), GAP + p.rows * (p.height + GAP),
                          (int)f->dims[2]};
    return p;
}

ls_status ls_sheet_write(const ls_sheet *s, const char *path, ls_file_writer *write, ls_error *e) {
    const ls_field *f = image_of(s->source);
    if (!f || s->n < 1)
        return ls_fail(e, LS_EINVAL, "%s: there are no images for a contact sheet", path);
    page p = lay_out(s, f);
    if (p.sheet.width > MOST_NBYTES / p.sheet.channels / p.sheet.height)
        return ls_fail(e, LS_EINVAL,
                       "%s: a sheet of %lld images of %lld x %lld pixels is too large; choose "
                       "fewer images",
                       path, (long long)s->n, (long long)f->dims[0], (long long)f->dims[1]);
    size_t nbytes = (size_t)(p.sheet.width * p.sheet.height * p.sheet.channels);
    void *pixels = NULL;
    LS_TRY(ls_map(nbytes, "contact sheet", &pixels, e));
    p.sheet.data = p.pixels = pixels;
    draw(s, f, &p);
    ls_status status = ls_png_write(path, &p.sheet, write, e);
    ls_unmap(pixels, nbytes);
    return status;
}
