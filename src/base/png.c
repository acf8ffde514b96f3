/* png.c - see png.h. Nothing else knows libpng.
 *
 * libpng reports errors by calls that must not return. They jump to run() or run_writer(), which
 * change no variable of their own after setjmp(), so that none is indeterminate after the jump.
 * What the parts change lies in `reader` or `writer`, which belongs to the caller of run(): it
 * frees everything in each case. No code that may jump owns memory.
 */
#include "base/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/plural.h"

/* Texts and colour profiles may be compressed; larger ones are ignored. */
enum { MOST_CHUNK_NBYTES = 4 << 20, MOST_CHUNKS = 128, LONGEST_SIDE = 65500 };

ls_status ls_image_shape_check(ls_image_shape s, ls_image_shape want, ls_error *e) {
    if (s.height == want.height && s.width == want.width && s.channels <= want.channels)
        return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "an image of %d x %d pixels with %d channel%s instead of %d x %d with %d",
                   s.width, s.height, s.channels, ls_plural(s.channels), want.width, want.height,
                   want.channels);
}

/* ---- reading ---- */

typedef struct reader {
    png_structp png;
    png_infop info;
    jmp_buf failed;
    char msg[160];
    const uint8_t *data;
    size_t nbytes, at;
    ls_image_shape want; /* shape of the decoded image */
    uint8_t *out;
} reader;

static void on_error(png_structp png, png_const_charp msg) {
    reader *r = png_get_error_ptr(png);
    snprintf(r->msg, sizeof r->msg, "%s", msg);
    longjmp(r->failed, 1);
}

/* Warnings are about parts that don't change pixels: their damage is ignored. */
static void on_warning(png_structp png, png_const_charp msg) { (void)png, (void)msg; }

static void get_bytes(png_structp png, png_bytep to, size_t nbytes) {
    reader *r = png_get_io_ptr(png);
    if (nbytes > r->nbytes - r->at) png_error(png, "the file ends early");
    memcpy(to, r->data + r->at, nbytes);
    r->at += nbytes;
}

/* Calls part(r). False: it failed, and r->msg says why. */
static bool run(reader *r, void (*part)(reader *)) {
    if (setjmp(r->failed)) return false;
    part(r);
    return true;
}

static void read_header(reader *r) {
    png_set_read_fn(r->png, r, get_bytes);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* the caller has limits */
    png_set_chunk_malloc_max(r->png, MOST_CHUNK_NBYTES);
    png_set_chunk_cache_max(r->png, MOST_CHUNKS);
    png_read_info(r->png, r->info);
}

static void decode(reader *r) {
    size_t row = (size_t)r->want.width * (size_t)r->want.channels;
    png_set_palette_to_rgb(r->png);
    png_set_expand_gray_1_2_4_to_8(r->png);
    png_set_scale_16(r->png);
    png_set_strip_alpha(r->png);
    if (r->want.channels == 3) png_set_gray_to_rgb(r->png);
    int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != row) png_error(r->png, "rows of an unexpected length");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < r->want.height; y++)
            png_read_row(r->png, r->out + (size_t)y * row, NULL);
    png_read_end(r->png, NULL);
}

static void close_reader(reader *r) { png_destroy_read_struct(&r->png, &r->info, NULL); }

static ls_status refuse(const reader *r, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "PNG image: %s at byte %zu", r->msg, r->at);
}

static ls_status open_reader(reader *r, ls_image_shape *s_p, ls_error *e) {
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    if (r->png) r->info = png_create_info_struct(r->png);
    if (!r->info) return ls_fail(e, LS_ENOMEM, "PNG image: libpng can't be set up");
    if (!run(r, read_header)) return refuse(r, e);
    png_uint_32 height = png_get_image_height(r->png, r->info);
    png_uint_32 width = png_get_image_width(r->png, r->info);
    s_p->height = (int)height; /* libpng has checked that they are below 2^31 */
    s_p->width = (int)width;
    s_p->channels = png_get_color_type(r->png, r->info) & PNG_COLOR_MASK_COLOR ? 3 : 1;
    return LS_OK;
}

ls_status ls_png_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *e) {
    reader r = {.data = data, .nbytes = nbytes};
    ls_image_shape s = {0};
    ls_status status = open_reader(&r, &s, e);
    close_reader(&r);
    if (status == LS_OK) *s_p = s;
    return status;
}

ls_status ls_png_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                        ls_error *e) {
    reader r = {.data = data, .nbytes = nbytes, .want = want, .out = out};
    ls_image_shape s = {0};
    ls_status status = open_reader(&r, &s, e);
    if (status == LS_OK) status = ls_image_shape_check(s, want, e);
    if (status == LS_OK && !run(&r, decode)) status = refuse(&r, e);
    close_reader(&r);
    return status;
}

const char *ls_png_version(void) { return png_get_libpng_ver(NULL); }

/* ---- writing ---- */

typedef struct writer {
    png_structp png;
    png_infop info;
    const ls_pixels *pixels;
    ls_buf *out;
    char why[128];
    jmp_buf failed; /* libpng must not return from on_write_error() */
} writer;

static void on_write_error(png_structp png, png_const_charp msg) {
    writer *w = png_get_error_ptr(png);
    snprintf(w->why, sizeof w->why, "%s", msg);
    longjmp(w->failed, 1);
}

static void put_bytes(png_structp png, png_bytep from, size_t nbytes) {
    writer *w = png_get_io_ptr(png);
    ls_buf_append(w->out, from, nbytes);
}

static void flush_nothing(png_structp png) { (void)png; }

static void encode(writer *w) {
    const ls_pixels *p = w->pixels;
    png_set_write_fn(w->png, w, put_bytes, flush_nothing);
    png_set_IHDR(w->png, w->info, (png_uint_32)p->width, (png_uint_32)p->height, 8,
                 p->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int64_t y = 0; y < p->height; y++)
        png_write_row(w->png, p->data + y * p->width * p->channels);
    png_write_end(w->png, NULL);
}

/* False: encode() failed, and w->why says why. */
static bool run_writer(writer *w) {
    if (setjmp(w->failed)) return false;
    encode(w);
    return true;
}

ls_status ls_png_encode(const ls_pixels *p, ls_buf *out, ls_error *e) {
    if (p->width < 1 || p->height < 1 || p->width > LONGEST_SIDE || p->height > LONGEST_SIDE)
        return ls_fail(e, LS_EINVAL,
                       "a picture of %lld x %lld pixels can't be encoded; a side has 1 to %d",
                       (long long)p->width, (long long)p->height, LONGEST_SIDE);
    writer *w = LS_NEW(writer);
    w->pixels = p;
    w->out = out;
    w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w, on_write_error, on_warning);
    if (w->png) w->info = png_create_info_struct(w->png);
    ls_status s = LS_OK;
    if (!w->info)
        s = ls_fail(e, LS_ENOMEM, "no memory to encode a picture");
    else if (!run_writer(w))
        s = ls_fail(e, LS_EIO, "a picture can't be encoded: %s", w->why);
    png_destroy_write_struct(&w->png, &w->info);
    free(w);
    return s;
}
