/* augment.c - see augment.h. Steps that only move pixels or hide them are first put together: which
 * pixel of the image comes first, in which direction the columns run, and which rectangles are
 * visible or cut out. Then each row is copied once. Between such moves are steps that compute new
 * pixels: of other colours, or scaled. */
#include "source/images/augment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "base/random.h"
#include "source/images/colours.h"
#include "source/images/resample.h"

/* ---- the list ---- */

enum { LARGEST = 65536 };

static bool is_number(const char *text, double *x_p) {
    char *end = NULL;
    *x_p = strtod(text, &end);
    return *text && !*end && strspn(text, "+-.0123456789eE") == strlen(text);
}

static ls_status set_probability(const char *where, const char *value, ls_augment_step *s,
                                 ls_error *e) {
    if (is_number(value, &s->p) && s->p >= 0 && s->p <= 1) return LS_OK;
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
    bool crop = s->kind == LS_AUGMENT_CROP || s->kind == LS_AUGMENT_RESIZED_CROP;
    bool good = read_size(value, &end, &s->height);
    s->width = s->height;
    if (good && crop && *end == 'x') good = read_size(end + 1, &end, &s->width);
    if (good && !*end) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not %s from 1 to %d", where, name, value,
                   crop ? "a size such as 28 or 28x24 (height x width)," : "a number of pixels",
                   LARGEST);
}

/* How much a colour changes: of hue at most half the circle. */
static ls_status set_change(const char *where, const char *name, const char *value,
                            ls_augment_step *s, ls_error *e) {
    double most = s->kind == LS_AUGMENT_HUE ? 0.5 : 10;
    if (is_number(value, &s->p) && s->p >= 0 && s->p <= most) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s: '%.60s' is not a number from 0 to %g", where, name, value,
                   most);
}

/* What follows the first pair of an item. */
static ls_status set_option(const char *where, const char *option, ls_augment_step *s,
                            ls_error *e) {
    static const char scale[] = "scale=";
    if (s->kind != LS_AUGMENT_RESIZED_CROP || strncmp(option, scale, sizeof scale - 1) != 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: has several steps in one item; each is an item of its own, since "
                       "their order matters",
                       where);
    const char *value = option + sizeof scale - 1;
    if (is_number(value, &s->scale) && s->scale > 0 && s->scale <= 1) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: scale: '%.60s' is not a part of the image's area, above 0 and at most 1",
                   where, value);
}

static ls_status set_value(const char *where, const char *name, const char *value,
                           ls_augment_step *s, ls_error *e) {
    if (s->kind == LS_AUGMENT_FLIP) return set_probability(where, value, s, e);
    if (s->kind >= LS_AUGMENT_BRIGHTNESS) return set_change(where, name, value, s, e);
    return set_size(where, name, value, s, e);
}

static ls_status read_step(char *text, const char *where, ls_augment_step *s, ls_error *e) {
    static const char *const names[] = {
        [LS_AUGMENT_FLIP] = "flip",
        [LS_AUGMENT_PAD] = "pad",
        [LS_AUGMENT_CROP] = "crop",
        [LS_AUGMENT_CUTOUT] = "cutout",
        [LS_AUGMENT_RESIZED_CROP] = "resized_crop",
        [LS_AUGMENT_BRIGHTNESS] = "brightness",
        [LS_AUGMENT_CONTRAST] = "contrast",
        [LS_AUGMENT_SATURATION] = "saturation",
        [LS_AUGMENT_HUE] = "hue",
    };
    char *rest = text, *first = strsep(&rest, "\t"), *value = strchr(first, '=');
    *value++ = 0;
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++) {
        if (strcmp(first, names[k]) != 0) continue;
        *s = (ls_augment_step){.kind = (ls_augment_kind)k, .scale = 0.08};
        if (rest) LS_TRY(set_option(where, rest, s, e));
        return set_value(where, names[k], value, s, e);
    }
    return ls_fail(e, LS_EINVAL,
                   "%s: '%.60s' is not a step; possible are flip, pad, crop, cutout, resized_crop, "
                   "brightness, contrast, saturation and hue",
                   where, first);
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
        bool is_coloured = s->kind == LS_AUGMENT_SATURATION || s->kind == LS_AUGMENT_HUE;
        if (is_coloured && image->dims[2] == 1)
            return ls_fail(e, LS_EINVAL,
                           "%s: '%s' is gray, and step %d of data.augment changes its colours; "
                           "remove the step",
                           what, image->name, i + 1);
        if (s->kind == LS_AUGMENT_RESIZED_CROP) {
            *h = s->height;
            *w = s->width;
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
        ls_augment_kind kind = a->steps[i].kind;
        if (kind == LS_AUGMENT_CROP || kind == LS_AUGMENT_RESIZED_CROP) return false;
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
                          * if mirrored: the column after its first one */
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
    default: break; /* it computes pixels */
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

/* Makes the moves of a view. */
static void move_pixels(const view *v, ls_image_shape s, const uint8_t *in, uint8_t *out) {
    int64_t channels = s.channels;
    size_t in_row = (size_t)(s.width * channels), out_row = (size_t)(v->width * channels);
    for (int64_t y = 0; y < v->height; y++) {
        uint8_t *row = out + (size_t)y * out_row;
        if (y >= v->visible.top && y < v->visible.bottom)
            copy_row(v, in + (size_t)(y - v->row) * in_row, row, channels);
        else
            memset(row, 0, out_row);
    }
    for (int i = 0; i < v->ncuts; i++) {
        rect r = clipped(&v->cuts[i], v);
        for (int64_t y = r.top; y < r.bottom; y++)
            memset(out + (size_t)y * out_row + (size_t)(r.left * channels), 0,
                   (size_t)((r.right - r.left) * channels));
    }
}

/* ---- resized crops ---- */

/* The largest part of the image with the ratio of the step's sides, at the centre. */
static rect whole_of(ls_image_shape s, const ls_augment_step *step) {
    int64_t h = s.height, w = s.width;
    if (h * step->width > w * step->height)
        h = (w * step->height + step->width / 2) / step->width;
    else
        w = (h * step->width + step->height / 2) / step->height;
    h = h < 1 ? 1 : h;
    w = w < 1 ? 1 : w;
    int64_t top = (s.height - h) / 2, left = (s.width - w) / 2;
    return (rect){top, top + h, left, left + w};
}

static double uniform(uint32_t word, double low, double high) {
    return low + (high - low) * ((double)word * 0x1p-32);
}

/* A random part; if none of ten fits into the image, the largest at its centre. */
static rect draw_part(const ls_draw *d, uint64_t place, ls_image_shape s,
                      const ls_augment_step *step) {
    enum { TRIES = 10 };
    double area = (double)s.height * (double)s.width;
    for (uint64_t k = 0; k < TRIES; k++) {
        uint32_t random[4];
        ls_random_words(d->seed, LS_STREAM_PARTS, d->epoch, place * TRIES + k, random);
        double part = area * uniform(random[0], step->scale, 1);
        double ratio = ls_math_exp(uniform(random[1], ls_math_log(0.75), -ls_math_log(0.75)));
        int64_t w = (int64_t)floor(sqrt(part * ratio) + 0.5);
        int64_t h = (int64_t)floor(sqrt(part / ratio) + 0.5);
        if (w < 1 || h < 1 || w > s.width || h > s.height) continue;
        int64_t top = pick(random[2], s.height - h + 1), left = pick(random[3], s.width - w + 1);
        return (rect){top, top + h, left, left + w};
    }
    return whole_of(s, step);
}

/* ---- steps that compute pixels ---- */

static bool is_move(const ls_augment_step *s) { return s->kind <= LS_AUGMENT_CUTOUT; }

/* A factor from 1 - p to 1 + p, at least 0. */
static int32_t factor_of(const ls_augment_step *s, uint32_t word) {
    double low = s->p < 1 ? 1 - s->p : 0;
    return (int32_t)floor(uniform(word, low, 1 + s->p) * LS_COLOURS_ONE + 0.5);
}

static void change_colours(const ls_augment_step *s, ls_image_shape shape, uint32_t word,
                           uint8_t *pixels) {
    size_t n = (size_t)shape.height * (size_t)shape.width;
    double turn = floor(uniform(word, -s->p, s->p) * LS_COLOURS_ONE + 0.5);
    switch (s->kind) {
    case LS_AUGMENT_BRIGHTNESS:
        ls_colours_brightness(pixels, n, shape.channels, factor_of(s, word));
        break;
    case LS_AUGMENT_CONTRAST:
        ls_colours_contrast(pixels, n, shape.channels, factor_of(s, word));
        break;
    case LS_AUGMENT_SATURATION: ls_colours_saturation(pixels, n, factor_of(s, word)); break;
    case LS_AUGMENT_HUE: ls_colours_hue(pixels, n, (int32_t)turn); break;
    default: break;
    }
}

/* Pixels on their way through the steps. */
typedef struct stage {
    ls_image_shape shape;
    const uint8_t *in; /* their place */
    uint8_t *own;      /* the same, if it belongs to the stage; else NULL */
    uint8_t *out;      /* where they end */
} stage;

static size_t nbytes_of(ls_image_shape s) {
    return (size_t)s.height * (size_t)s.width * (size_t)s.channels;
}

/* Room for pixels of this shape: the last place, or one of their own. */
static uint8_t *room_for(const stage *g, ls_image_shape s, bool last) {
    return last ? g->out : ls_alloc(nbytes_of(s));
}

static void advance(stage *g, ls_image_shape s, uint8_t *to) {
    free(g->own);
    g->shape = s;
    g->in = to;
    g->own = to == g->out ? NULL : to;
}

static void draw_words(const ls_draw *d, int i, uint32_t random[4]) {
    ls_random_words(d->seed, LS_STREAM_AUGMENT, d->epoch,
                    d->sample * (LS_AUGMENT_STEPS + 1) + (uint64_t)i, random);
}

/* Makes steps [i, end), which are moves. */
static void make_moves(stage *g, const ls_augment *a, const ls_draw *d, int i, int end) {
    view v = {.height = g->shape.height, .width = g->shape.width};
    v.visible = (rect){0, v.height, 0, v.width};
    for (; i < end; i++) {
        uint32_t random[4];
        if (d) draw_words(d, i, random);
        take_step(&v, &a->steps[i], d ? random : NULL);
    }
    ls_image_shape s = {(int)v.height, (int)v.width, g->shape.channels};
    uint8_t *to = room_for(g, s, end == a->nsteps);
    move_pixels(&v, g->shape, g->in, to);
    advance(g, s, to);
}

static void resize_part(stage *g, const ls_augment *a, const ls_draw *d, int i) {
    const ls_augment_step *step = &a->steps[i];
    ls_image_shape s = {(int)step->height, (int)step->width, g->shape.channels};
    rect r = whole_of(g->shape, step);
    if (d) r = draw_part(d, d->sample * (LS_AUGMENT_STEPS + 1) + (uint64_t)i, g->shape, step);
    view v = {.height = r.bottom - r.top,
              .width = r.right - r.left,
              .row = -r.top,
              .column = -r.left,
              .visible = {0, r.bottom - r.top, 0, r.right - r.left}};
    ls_image_shape part = {(int)v.height, (int)v.width, s.channels};
    uint8_t *to = room_for(g, s, i + 1 == a->nsteps), *pixels = ls_alloc(nbytes_of(part));
    move_pixels(&v, g->shape, g->in, pixels);
    ls_resample(pixels, part, &(ls_resample_window){s.height, s.width, 0, 0, s.height, s.width},
                to);
    free(pixels);
    advance(g, s, to);
}

static void recolour(stage *g, const ls_augment *a, const ls_draw *d, int i) {
    bool last = i + 1 == a->nsteps;
    if (!g->own || last) {
        uint8_t *to = room_for(g, g->shape, last);
        memcpy(to, g->in, nbytes_of(g->shape));
        advance(g, g->shape, to);
    }
    uint32_t random[4];
    if (!d) return;
    draw_words(d, i, random);
    change_colours(&a->steps[i], g->shape, random[0], (uint8_t *)(uintptr_t)g->in);
}

void ls_augment_apply(const ls_augment *a, const ls_draw *d, const ls_field *image,
                      const uint8_t *in, uint8_t *out) {
    stage g = {{(int)image->dims[0], (int)image->dims[1], (int)image->dims[2]}, in, NULL, out};
    if (a->nsteps == 0) memcpy(out, in, nbytes_of(g.shape));
    for (int i = 0, end = 0; i < a->nsteps; i = end) {
        for (end = i; end < a->nsteps && is_move(&a->steps[end]);) end++;
        if (end > i) {
            make_moves(&g, a, d, i, end);
        } else {
            end = i + 1;
            if (a->steps[i].kind == LS_AUGMENT_RESIZED_CROP)
                resize_part(&g, a, d, i);
            else
                recolour(&g, a, d, i);
        }
    }
    free(g.own);
}
