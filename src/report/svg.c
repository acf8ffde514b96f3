/* svg.c - see svg.h. */
#include "report/svg.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

const char *const ls_svg_colours[LS_SVG_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                    "#e69f00", "#56b4e9", "#000000", "#8a94a0"};

void ls_svg_escape(const char *text, ls_buf *out) {
    for (const char *s = text; *s; s++) {
        if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
            ls_buf_printf(out, "&#%d;", *s);
        else if ((unsigned char)*s >= 0x20)
            ls_buf_append(out, s, 1);
    }
}

void ls_svg_begin(int width, int height, ls_buf *out) {
    ls_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                  "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\" fill=\"" LS_SVG_INK
                  "\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                  width, height, width, height);
}

void ls_svg_put_box(const ls_svg_box *b, ls_buf *out) {
    ls_buf_printf(out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%g\" height=\"%g\" fill=\"#%06x\" "
                  "stroke=\"#%06x\"><title>",
                  b->x, b->y, b->width, b->height, (unsigned)b->fill, (unsigned)b->line);
    ls_svg_escape(b->title, out);
    ls_buf_printf(out, "</title></rect>\n");
}

void ls_svg_put_text(const ls_svg_text *t, ls_buf *out) {
    static const char *const aligns[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    ls_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s", t->x, t->y, aligns[t->align]);
    if (t->color != LS_INK) ls_buf_printf(out, " fill=\"#%06x\"", (unsigned)t->color);
    if (t->is_title) ls_buf_printf(out, " font-size=\"15\" font-weight=\"bold\"");
    if (t->turned) ls_buf_printf(out, " transform=\"rotate(-90 %.1f %.1f)\"", t->x, t->y);
    ls_buf_printf(out, ">");
    ls_svg_escape(t->text, out);
    ls_buf_printf(out, "</text>\n");
}

/* The bytes of the first character; its width is added. */
static size_t pass_letter(const char *text, double size, double *width) {
    enum { WIDE = 0x1100 }; /* from here on most scripts fill a square */
    uint32_t point = 0;
    size_t n = ls_utf8_decode(text, strlen(text), &point);
    *width += size * (point >= 0x2e80 || (point >= WIDE && point < 0x1200) ? 1 : 0.56);
    return n ? n : 1;
}

double ls_svg_width(const char *text, double size) {
    double width = 0;
    while (*text) text += pass_letter(text, size, &width);
    return width;
}

char *ls_svg_fit(const char *text, double size, double width) {
    static const char MORE[] = "\u2026";
    double all = ls_svg_width(text, size), used = 0, cut = 0, half = (width - size) / 2;
    const char *tail = text;
    size_t head = 0;
    if (all <= width) return ls_strdup(text);
    for (;;) {
        double with = used;
        size_t n = pass_letter(text + head, size, &with);
        if (with > half) break;
        head += n, used = with;
    }
    while (*tail && all - cut > half) tail += pass_letter(tail, size, &cut);
    return ls_format("%.*s%s%s", (int)head, text, MORE, tail);
}

double ls_svg_tick(double range, int n) {
    double raw = range / n, power = pow(10, floor(log10(raw))), m = raw / power;
    return power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}
