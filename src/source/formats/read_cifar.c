/* read_cifar.c - CIFAR-10's binary files: records of 3073 bytes, a label from 0 to 9 and the planes
 * red, green and blue of 32 x 32 pixels.
 *
 * Source: https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version".
 */
#include <stdlib.h>
#include <string.h>

#include "source/format.h"
#include "source/numbering.h"

enum { PIXELS = 32 * 32, CHANNELS = 3, RECORD = 1 + CHANNELS * PIXELS, CLASSES = 10 };

static char *classes[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                 "dog",      "frog",       "horse", "ship", "truck"};

static char label_name[] = "label";
static ls_numbered label_code = {
    .name = label_name, .field = label_name, .text = true, .in = {.names = classes, .n = CLASSES}};
static const ls_numbering own_codes = {.list = &label_code, .n = 1};

typedef struct cifar {
    ls_source source;
    ls_plain *files;  /* [n] */
    uint64_t *begins; /* [n + 1] of each file's records */
    size_t n;
    uint64_t *good; /* [source.count] records; NULL: all */
} cifar;

static void close_cifar(ls_source *s) {
    cifar *c = (cifar *)s;
    ls_plain_close_all(c->files, c->n);
    free(c->begins);
    free(c->good);
    free(c);
}

/* The bytes of a record of all files. */
static const uint8_t *record_at(const cifar *c, uint64_t i, size_t *file_p, uint64_t *at_p) {
    *file_p = ls_source_part(c->begins, c->n, i);
    *at_p = (i - c->begins[*file_p]) * RECORD;
    return c->files[*file_p].data + *at_p;
}

static ls_status check_label(const cifar *c, uint64_t i, ls_error *e) {
    size_t file;
    uint64_t at;
    const uint8_t *in = record_at(c, i, &file, &at);
    if (in[0] < CLASSES) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: record %llu, at offset %llu, has label %d; labels are from 0 to %d",
                   c->files[file].path, (unsigned long long)(at / RECORD), (unsigned long long)at,
                   in[0], CLASSES - 1);
}

static ls_record_at record_of(const ls_source *s, uint64_t i) {
    const cifar *c = (const cifar *)s;
    size_t file;
    uint64_t at, number = c->good ? c->good[i] : i;
    record_at(c, number, &file, &at);
    return (ls_record_at){number, at / RECORD};
}

static ls_status read_cifar(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    const cifar *c = (const cifar *)s;
    size_t file;
    uint64_t at, record = c->good ? c->good[i] : i;
    const uint8_t *in = record_at(c, record, &file, &at);
    LS_TRY(check_label(c, record, e));
    uint8_t *out = (uint8_t *)sample + s->fields[0].offset;
    for (int p = 0; p < PIXELS; p++)
        for (int k = 0; k < CHANNELS; k++) out[p * CHANNELS + k] = in[1 + k * PIXELS + p];
    int32_t label = in[0];
    memcpy((uint8_t *)sample + s->fields[1].offset, &label, sizeof label);
    return LS_OK;
}

/* A file that ends within a record is damaged there. */
static ls_status index_file(cifar *c, size_t i, const ls_source_options *o, ls_error *e) {
    const ls_plain *f = &c->files[i];
    ls_error why = {0};
    uint64_t n = f->nbytes / RECORD;
    c->begins[i + 1] = c->begins[i] + n;
    if (f->nbytes % RECORD == 0) return LS_OK;
    ls_fail(&why, LS_EINVAL, "%s: is truncated: it ends at offset %zu, in record %llu of %d bytes",
            f->path, f->nbytes, (unsigned long long)n, RECORD);
    return ls_source_leave_out(&c->source, o, &why, e);
}

/* Lists the records whose labels are possible. */
static void skip_damaged(cifar *c) {
    uint64_t n = 0, all = c->source.count;
    uint64_t *good = LS_NEW_ARRAY(uint64_t, all);
    for (uint64_t i = 0; i < all; i++) {
        ls_error why = {0};
        if (check_label(c, i, &why) == LS_OK)
            good[n++] = i;
        else
            ls_damage_add(&c->source.damage, why.msg);
    }
    c->good = good;
    c->source.count = n;
}

static ls_status index_files(cifar *c, const ls_source_options *o, ls_error *e) {
    c->begins = LS_NEW_ARRAY(uint64_t, c->n + 1);
    for (size_t i = 0; i < c->n; i++) LS_TRY(index_file(c, i, o, e));
    c->source.count = c->begins[c->n];
    if (o->skip_damaged) skip_damaged(c);
    const ls_field image = {.name = "image", .type = LS_U8, .ndims = 3, .dims = {32, 32, CHANNELS}};
    LS_TRY(ls_source_add_field(&c->source, c->files[0].path, &image, e));
    return ls_source_add_field(&c->source, c->files[0].path,
                               &(ls_field){.name = "label", .type = LS_I32}, e);
}

/* The classes of CIFAR are fixed: other numberings are refused. */
static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    static const char unlike[] = "the training data have other classes than CIFAR-10's";
    const ls_classes *in = NULL;
    (void)what;
    (void)e;
    for (size_t i = 0; i < numbering->n; i++)
        if (strcmp(numbering->list[i].field, label_name) == 0) in = &numbering->list[i].in;
    bool same = in && in->n == CLASSES;
    for (int i = 0; same && i < CLASSES; i++) same = strcmp(in->names[i], classes[i]) == 0;
    if (!same && in && in->n) source->fields[1].trouble = unlike;
    return LS_OK;
}

static ls_status open_cifar(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                            ls_error *e) {
    ls_plain *list = NULL;
    LS_TRY(ls_plain_open_all(files, o, LS_HOLES_ALLOWED, &list, e));
    cifar *c = LS_NEW(cifar);
    c->source.read = read_cifar;
    c->source.record = record_of;
    c->source.close = close_cifar;
    c->source.classes = classes;
    c->source.nclasses = CLASSES;
    c->source.numbering = &own_codes;
    c->source.follow = follow;
    c->files = list;
    c->n = files->n;
    ls_plain_describe(list, c->n, &c->source);
    ls_status s = index_files(c, o, e);
    if (s == LS_OK)
        *s_p = &c->source;
    else
        close_cifar(&c->source);
    return s;
}

/* ".bin" says little: the names are those of the data set's archive. */
static bool recognizes(const ls_first_file *f) {
    return f->named && !f->is_dir &&
           (strncmp(f->name, "data_batch", 10) == 0 || strncmp(f->name, "test_batch", 10) == 0);
}

const ls_data_format ls_format_cifar = {
    .name = "cifar",
    .suffixes = {".bin"},
    .recognizes = recognizes,
    .open = open_cifar,
};
