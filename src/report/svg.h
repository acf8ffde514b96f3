/* svg.h - what the pictures share: colours, text, ticks at round numbers. */
#ifndef LS_REPORT_SVG_H
#define LS_REPORT_SVG_H

#include "base/mem.h"

#define LS_SVG_INK  "#1f2933"
#define LS_SVG_GREY "#616e7c"
#define LS_SVG_GRID "#e4e7eb"

/* Colours of lines: those of M. Okabe and K. Ito (2008), which people who don't see red or green can
 * tell apart, with grey in place of yellow, which is too pale for a line. */
enum { LS_SVG_COLOURS = 8 };
extern const char *const ls_svg_colours[LS_SVG_COLOURS];

/* Appends a text with < > & and " escaped, and without control characters. */
void ls_svg_escape(const char *text, ls_buf *out);

/* About how wide a text is, in pixels, if its letters are `size` high. */
double ls_svg_width(const char *text, double size);
/* A copy of the text that is at most `width` wide: "…" stands for what its middle lacks. free() it. */
char *ls_svg_fit(const char *text, double size, double width);

/* 1, 2 or 5 times a power of ten, so that the range has about n ticks. */
double ls_svg_tick(double range, int n);

#endif
