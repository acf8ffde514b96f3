/* svg.h - what the pictures share: colours, text, ticks at round numbers. */
#ifndef LS_REPORT_SVG_H
#define LS_REPORT_SVG_H

#include <stdbool.h>

#include "base/mem.h"

#define LS_SVG_INK  "#1f2933"
#define LS_SVG_GREY "#616e7c"
#define LS_SVG_GRID "#e4e7eb"

/* Colours of lines: those of M. Okabe and K. Ito (2008), which colour-blind people can distinguish,
 * with grey in place of yellow, which is too pale for a line. */
enum { LS_SVG_COLOURS = 8 };
extern const char *const ls_svg_colours[LS_SVG_COLOURS];

/* Red, green, blue. */
enum {
    LS_INK = 0x1f2933,
    LS_GREY = 0x616e7c,
    LS_GRID = 0xe4e7eb,
    LS_WHITE = 0xffffff,
};

typedef struct ls_svg_box {
    double x, y, width, height;
    int fill, line;    /* line: the border's colour */
    const char *title; /* where the pointer rests on it */
} ls_svg_box;

typedef enum ls_svg_align { LS_ALIGN_LEFT, LS_ALIGN_MIDDLE, LS_ALIGN_RIGHT } ls_svg_align;

typedef struct ls_svg_text {
    double x, y;      /* pixels from the upper left corner, of the baseline */
    const char *text; /* UTF-8 */
    ls_svg_align align;
    int color;
    bool is_title; /* larger and bold */
    bool turned;   /* upwards, around (x, y) */
} ls_svg_text;

/* Begins a white picture; the caller appends "</svg>\n". */
void ls_svg_begin(int width, int height, ls_buf *out);
void ls_svg_put_box(const ls_svg_box *, ls_buf *out);
void ls_svg_put_text(const ls_svg_text *, ls_buf *out);

/* Appends a text with < > & and " escaped, and without control characters. */
void ls_svg_escape(const char *text, ls_buf *out);

/* About how wide a text is, in pixels, if its letters are `size` high. */
double ls_svg_width(const char *text, double size);
/* A copy of the text that is at most `width` wide: "…" replaces its middle. free() it. */
char *ls_svg_fit(const char *text, double size, double width);

/* 1, 2 or 5 times a power of ten, so that the range has about n ticks. */
double ls_svg_tick(double range, int n);

#endif
