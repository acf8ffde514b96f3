/* canvas.h - a picture of rectangles and texts, drawn as SVG or as pixels.
 *
 * Coordinates are pixels from the upper left corner; a text's y is its baseline. */
#ifndef LS_REPORT_CANVAS_H
#define LS_REPORT_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/mem.h"

enum { LS_CANVAS_INK = 0x1f2933, LS_CANVAS_GREY = 0x616e7c, LS_CANVAS_GRID = 0xe4e7eb };
enum { LS_CANVAS_WHITE = 0xffffff };

typedef struct ls_canvas_box {
    double x, y, width, height;
    int fill, line;    /* red, green, blue; line: of the border */
    const char *title; /* of an SVG, where the pointer rests on it */
} ls_canvas_box;

typedef enum ls_canvas_align { LS_ALIGN_LEFT, LS_ALIGN_MIDDLE, LS_ALIGN_RIGHT } ls_canvas_align;

typedef struct ls_canvas_text {
    double x, y;
    const char *text; /* UTF-8 */
    ls_canvas_align align;
    int color;
    bool is_title; /* larger and bold */
    bool turned;   /* upwards, around (x, y) */
} ls_canvas_text;

typedef struct ls_canvas {
    bool is_svg;
    int width, height;
    ls_buf svg;      /* the text of the picture, so far */
    uint8_t *pixels; /* [height][width][3] */
} ls_canvas;

/* White. */
void ls_canvas_open(ls_canvas *, int width, int height, bool is_svg);
void ls_canvas_box_add(ls_canvas *, const ls_canvas_box *);
void ls_canvas_text_add(ls_canvas *, const ls_canvas_text *);
/* LS_EIO. */
ls_status ls_canvas_write(ls_canvas *, const char *path, ls_file_writer *, ls_error *);
void ls_canvas_close(ls_canvas *);

#endif
