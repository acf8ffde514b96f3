/* png.c - see png.h. libpng's writer is known here alone; its reader, in data/png.c. */
#include "report/png.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum { LONGEST_SIDE = 65500 };

typedef struct writer {
    png_structp png;
    png_infop info;
    const ls_pixels *pixels;
    ls_buf out;
    char why[128];
    jmp_buf failed; /* libpng must not return from on_error() */
} writer;

static void on_error(png_structp png, png_const_charp msg) {
    writer *w = png_get_error_ptr(png);
    snprintf(w->why, sizeof w->why, "%s", msg);
    longjmp(w->failed, 1);
}

static void on_warning(png_structp png, png_const_charp msg) { (void)png, (void)msg; }

static void put_bytes(png_structp png, png_bytep from, size_t nbytes) {
    writer *w = png_get_io_ptr(png);
    ls_buf_append(&w->out, from, nbytes);
}

static void flush_nothing(png_structp png) { (void)png; }

/* Everything that may jump; it owns nothing. */
static bool encode(writer *w) {
    const ls_pixels *p = w->pixels;
    if (setjmp(w->failed)) return false;
    png_set_write_fn(w->png, w, put_bytes, flush_nothing);
    png_set_IHDR(w->png, w->info, (png_uint_32)p->width, (png_uint_32)p->height, 8,
                 p->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int64_t y = 0; y < p->height; y++)
        png_write_row(w->png, p->data + y * p->width * p->channels);
    png_write_end(w->png, NULL);
    return true;
}

ls_status ls_png_write(const char *path, const ls_pixels *p, ls_error *e) {
    if (p->width < 1 || p->height < 1 || p->width > LONGEST_SIDE || p->height > LONGEST_SIDE)
        return ls_fail(e, LS_EINVAL,
                       "%s: a picture of %lld x %lld pixels can't be written; a side has 1 to %d",
                       path, (long long)p->width, (long long)p->height, LONGEST_SIDE);
    writer *w = LS_NEW(writer);
    w->pixels = p;
    w->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w, on_error, on_warning);
    if (w->png) w->info = png_create_info_struct(w->png);
    ls_status s = LS_OK;
    if (!w->info)
        s = ls_fail(e, LS_ENOMEM, "%s: no memory to write a picture", path);
    else if (!encode(w))
        s = ls_fail(e, LS_EIO, "%s: can't be written: %s", path, w->why);
    else
        s = ls_file_replace(path, w->out.data, w->out.len, e);
    png_destroy_write_struct(&w->png, &w->info);
    ls_buf_free(&w->out);
    free(w);
    return s;
}
