/* frame_check.h - nothing of a picture lies outside of its frame, and no texts lie on each other.
 *
 * Reads the elements that our pictures have: rect, line, circle, polyline, path (of pairs "x,y", or
 * of "M" and "V") and text, whose width is estimated. A text of the class "m" or "e" is anchored as
 * such. */
#ifndef LS_TESTS_REPORT_FRAME_CHECK_H
#define LS_TESTS_REPORT_FRAME_CHECK_H

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/svg.h"
#include "test.h"

enum { FRAME_TEXTS = 4000 };

typedef struct frame_box {
    double x0, y0, x1, y1;
} frame_box;

typedef struct frame {
    double width, height, size; /* size: of letters, now */
    double outer;               /* that of the picture */
    bool middle;                /* texts of the group that is open are anchored in the middle */
    bool outside[8];            /* [depth] and those of the groups around it */
    int depth;
    frame_box *texts; /* [ntexts] */
    int ntexts;
} frame;

/* The attribute of an element that ends at `end`, or NULL. */
static inline const char *frame_value(const char *element, const char *end, const char *name) {
    char key[32];
    int n = snprintf(key, sizeof key, " %s=\"", name);
    const char *at = memmem(element, (size_t)(end - element), key, (size_t)n);
    return at ? at + n : NULL;
}

static inline double frame_number(const char *element, const char *end, const char *name) {
    const char *at = frame_value(element, end, name);
    return at ? strtod(at, NULL) : 0;
}

static inline void frame_has(const frame *f, const char *element, frame_box b) {
    if (b.x0 >= -0.5 && b.y0 >= -0.5 && b.x1 <= f->width + 0.5 && b.y1 <= f->height + 0.5) return;
    fail_msg("outside of %g x %g: (%g, %g) to (%g, %g), %.120s", f->width, f->height, b.x0, b.y0,
             b.x1, b.y1, element);
}

/* Pairs "x,y" up to the quotation mark, with letters and spaces before them. */
static inline void frame_points(const frame *f, const char *element, const char *p) {
    for (; p && *p != '"'; p++) {
        if (!strchr("-.0123456789", *p)) continue;
        char *next;
        double x = strtod(p, &next), y = strtod(next + 1, &next);
        assert_true(next > p + 1);
        frame_has(f, element, (frame_box){x, y, x, y});
        p = next - 1;
    }
}

static inline void frame_path(const frame *f, const char *s, const char *d) {
    double x = 0, from = 0, to = 0;
    const char *pairs = strchr(d, ',');
    if (pairs && pairs < strchr(d, '"')) {
        frame_points(f, s, d);
        return;
    }
    assert_int_equal(sscanf(d, "M%lf %lfV%lf", &x, &from, &to), 3);
    frame_has(f, s, (frame_box){x, from, x, from});
    frame_has(f, s, (frame_box){x, to, x, to});
}

/* The text of an element, with its numeric entities as characters. */
static inline char *frame_content(const char *from) {
    const char *end = strchr(from, '<');
    char *text = calloc(1, (size_t)(end - from) + 1);
    for (char *to = text; from < end; from++)
        if (*from == '&') {
            *to++ = (char)strtol(from + 2, NULL, 10);
            from = strchr(from, ';');
        } else {
            *to++ = *from;
        }
    return text;
}

static inline bool frame_is(const char *element, const char *end, const char *class,
                            const char *anchor) {
    const char *a = frame_value(element, end, "text-anchor"),
               *c = frame_value(element, end, "class");
    const char *stop = c ? strchr(c, '"') : NULL;
    if (a && strncmp(a, anchor, strlen(anchor)) == 0) return true;
    for (; c && c < stop; c++)
        if (*c == *class && (c[1] == '"' || c[1] == ' ')) return true;
    return false;
}

static inline void frame_text(frame *f, const char *element, const char *end) {
    double x = frame_number(element, end, "x"), y = frame_number(element, end, "y");
    double size = frame_value(element, end, "font-size") ? frame_number(element, end, "font-size")
                  : frame_is(element, end, "h", "title") ? 15
                                                         : f->size;
    assert_true(size > 0);
    char *text = frame_content(end + 1);
    double width = ls_svg_width(text, size);
    double back = f->middle || frame_is(element, end, "m", "middle") ? width / 2
                  : frame_is(element, end, "e", "end")               ? width
                                                                     : 0;
    free(text);
    frame_box b = {x - back, y - 0.7 * size, x - back + width, y + 0.2 * size};
    if (frame_value(element, end, "transform")) /* upwards */
        b = (frame_box){x - 0.7 * size, y + back - width, x + 0.2 * size, y + back};
    frame_has(f, element, b);
    for (int i = 0; i < f->ntexts; i++) {
        const frame_box *o = &f->texts[i];
        if (b.x0 < o->x1 && o->x0 < b.x1 && b.y0 < o->y1 && o->y0 < b.y1)
            fail_msg("lies on another text: %.120s", element);
    }
    assert_in_range(f->ntexts, 0, FRAME_TEXTS - 1);
    f->texts[f->ntexts++] = b;
}

/* No attribute is a number that is none: "nan", "-inf". */
static inline void frame_numbers(const char *s, const char *end) {
    static const char *const none[] = {"nan", "inf"};
    for (int i = 0; i < 2; i++)
        for (const char *at = s; (at = memmem(at, (size_t)(end - at), none[i], 3)); at += 3)
            if (strchr("\" ,-MV", at[-1])) fail_msg("no number: %.120s", s);
}

static inline void frame_element(frame *f, const char *s, const char *end) {
    frame_numbers(s, end);
    double x = frame_number(s, end, "x"), y = frame_number(s, end, "y");
    double r = frame_number(s, end, "r"), cx = frame_number(s, end, "cx"),
           cy = frame_number(s, end, "cy");
    if (strncmp(s, "<rect width=\"100%", 17) == 0) return;
    if (strncmp(s, "<rect", 5) == 0)
        frame_has(f, s,
                  (frame_box){x, y, x + frame_number(s, end, "width"),
                              y + frame_number(s, end, "height")});
    if (strncmp(s, "<line", 5) == 0) {
        double x1 = frame_number(s, end, "x1"), x2 = frame_number(s, end, "x2");
        double y1 = frame_number(s, end, "y1"), y2 = frame_number(s, end, "y2");
        frame_has(f, s, (frame_box){x1, y1, x1, y1});
        frame_has(f, s, (frame_box){x2, y2, x2, y2});
    }
    if (strncmp(s, "<circle", 7) == 0) frame_has(f, s, (frame_box){cx - r, cy - r, cx + r, cy + r});
    if (strncmp(s, "<polyline", 9) == 0) frame_points(f, s, frame_value(s, end, "points"));
    if (strncmp(s, "<path", 5) == 0) frame_path(f, s, frame_value(s, end, "d"));
    if (strncmp(s, "<text", 5) == 0) frame_text(f, s, end);
    if (strncmp(s, "<g", 2) == 0 && frame_value(s, end, "font-size"))
        f->size = frame_number(s, end, "font-size");
    if (strncmp(s, "<g", 2) == 0) {
        const char *anchor = frame_value(s, end, "text-anchor");
        assert_in_range(f->depth, 0, 7);
        f->outside[f->depth++] = f->middle;
        if (anchor) f->middle = strncmp(anchor, "middle", 6) == 0;
    }
    if (strncmp(s, "</g>", 4) == 0) {
        assert_true(f->depth > 0);
        f->middle = f->outside[--f->depth];
        f->size = f->outer;
    }
}

static inline void frame_check(const char *svg) {
    frame f = {.texts = calloc(FRAME_TEXTS, sizeof *f.texts)};
    const char *end = strchr(svg, '>');
    assert_int_equal(strncmp(svg, "<svg ", 5), 0);
    f.width = frame_number(svg, end, "width");
    f.height = frame_number(svg, end, "height");
    const char *box = frame_value(svg, end, "viewBox");
    if (f.width == 0 && box) sscanf(box, "0 0 %lf %lf", &f.width, &f.height);
    f.size = f.outer = frame_number(svg, end, "font-size");
    assert_true(f.width > 0 && f.height > 0);
    for (const char *s = strchr(end, '<'); s; s = strchr(s + 1, '<')) {
        end = strchr(s, '>');
        assert_non_null(end);
        frame_element(&f, s, end);
    }
    assert_non_null(strstr(svg, "</svg>"));
    free(f.texts);
}

/* Checks a file; name: in the directory. */
static inline void frame_check_file(const char *directory, const char *name) {
    char *path = ls_format("%s/%s", directory, name);
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_file_read(path, 64 << 20, &b, &e), e);
    ls_buf_append(&b, "", 1);
    frame_check(b.data);
    ls_buf_free(&b);
    free(path);
}

#endif
