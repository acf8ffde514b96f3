/* sheet.c - see sheet.h. Each image is embedded as a PNG file in base64. */
#include "report/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/png.h"
#include "report/svg.h"

enum { GAP = 2, LINE = 14, LETTER = 12, WIDEST = 24 * 7 };
#define MOST_NBYTES ((int64_t)1 << 30)

/* Pixels of a cell, without the gaps. */
typedef struct cell {
    int width, height;
} cell;

/* Line i of a caption, which the caller frees; NULL: it has no more. */
static char *line_of(const char *caption, int i) {
    while (i-- && caption)
        if ((caption = strchr(caption, '\n'))) caption++;
    return caption ? ls_format("%.*s", (int)strcspn(caption, "\n"), caption) : NULL;
}

/* Room for the image and all captions. */
static cell measure(const ls_sheet *s, const ls_field *f) {
    int lines = 0;
    double width = (double)f->dims[1];
    for (int64_t i = 0; s->captions && i < s->n; i++) {
        int k = 0;
        for (char *line; (line = line_of(s->captions[i], k)); k++) {
            double wide = ls_svg_width(line, LETTER);
            if (wide > WIDEST) wide = WIDEST;
            if (wide > width) width = wide;
            free(line);
        }
        if (k > lines) lines = k;
    }
    return (cell){(int)width + 1, (int)f->dims[0] + lines * LINE};
}

static void put_caption(const char *caption, int x, int y, int width, ls_buf *out) {
    int k = 0;
    for (char *line; (line = line_of(caption, k)); k++) {
        char *fitting = ls_svg_fit(line, LETTER, width);
        ls_svg_put_text(&(ls_svg_text){.x = x, .y = y + k * LINE, .text = fitting, .color = LS_INK},
                        out);
        free(fitting);
        free(line);
    }
}

static ls_status put_image(const ls_field *f, const uint8_t *image, int x, int y, ls_buf *out,
                           ls_error *e) {
    ls_buf png = {0};
    ls_status s =
        ls_png_encode(&(ls_pixels){image, f->dims[1], f->dims[0], (int)f->dims[2]}, &png, e);
    if (s == LS_OK) {
        char *text = ls_base64_encode(png.data, png.len);
        ls_buf_printf(out, "<image x=\"%d\" y=\"%d\" width=\"%lld\" height=\"%lld\" href=\"", x, y,
                      (long long)f->dims[1], (long long)f->dims[0]);
        ls_buf_printf(out, "data:image/png;base64,%s\"/>\n", text);
        free(text);
    }
    ls_buf_free(&png);
    return s;
}

/* The smallest number whose square is at least n. */
static int64_t columns_for(int64_t n) {
    int64_t c = 1;
    while (c * c < n) c++;
    return c;
}

static ls_status draw(const ls_sheet *s, const ls_field *f, ls_buf *out, ls_error *e) {
    int columns = (int)columns_for(s->n), rows = (int)(s->n + columns - 1) / columns;
    cell c = measure(s, f);
    uint8_t *sample = ls_alloc(s->source->nbytes);
    ls_status status = LS_OK;
    ls_svg_begin(GAP + columns * (c.width + GAP), GAP + rows * (c.height + GAP), out);
    for (int i = 0; i < s->n && status == LS_OK; i++) {
        int x = GAP + i % columns * (c.width + GAP), y = GAP + i / columns * (c.height + GAP);
        if (s->source->read(s->source, s->samples[i], sample, NULL) == LS_OK)
            status = put_image(f, sample + f->offset, x, y, out, e);
        if (s->captions) put_caption(s->captions[i], x, y + (int)f->dims[0] + LETTER, c.width, out);
    }
    ls_buf_printf(out, "</svg>\n");
    free(sample);
    return status;
}

ls_status ls_sheet_write(const ls_sheet *s, const char *path, ls_file_writer *write, ls_error *e) {
    const ls_field *f = ls_source_image(s->source);
    if (!f || s->n < 1)
        return ls_fail(e, LS_EINVAL, "%s: there are no images for a contact sheet", path);
    if ((int64_t)f->nbytes > MOST_NBYTES / s->n)
        return ls_fail(e, LS_EINVAL,
                       "%s: a sheet of %lld images of %lld x %lld pixels is too large; choose "
                       "fewer images",
                       path, (long long)s->n, (long long)f->dims[0], (long long)f->dims[1]);
    ls_buf svg = {0};
    ls_status status = draw(s, f, &svg, e);
    if (status == LS_OK) status = write(path, svg.data, svg.len, e);
    ls_buf_free(&svg);
    return status;
}

/* ---- of what a survey has found ---- */

typedef struct picked_sample {
    uint64_t sample;
    int32_t label; /* -1: none */
} picked_sample;

static picked_sample picked_of(const ls_survey *c, uint64_t i, uint8_t *sample) {
    picked_sample p = {i, -1};
    if (c->label && c->source->read(c->source, i, sample, NULL) == LS_OK)
        memcpy(&p.label, sample + c->label->offset, sizeof p.label);
    return p;
}

/* Images of a class stand together. */
static int by_label(const void *a, const void *b) {
    const picked_sample *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

/* The name of the class, or its number. */
static char *caption_of(const ls_source *s, int32_t label) {
    bool named = label >= 0 && label < s->nclasses;
    return named ? ls_strdup(s->classes[label]) : ls_format("%d", label);
}

ls_status ls_sheet_of(const ls_survey *c, int64_t n, const char *path, ls_file_writer *write,
                      ls_error *e) {
    size_t npicked = 0;
    uint64_t *samples = ls_survey_pick(c, (size_t)n, &npicked);
    picked_sample *list = LS_NEW_ARRAY(picked_sample, npicked + 1);
    char **captions = LS_NEW_ARRAY(char *, npicked + 1);
    uint8_t *sample = ls_alloc(c->source->nbytes);
    for (size_t i = 0; i < npicked; i++) list[i] = picked_of(c, samples[i], sample);
    qsort(list, npicked, sizeof *list, by_label);
    for (size_t i = 0; i < npicked; i++) {
        samples[i] = list[i].sample;
        captions[i] = caption_of(c->source, list[i].label);
    }
    ls_sheet sheet = {c->source, samples, c->label ? captions : NULL, (int64_t)npicked};
    ls_status status = ls_sheet_write(&sheet, path, write, e);
    for (size_t i = 0; i < npicked; i++) free(captions[i]);
    free(captions);
    free(list);
    free(samples);
    free(sample);
    return status;
}
