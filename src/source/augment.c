/* augment.c - see augment.h. Steps only move pixels or hide them, so they are first put together:
 * which pixel of the image comes first, in which direction the columns run, and which rectangles
 * are visible or cut out. Then each row is copied once. */
#include "source/augment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* ---- the list ---- */

enum { LARGEST = 65536 };

static ls_status set_probability(const char *where, const char *value, ls_augment_step *s,
                                 ls_error *e) {
    char *end = NULL;
    s->p = strtod(value, &end);
    bool number = *value && !*end && strspn(value, "+-.0123456789eE") == strlen(value);
    if (number && s->p >= 0 && s->p <= 1) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: flip: '%.60s' is not a probability from 0 to 1", where,
                   value);
}

/* A whole number from 1 to LARGEST. */
static bool read_size(const char *text, const char **end_p, int64_t *size_p) {
    int64_t size = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && size <= LARGEST; at++) size = 10 * size + (*at - '0');
    *end_p = at;
    *size_p = size;
    return at > text && size >= 1 && size <= LARGEST;
}

static ls_status set_size(const char *where, const char *name, const char *value,
                          ls_augment_step *s, ls_error *e) {
    const char *end = value;
    bool crop = s->kind == LS_AUGMENT_CROP, good = read_size(value, &end, &s->height);
    s->width = s->height;
    if (good && crop && *end == 'x') good = read_size(end + 1, &end, &s->width);
    if (good && !*end) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not %s from 1 to %d", where, name, value,
                   crop ? "a size such as 28 or 28x24 (height x width)," : "a number of pixels",
                   LARGEST);
}

static ls_status read_step(char *text, const char *where, ls_augment_step *s, ls_error *e) {
    static const char *const names[] = {[LS_AUGMENT_FLIP] = "flip",
                                        [LS_AUGMENT_PAD] = "pad",
                                        [LS_AUGMENT_CROP] = "crop",
                                        [LS_AUGMENT_CUTOUT] = "cutout"};
    char *value = strchr(text, '=');
    if (strchr(text, '\t'))
        return ls_fail(e, LS_EINVAL,
                       "%s: has several steps in one item; each is an item of its own, since "
                       "their order matters",
                       where);
    *value++ = 0;
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++) {
        if (strcmp(text, names[k]) != 0) continue;
        *s = (ls_augment_step){.kind = (ls_augment_kind)k};
        return k == LS_AUGMENT_FLIP ? set_probability(where, value, s, e)
                                    : set_size(where, names[k], value, s, e);
    }
    return ls_fail(e, LS_EINVAL,
                   "%s: '%.60s' is not a step; possible are flip, pad, crop and cutout", where,
                   text);
}

ls_status ls_augment_read(const char *text, ls_augment *a_p, ls_error *e) {
    char *all = ls_strdup(text), *rest = *all ? all : NULL, place[64];
    ls_status s = LS_OK;
    ls_augment a = {0};
    for (char *line; s == LS_OK && (line = strsep(&rest, "\n")); a.nsteps++) {
        snprintf(place, sizeof place, "data.augment: step %d", a.nsteps + 1);
        if (a.nsteps == LS_AUGMENT_STEPS)
            s = ls_fail(e, LS_EINVAL, "%s: at most %d steps are possible", place, LS_AUGMENT_STEPS);
        else
            s = read_step(line, place, &a.steps[a.nsteps], e);
        if (s != LS_OK) break;
    }
    free(all);
    if (s == LS_OK) *a_p = a;
    return s;
}

ls_status ls_augment_shape(const ls_augment *a, const char *what, ls_field *image, ls_error *e) {
    int64_t *h = &image->dims[0], *w = &image->dims[1];
    for (int i = 0; i < a->nsteps; i++) {
        const ls_augment_step *s = &a->steps[i];
        if (s->kind == LS_AUGMENT_PAD) {
            *h += 2 * s->height;
            *w += 2 * s->width;
        }
        if (s->kind != LS_AUGMENT_CROP) continue;
        if (s->height > *h || s->width > *w)
            return ls_fail(e, LS_EINVAL,
                           "%s: '%s' is %lld pixels high and %lld wide at step %d of data.augment, "
                           "which crops to %lldx%lld; pad it first, or crop less",
                           what, image->name, (long long)*h, (long long)*w, i + 1,
                           (long long)s->height, (long long)s->width);
        *h = s->height;
        *w = s->width;
    }
    return LS_OK;
}

bool ls_augment_shape_before(const ls_augment *a, ls_field *image) {
    int64_t pads = 0;
    for (int i = 0; i < a->nsteps; i++) {
        if (a->steps[i].kind == LS_AUGMENT_CROP) return false;
        if (a->steps[i].kind == LS_AUGMENT_PAD) pads += 2 * a->steps[i].height;
    }
    if (pads >= image->dims[0] || pads >= image->dims[1]) return false;
    image->dims[0] -= pads;
    image->dims[1] -= pads;
    return true;
}

/* ---- the steps, put together ---- */

/* Rows [top, bottom), columns [left, right). */
typedef struct rect {
    int64_t top, bottom, left, right;
} rect;

typedef struct view {
    int64_t height, width;
    bool mirrored;
    int64_t row, column; /* where the image's first row and, unless mirrored, first column is now;
                            if mirrored: the column after its first one */
    rect visible;        /* pixels of the image; others are zeros */
    int ncuts;
    rect cuts[LS_AUGMENT_STEPS];
} view;

static void move_rect(rect *r, int64_t down, int64_t right) {
    r->top += down;
    r->bottom += down;
    r->left += right;
    r->right += right;
}

/* Moves everything, and gives the view another size. */
static void move(view *v, int64_t down, int64_t right, int64_t height, int64_t width) {
    v->height = height;
    v->width = width;
    v->row += down;
    v->column += right;
    move_rect(&v->visible, down, right);
    for (int i = 0; i < v->ncuts; i++) move_rect(&v->cuts[i], down, right);
}

static void mirror_rect(rect *r, int64_t width) {
    int64_t left = r->left;
    r->left = width - r->right;
    r->right = width - left;
}

static void mirror(view *v) {
    v->mirrored = !v->mirrored;
    v->column = v->width - v->column;
    mirror_rect(&v->visible, v->width);
    for (int i = 0; i < v->ncuts; i++) mirror_rect(&v->cuts[i], v->width);
}

static int64_t within(int64_t x, int64_t last) { return x < 0 ? 0 : x < last ? x : last; }

/* The part of r within a view; it may be empty. */
static rect clipped(const rect *r, const view *v) {
    return (rect){.top = within(r->top, v->height),
                  .bottom = within(r->bottom, v->height),
                  .left = within(r->left, v->width),
                  .right = within(r->right, v->width)};
}

/* A whole number in [0, n). */
static int64_t pick(uint32_t word, int64_t n) {
    return (int64_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

static void crop(view *v, const ls_augment_step *s, const uint32_t *random) {
    int64_t y = v->height - s->height, x = v->width - s->width;
    y = random ? pick(random[0], y + 1) : y / 2;
    x = random ? pick(random[1], x + 1) : x / 2;
    move(v, -y, -x, s->height, s->width);
    v->visible = clipped(&v->visible, v);
}

static void cut(view *v, const ls_augment_step *s, const uint32_t *random) {
    int64_t y = pick(random[0], v->height) - s->height / 2;
    int64_t x = pick(random[1], v->width) - s->width / 2;
    rect r = {y, y + s->height, x, x + s->width};
    v->cuts[v->ncuts++] = clipped(&r, v);
}

/* random NULL: for validation. */
static void take_step(view *v, const ls_augment_step *s, const uint32_t *random) {
    switch (s->kind) {
    case LS_AUGMENT_FLIP:
        if (random && (double)random[0] * 0x1p-32 < s->p) mirror(v);
        break;
    case LS_AUGMENT_PAD:
        move(v, s->height, s->width, v->height + 2 * s->height, v->width + 2 * s->width);
        break;
    case LS_AUGMENT_CROP: crop(v, s, random); break;
    case LS_AUGMENT_CUTOUT:
        if (random) cut(v, s, random);
        break;
    }
}

/* ---- pixels ---- */

static void copy_row(const view *v, const uint8_t *in, uint8_t *out, int64_t channels) {
    const rect *r = &v->visible;
    size_t pixel = (size_t)channels, n = (size_t)(r->right - r->left);
    memset(out, 0, (size_t)v->width * pixel);
    out += (size_t)r->left * pixel;
    if (n == 0) return;
    if (!v->mirrored) {
        memcpy(out, in + (size_t)(r->left - v->column) * pixel, n * pixel);
        return;
    }
    in += (size_t)(v->column - r->right) * pixel; /* its last pixel comes first */
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < pixel; c++) out[i * pixel + c] = in[(n - 1 - i) * pixel + c];
}

void ls_augment_apply(const ls_augment *a, const ls_draw *d, const ls_field *image,
                      const uint8_t *in, uint8_t *out) {
    int64_t channels = image->dims[2];
    size_t in_row = (size_t)(image->dims[1] * channels);
    view v = {.height = image->dims[0], .width = image->dims[1]};
    v.visible = (rect){0, v.height, 0, v.width};
    for (int i = 0; i < a->nsteps; i++) {
        uint32_t random[4];
        if (d)
            ls_random_words(d->seed, LS_STREAM_AUGMENT, d->epoch,
                            d->sample * (LS_AUGMENT_STEPS + 1) + (uint64_t)i, random);
        take_step(&v, &a->steps[i], d ? random : NULL);
    }
    size_t out_row = (size_t)(v.width * channels);
    for (int64_t y = 0; y < v.height; y++) {
        uint8_t *row = out + (size_t)y * out_row;
        if (y >= v.visible.top && y < v.visible.bottom)
            copy_row(&v, in + (size_t)(y - v.row) * in_row, row, channels);
        else
            memset(row, 0, out_row);
    }
    for (int i = 0; i < v.ncuts; i++) {
        rect r = clipped(&v.cuts[i], &v);
        for (int64_t y = r.top; y < r.bottom; y++)
            memset(out + (size_t)y * out_row + (size_t)(r.left * channels), 0,
                   (size_t)((r.right - r.left) * channels));
    }
}
