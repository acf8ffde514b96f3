/* canvas.c - see canvas.h. */
#include "report/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/png.h"
#include "base/utf8.h"
#include "report/letters.h"
#include "report/svg.h"

void ls_canvas_open(ls_canvas *c, int width, int height, bool is_svg) {
    *c = (ls_canvas){.is_svg = is_svg, .width = width, .height = height};
    if (is_svg) {
        ls_buf_printf(
            &c->svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"" LS_SVG_INK
            "\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            width, height, width, height);
        return;
    }
    size_t nbytes = (size_t)width * (size_t)height * 3;
    c->pixels = ls_alloc(nbytes);
    memset(c->pixels, 0xff, nbytes);
}

void ls_canvas_close(ls_canvas *c) {
    ls_buf_free(&c->svg);
    free(c->pixels);
    *c = (ls_canvas){0};
}

ls_status ls_canvas_write(ls_canvas *c, const char *path, ls_file_writer *write, ls_error *e) {
    ls_pixels pixels = {c->pixels, c->width, c->height, 3};
    if (!c->is_svg) return ls_png_write(path, &pixels, write, e);
    ls_buf_printf(&c->svg, "</svg>\n");
    return write(path, c->svg.data, c->svg.len, e);
}

/* ---- pixels ---- */

static void set_pixel(ls_canvas *c, int x, int y, int color) {
    if (x < 0 || y < 0 || x >= c->width || y >= c->height) return;
    uint8_t *p = c->pixels + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
    p[0] = (uint8_t)(color >> 16);
    p[1] = (uint8_t)(color >> 8);
    p[2] = (uint8_t)color;
}

static void paint_box(ls_canvas *c, const ls_canvas_box *b) {
    int x0 = (int)lround(b->x), y0 = (int)lround(b->y), x1 = (int)lround(b->x + b->width),
        y1 = (int)lround(b->y + b->height);
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            bool on_line = x == x0 || x == x1 || y == y0 || y == y1;
            set_pixel(c, x, y, on_line ? b->line : b->fill);
        }
}

/* Where a text's pixels go: (x, y) is the start of its baseline. */
typedef struct pen {
    ls_canvas *c;
    int x, y, color;
    bool bold, turned;
} pen;

/* A pixel `right` of the pen and `down` from the baseline. */
static void dot(const pen *p, int right, int down) {
    for (int more = 0; more <= (p->bold ? 1 : 0); more++) {
        int along = right + more;
        if (p->turned)
            set_pixel(p->c, p->x + down, p->y - along, p->color);
        else
            set_pixel(p->c, p->x + along, p->y + down, p->color);
    }
}

static void paint_letter(const pen *p, int at, uint32_t point) {
    const uint8_t *rows = ls_letter(point);
    for (int y = 0; y < LS_LETTER_HEIGHT; y++)
        for (int x = 0; x < LS_LETTER_WIDTH; x++)
            if (rows[y] >> (LS_LETTER_WIDTH - 1 - x) & 1) dot(p, at + x, y - LS_LETTER_BASE + 1);
}

/* Paints the letters of a text, unless the pen has no canvas; returns its width. */
static int paint_letters(const pen *p, const char *text) {
    int at = 0, step = LS_LETTER_WIDTH + p->bold;
    for (size_t n = strlen(text), length; n; n -= length, text += length, at += step) {
        uint32_t point = 0;
        length = ls_utf8_decode(text, n, &point);
        if (!length) length = 1;
        if (p->c) paint_letter(p, at, point);
    }
    return at;
}

static void paint_text(ls_canvas *c, const ls_canvas_text *t) {
    pen p = {.color = t->color, .bold = t->is_title, .turned = t->turned};
    int width = paint_letters(&p, t->text);
    int back = t->align == LS_ALIGN_MIDDLE ? width / 2 : t->align == LS_ALIGN_RIGHT ? width : 0;
    p.c = c;
    p.x = (int)lround(t->x) - (t->turned ? 0 : back);
    p.y = (int)lround(t->y) + (t->turned ? back : 0);
    paint_letters(&p, t->text);
}

/* ---- both ---- */

void ls_canvas_box_add(ls_canvas *c, const ls_canvas_box *b) {
    if (!c->is_svg) {
        paint_box(c, b);
        return;
    }
    ls_buf_printf(&c->svg,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%g\" height=\"%g\" fill=\"#%06x\" "
                  "stroke=\"#%06x\"><title>",
                  b->x, b->y, b->width, b->height, (unsigned)b->fill, (unsigned)b->line);
    ls_svg_escape(b->title, &c->svg);
    ls_buf_printf(&c->svg, "</title></rect>\n");
}

void ls_canvas_text_add(ls_canvas *c, const ls_canvas_text *t) {
    static const char *const aligns[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    if (!c->is_svg) {
        paint_text(c, t);
        return;
    }
    ls_buf_printf(&c->svg, "<text x=\"%.1f\" y=\"%.1f\"%s", t->x, t->y, aligns[t->align]);
    if (t->color != LS_CANVAS_INK) ls_buf_printf(&c->svg, " fill=\"#%06x\"", (unsigned)t->color);
    if (t->is_title) ls_buf_printf(&c->svg, " font-size=\"15\" font-weight=\"bold\"");
    if (t->turned) ls_buf_printf(&c->svg, " transform=\"rotate(-90 %.1f %.1f)\"", t->x, t->y);
    ls_buf_printf(&c->svg, ">");
    ls_svg_escape(t->text, &c->svg);
    ls_buf_printf(&c->svg, "</text>\n");
}
