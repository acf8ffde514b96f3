/* fit.c - see fit.h. */
#include "source/images/fit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "source/images/colours.h"
#include "source/images/orientation.h"
#include "source/images/resample.h"
#include "source/note.h"

/* ---- keys ---- */

/* A whole number from 1 to LS_IMAGE_SIDE. */
static bool read_number(const char *text, const char **end_p, int64_t *x_p) {
    const char *at = text;
    *x_p = 0;
    for (; *at >= '0' && *at <= '9' && *x_p <= LS_IMAGE_SIDE; at++) *x_p = 10 * *x_p + (*at - '0');
    *end_p = at;
    return at > text && *x_p >= 1 && *x_p <= LS_IMAGE_SIDE;
}

/* One number: *width_p is 0. */
static ls_status read_size(const char *key, const char *text, int64_t *height_p, int64_t *width_p,
                           ls_error *e) {
    const char *end = text;
    if (!*text) return LS_OK;
    bool good = read_number(text, &end, height_p);
    if (good && (*end == 'x' || *end == '\n')) good = read_number(end + 1, &end, width_p);
    if (good && !*end) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "%s: '%.*s' is not a number of pixels, or a height and width such as 128x96, from "
        "1 to %d",
        key, (int)strcspn(text, "\n"), text, LS_IMAGE_SIDE);
}

ls_status ls_image_way_read(const char *resize, const char *crop, ls_image_way *w_p, ls_error *e) {
    ls_image_way w = {0};
    LS_TRY(read_size("data.resize", resize, &w.height, &w.width, e));
    LS_TRY(read_size("data.crop", crop, &w.crop_height, &w.crop_width, e));
    if (!w.width) {
        w.side = w.height;
        w.height = 0;
    }
    if (!w.crop_width) w.crop_width = w.crop_height;
    *w_p = w;
    return LS_OK;
}

bool ls_image_way_is_given(const ls_image_way *w) {
    return w->side || w->height || w->crop_height || w->channels;
}

/* ---- sizes ---- */

static int64_t height_of(uint32_t size) { return size >> 16; }
static int64_t width_of(uint32_t size) { return size & 0xffff; }

static int64_t shorter(uint32_t size) {
    return height_of(size) < width_of(size) ? height_of(size) : width_of(size);
}

void ls_image_sizes_add(ls_image_sizes *s, ls_image_seen seen) {
    ls_image_shape shape = seen.shape;
    s->list = ls_grow(s->list, s->n, sizeof *s->list);
    s->list[s->n++] = (uint32_t)shape.height << 16 | (uint32_t)shape.width;
    s->ncolour += shape.channels == 3;
    s->ngray += shape.channels == 1;
    s->nturned += seen.turned;
}

static int compare_shorter(const void *a, const void *b) {
    int64_t x = shorter(*(const uint32_t *)a), y = shorter(*(const uint32_t *)b);
    return (x > y) - (x < y);
}

/* By area, then by height. */
static int compare_area(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int64_t area_x = height_of(x) * width_of(x), area_y = height_of(y) * width_of(y);
    if (area_x != area_y) return area_x < area_y ? -1 : 1;
    return (x > y) - (x < y);
}

void ls_image_sizes_end(ls_image_sizes *s) {
    size_t n = 0;
    if (s->n == 0) return;
    qsort(s->list, s->n, sizeof *s->list, compare_shorter);
    s->median = shorter(s->list[s->n / 2]);
    qsort(s->list, s->n, sizeof *s->list, compare_area);
    for (size_t i = 0; i < s->n; i++)
        if (i == 0 || s->list[i] != s->list[i - 1]) s->list[n++] = s->list[i];
    s->n = n;
}

void ls_image_sizes_free(ls_image_sizes *s) {
    free(s->list);
    *s = (ls_image_sizes){0};
}

void ls_image_sizes_put(const ls_image_sizes *s, ls_buf *out) {
    ls_bytes_put_array(out, s->list, s->n, sizeof *s->list);
    ls_bytes_put_u64(out, s->ncolour);
    ls_bytes_put_u64(out, s->ngray);
    ls_bytes_put_u64(out, s->nturned);
    ls_bytes_put_u64(out, (uint64_t)s->median);
}

void ls_image_sizes_take(ls_image_sizes *s, ls_bytes *in) {
    s->list = ls_bytes_take_array(in, sizeof *s->list, &s->n);
    s->ncolour = ls_bytes_take_u64(in, UINT64_MAX);
    s->ngray = ls_bytes_take_u64(in, UINT64_MAX);
    s->nturned = ls_bytes_take_u64(in, UINT64_MAX);
    s->median = (int64_t)ls_bytes_take_u64(in, LS_IMAGE_SIDE);
    for (size_t i = 0; i < s->n && !in->bad; i++)
        in->bad = height_of(s->list[i]) < 1 || height_of(s->list[i]) > LS_IMAGE_SIDE ||
                  width_of(s->list[i]) < 1 || width_of(s->list[i]) > LS_IMAGE_SIDE;
    if (s->n && s->median < 1) in->bad = true;
}

/* Appends "120 sizes, 30x40 to 3024x4032 pixels", or "30x40 pixels". */
static void print_sizes(const ls_image_sizes *s, ls_buf *b) {
    uint32_t first = s->n ? s->list[0] : 0, last = s->n ? s->list[s->n - 1] : 0;
    if (s->n > 1)
        ls_buf_printf(b, "%zu sizes, %lldx%lld to ", s->n, (long long)height_of(first),
                      (long long)width_of(first));
    ls_buf_printf(b, "%lldx%lld pixels", (long long)height_of(last), (long long)width_of(last));
}

/* ---- the decision ---- */

/* The size of an image, scaled. */
static void scale(const ls_image_fit *f, int64_t *h, int64_t *w) {
    int64_t is_h = *h, is_w = *w, side = is_h < is_w ? is_h : is_w;
    switch (f->scaling) {
    case LS_IMAGE_AS_IT_IS: break;
    case LS_IMAGE_TO_SIDE:
        *h = f->side * is_h / side;
        *w = f->side * is_w / side;
        break;
    case LS_IMAGE_TO_SIZE:
        *h = f->height;
        *w = f->width;
        break;
    case LS_IMAGE_TO_COVER: { /* the other side is rounded down, as for one side */
        int64_t H = f->shape.height, W = f->shape.width;
        bool by_height = H * is_w >= W * is_h;
        *h = by_height ? H : W * is_h / is_w;
        *w = by_height ? H * is_w / is_h : W;
    }
    }
}

static const ls_field *wanted_of(const ls_image_way *w, const char *field) {
    for (int i = 0; i < w->nfields; i++)
        if (strcmp(w->fields[i].name, field) == 0 && ls_field_is_image(&w->fields[i]))
            return &w->fields[i];
    return NULL;
}

static bool has_only(const ls_image_sizes *s, int64_t h, int64_t w) {
    return s->n == 1 && height_of(s->list[0]) == h && width_of(s->list[0]) == w;
}

static int64_t usual_side(const ls_image_sizes *s) {
    int64_t side = s->median < LS_IMAGE_USUAL_SIDE ? s->median : LS_IMAGE_USUAL_SIDE;
    return side >= 16 ? side / 16 * 16 : side;
}

/* By keys. False: they say nothing of it. */
static bool by_keys(const ls_image_way *w, ls_image_fit *f) {
    f->side = w->side;
    f->height = w->height;
    f->width = w->width;
    f->scaling = w->side ? LS_IMAGE_TO_SIDE : w->height ? LS_IMAGE_TO_SIZE : LS_IMAGE_AS_IT_IS;
    int64_t h = w->crop_height ? w->crop_height : w->height ? w->height : w->side;
    f->shape.height = (int)h;
    f->shape.width = (int)(w->crop_width ? w->crop_width : w->width ? w->width : w->side);
    f->cuts = w->crop_height > 0;
    return h > 0;
}

/* Where no key says the size. */
static void by_sizes(const ls_image_sizes *s, const ls_field *wanted, ls_image_fit *f,
                     ls_source *source) {
    f->shape.height = (int)height_of(s->list[0]);
    f->shape.width = (int)width_of(s->list[0]);
    if (wanted && wanted->dims[0]) {
        f->shape.height = (int)wanted->dims[0];
        f->shape.width = (int)wanted->dims[1];
    } else if (s->n > 1) {
        source->side = usual_side(s);
        f->shape.height = f->shape.width = (int)source->side;
    }
    f->scaling =
        has_only(s, f->shape.height, f->shape.width) ? LS_IMAGE_AS_IT_IS : LS_IMAGE_TO_COVER;
}

static ls_status check_crop(const ls_image_fit *f, const ls_image_sizes *s, const char *what,
                            ls_error *e) {
    for (size_t i = 0; i < s->n; i++) {
        int64_t h = height_of(s->list[i]), w = width_of(s->list[i]);
        scale(f, &h, &w);
        if (h >= f->shape.height && w >= f->shape.width) continue;
        return ls_fail(e, LS_EINVAL,
                       "%s: an image of %lldx%lld pixels%s has %lldx%lld, and data.crop is %dx%d "
                       "(height x width); set data.resize to at least %d, or crop less",
                       what, (long long)height_of(s->list[i]), (long long)width_of(s->list[i]),
                       f->scaling ? " after data.resize" : "", (long long)h, (long long)w,
                       f->shape.height, f->shape.width,
                       f->shape.height > f->shape.width ? f->shape.height : f->shape.width);
    }
    return LS_OK;
}

static void note_size(const ls_image_fit *f, const ls_image_sizes *s, const char *what,
                      bool usual) {
    ls_buf b = {0};
    print_sizes(s, &b);
    ls_note("%s: images of %s are read as %dx%d%s: scaled, and cut to the centre; data.resize sets "
            "another size",
            what, b.data, f->shape.height, f->shape.width,
            usual ? "" : ", the size of the model's input");
    ls_buf_free(&b);
}

/* Logs what is done with colours. */
static int choose_channels(const ls_image_way *w, const ls_image_sizes *s, const ls_field *wanted,
                           const char *what) {
    int channels = s->ncolour ? 3 : 1;
    if (w->channels) return (int)w->channels;
    if (!wanted || wanted->dims[2] == channels) return channels;
    if (channels == 3)
        ls_note("%s: %llu image%s in colour %s read as gray, as the model's input is", what,
                (unsigned long long)s->ncolour, ls_plural((int64_t)s->ncolour),
                s->ncolour == 1 ? "is" : "are");
    return (int)wanted->dims[2];
}

/* What the source says of how its images are read. */
static void note_scale(const ls_image_fit *f, ls_source *s) {
    ls_buf b = {0};
    const int64_t numbers[] = {f->scaling,        f->side,         f->height,
                               f->width,          f->shape.height, f->shape.width,
                               f->shape.channels, f->cuts,         f->unturned};
    ls_bytes_put(&b, &s->scale, sizeof s->scale);
    ls_bytes_put(&b, numbers, sizeof numbers);
    s->scale = ls_hash_bytes(b.data, b.len);
    s->scales = s->scales || f->scaling != LS_IMAGE_AS_IT_IS || f->cuts;
    ls_buf_free(&b);
}

ls_status ls_image_fit_decide(const ls_image_case *c, ls_image_fit *f_p, ls_source *source,
                              ls_error *e) {
    static const ls_image_way none;
    const ls_image_way *w = c->way ? c->way : &none;
    const ls_image_sizes *s = c->sizes;
    const char *what = c->what;
    const ls_field *wanted = wanted_of(w, c->field);
    ls_image_fit f = {.unturned = w->unturned};
    if (s->n == 0) return ls_fail(e, LS_EINVAL, "%s: has no images", what);
    if (by_keys(w, &f)) {
        LS_TRY(check_crop(&f, s, what, e));
    } else {
        by_sizes(s, wanted, &f, source);
        if (f.scaling) note_size(&f, s, what, source->side > 0);
    }
    f.shape.channels = choose_channels(w, s, wanted, what);
    if (s->n > 1) {
        ls_buf sizes = {0};
        print_sizes(s, &sizes);
        snprintf(source->form, sizeof source->form, "%s", sizes.data);
        ls_buf_free(&sizes);
    }
    if (s->nturned) {
        source->turned = true;
        ls_note("%s: %llu image%s turned upright, as EXIF says; data.exif: off ignores it", what,
                (unsigned long long)s->nturned, s->nturned == 1 ? " is" : "s are");
    }
    note_scale(&f, source);
    *f_p = f;
    return LS_OK;
}

ls_status ls_image_fit_of(const ls_image_way *w, const ls_field *image, const char *what,
                          ls_image_fit *f_p, ls_error *e) {
    ls_image_sizes s = {0};
    ls_image_way keys = *w;
    ls_source unused = {0};
    ls_image_shape shape = {(int)image->dims[0], (int)image->dims[1], (int)image->dims[2]};
    keys.nfields = 0;
    if (image->dims[0] > LS_IMAGE_SIDE || image->dims[1] > LS_IMAGE_SIDE)
        return ls_fail(e, LS_EINVAL,
                       "%s: '%s' has over %d pixels on a side; leave out data.resize "
                       "and data.crop",
                       what, image->name, LS_IMAGE_SIDE);
    ls_image_sizes_add(&s, (ls_image_seen){shape, false});
    ls_image_sizes_end(&s);
    ls_image_case c = {&keys, &s, image->name, what};
    ls_status status = ls_image_fit_decide(&c, f_p, &unused, e);
    ls_image_sizes_free(&s);
    return status;
}

/* ---- pixels ---- */

/* The centre as torchvision finds it: half of what is beyond, rounded to the nearest even. */
static int64_t half(int64_t beyond) { return beyond / 2 + (beyond & 1 & (beyond / 2)); }

static void to_gray(const uint8_t *in, size_t n, uint8_t *out) {
    for (size_t i = 0; i < n; i++) out[i] = ls_colours_gray(in + 3 * i);
}

/* From the last pixel on, so that both may be in one place. */
static void to_colour(const uint8_t *in, size_t n, uint8_t *out) {
    for (size_t i = n; i-- > 0;) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
}

static size_t count_of(ls_image_shape s) {
    return (size_t)s.height * (size_t)s.width * (size_t)s.channels;
}

static void cut(const uint8_t *in, ls_image_shape s, const ls_resample_window *w, uint8_t *out) {
    size_t pixel = (size_t)s.channels, row = (size_t)w->ncolumns * pixel;
    for (int64_t y = 0; y < w->nrows; y++)
        memcpy(out + (size_t)y * row, in + (size_t)((w->top + y) * s.width + w->left) * pixel, row);
}

ls_status ls_image_fit_pixels(const ls_image_fit *f, const uint8_t *in, ls_image_shape s,
                              uint8_t *out, ls_error *e) {
    ls_resample_window w = {
        .height = s.height, .width = s.width, .nrows = f->shape.height, .ncolumns = f->shape.width};
    size_t npixels = (size_t)w.nrows * (size_t)w.ncolumns;
    uint8_t *gray = NULL;
    scale(f, &w.height, &w.width);
    w.top = half(w.height - w.nrows);
    w.left = half(w.width - w.ncolumns);
    bool same = w.height == w.nrows && w.width == w.ncolumns;
    bool fits = w.height >= w.nrows && w.width >= w.ncolumns;
    if (!fits || (!same && f->scaling == LS_IMAGE_AS_IT_IS && !f->cuts))
        return ls_fail(e, LS_EINVAL, "an image of %dx%d pixels instead of %dx%d (height x width)",
                       s.height, s.width, f->shape.height, f->shape.width);
    if (s.channels == 3 && f->shape.channels == 1) {
        gray = ls_alloc((size_t)s.height * (size_t)s.width);
        to_gray(in, (size_t)s.height * (size_t)s.width, gray);
        in = gray;
        s.channels = 1;
    }
    if (w.height == s.height && w.width == s.width)
        cut(in, s, &w, out);
    else
        ls_resample(in, s, &w, out);
    if (s.channels < f->shape.channels) to_colour(out, npixels, out);
    free(gray);
    return LS_OK;
}

/* ---- files ---- */

static int orientation_of(bool unturned, const uint8_t *data, size_t nbytes) {
    return unturned ? 1 : ls_orientation_find(data, nbytes);
}

ls_status ls_image_fit_inspect(bool unturned, const uint8_t *data, size_t nbytes,
                               ls_image_seen *s_p, ls_error *e) {
    int orientation = orientation_of(unturned, data, nbytes);
    ls_image_shape s;
    LS_TRY(ls_image_inspect(data, nbytes, &s, e));
    *s_p = (ls_image_seen){ls_orientation_shape(orientation, s), orientation != 1};
    return LS_OK;
}

/* Is the file's image the field's, but for gray that is repeated? */
static bool is_plain(const ls_image_fit *f, ls_image_shape s, int orientation) {
    return orientation == 1 && s.height == f->shape.height && s.width == f->shape.width &&
           s.channels <= f->shape.channels && f->scaling == LS_IMAGE_AS_IT_IS;
}

static ls_status decode(const ls_image_fit *f, const uint8_t *data, size_t nbytes, ls_image_shape s,
                        uint8_t *out, ls_error *e) {
    int orientation = orientation_of(f->unturned, data, nbytes);
    if (is_plain(f, s, orientation)) return ls_image_decode(data, nbytes, f->shape, out, e);
    ls_image_shape upright = ls_orientation_shape(orientation, s);
    uint8_t *pixels = ls_alloc(count_of(s)), *turned = NULL;
    ls_status status = ls_image_decode(data, nbytes, s, pixels, e);
    if (status == LS_OK && orientation != 1) {
        turned = ls_alloc(count_of(s));
        ls_orientation_turn(orientation, pixels, s, turned);
    }
    if (status == LS_OK) status = ls_image_fit_pixels(f, turned ? turned : pixels, upright, out, e);
    free(turned);
    free(pixels);
    return status;
}

ls_status ls_image_fit_decode(const ls_image_fit *f, const uint8_t *data, size_t nbytes,
                              uint8_t *out, ls_error *e) {
    ls_image_shape s;
    LS_TRY(ls_image_inspect(data, nbytes, &s, e));
    return decode(f, data, nbytes, s, out, e);
}
