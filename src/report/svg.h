/* svg.h - what the pictures share: colours, text, ticks at round numbers. */
#ifndef LS_REPORT_SVG_H
#define LS_REPORT_SVG_H

#include "base/mem.h"

#define LS_SVG_INK  "#1f2933"
#define LS_SVG_GREY "#616e7c"
#define LS_SVG_GRID "#e4e7eb"

/* Appends a text with < > & and " escaped, and without control characters. */
void ls_svg_escape(const char *text, ls_buf *out);

/* 1, 2 or 5 times a power of ten, so that the range has about n ticks. */
double ls_svg_tick(double range, int n);

#endif
