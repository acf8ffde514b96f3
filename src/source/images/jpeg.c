/* jpeg.c - see jpeg.h.
 *
 * libjpeg reports errors by calls that must not return. They jump to run(), which changes no
 * variable of its own after setjmp(), so that none is indeterminate after the jump. What the parts
 * change lies in `reader`, which belongs to the caller of run(): it frees everything by
 * close_reader() in each case. No code that may jump owns memory.
 */
#include "source/images/jpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* A progressive image has about ten scans. One of a few bytes may claim thousands, each as long to
 * decode as the image. */
enum { MOST_SCANS = 64 };

typedef struct reader {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    char msg[JMSG_LENGTH_MAX];
    const uint8_t *data;
    size_t nbytes;
    bool in_header;      /* no pixel has been read */
    ls_image_shape want; /* shape of the decoded image */
    uint8_t *out;
} reader;

static void fail_with_message(j_common_ptr c) {
    reader *r = c->client_data;
    c->err->format_message(c, r->msg);
    longjmp(r->failed, 1);
}

/* A warning means that pixels are invented, except for these. Between the parts of the header, some
 * cameras and programs write bytes that belong to none. */
static void on_message(j_common_ptr c, int level) {
    const reader *r = c->client_data;
    if (level >= 0) return; /* not a warning */
    switch (c->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
        if (!r->in_header) fail_with_message(c);
        break;
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA: break;
    default: fail_with_message(c);
    }
}

static void limit_scans(j_common_ptr c) {
    reader *r = c->client_data;
    if (r->d.input_scan_number <= MOST_SCANS) return;
    snprintf(r->msg, sizeof r->msg, "more than %d scans", MOST_SCANS);
    longjmp(r->failed, 1);
}

/* Calls part(r). False: it failed, and r->msg says why. */
static bool run(reader *r, void (*part)(reader *)) {
    if (setjmp(r->failed)) return false;
    part(r);
    return true;
}

static void read_header(reader *r) {
    jpeg_create_decompress(&r->d);
    r->d.client_data = r; /* jpeg_create_decompress() preserves it and err */
    jpeg_mem_src(&r->d, r->data, (unsigned long)r->nbytes);
    r->in_header = true;
    jpeg_read_header(&r->d, TRUE);
    r->in_header = false;
}

static void decode(reader *r) {
    size_t row = (size_t)r->want.width * (size_t)r->want.channels;
    r->progress.progress_monitor = limit_scans;
    r->d.progress = &r->progress;
    r->d.out_color_space = r->want.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    r->d.dct_method = JDCT_ISLOW;
    r->d.do_fancy_upsampling = FALSE;
    r->d.do_block_smoothing = FALSE;
    jpeg_start_decompress(&r->d);
    while (r->d.output_scanline < r->d.output_height) {
        JSAMPROW at = r->out + r->d.output_scanline * row;
        jpeg_read_scanlines(&r->d, &at, 1);
    }
    jpeg_finish_decompress(&r->d);
}

static void close_reader(reader *r) { jpeg_destroy_decompress(&r->d); }

static ls_status refuse(const reader *r, ls_error *e) {
    return ls_fail(e, LS_EINVAL, "JPEG image: %s", r->msg);
}

static ls_status open_reader(reader *r, ls_image_shape *s_p, ls_error *e) {
    r->d.err = jpeg_std_error(&r->errors);
    r->d.client_data = r;
    r->errors.error_exit = fail_with_message;
    r->errors.emit_message = on_message;
    if (!run(r, read_header)) return refuse(r, e);
    switch (r->d.jpeg_color_space) {
    case JCS_GRAYSCALE: s_p->channels = 1; break;
    case JCS_YCbCr:
    case JCS_RGB: s_p->channels = 3; break;
    default:
        return ls_fail(e, LS_EINVAL,
                       "JPEG image with %d components that are neither gray nor RGB (CMYK?): "
                       "convert it to RGB",
                       r->d.num_components);
    }
    s_p->height = (int)r->d.image_height;
    s_p->width = (int)r->d.image_width;
    return LS_OK;
}

ls_status ls_jpeg_inspect(const uint8_t *data, size_t nbytes, ls_image_shape *s_p, ls_error *e) {
    reader r = {.data = data, .nbytes = nbytes};
    ls_image_shape s = {0};
    ls_status status = open_reader(&r, &s, e);
    close_reader(&r);
    if (status == LS_OK) *s_p = s;
    return status;
}

ls_status ls_jpeg_decode(const uint8_t *data, size_t nbytes, ls_image_shape want, uint8_t *out,
                         ls_error *e) {
    reader r = {.data = data, .nbytes = nbytes, .want = want, .out = out};
    ls_image_shape s = {0};
    ls_status status = open_reader(&r, &s, e);
    if (status == LS_OK) status = ls_image_shape_check(s, want, e);
    if (status == LS_OK && !run(&r, decode)) status = refuse(&r, e);
    close_reader(&r);
    return status;
}

#define TEXT_OF(x)   #x
#define TEXT_OF_2(x) TEXT_OF(x)

const char *ls_jpeg_library(void) { return "libjpeg-turbo " TEXT_OF_2(LIBJPEG_TURBO_VERSION); }
