/* read_tfrecord.c - TFRecord files of tf.train.Example messages, plain or packed by gzip.
 *
 * A record: its length as a uint64, the masked CRC-32C of these 8 bytes, the message, its masked
 * CRC-32C; all little-endian. Every record has the features of the first one, with as many values:
 * floats are f32 fields, integers i64, bytes of one length u8, and bytes that are a JPEG or PNG
 * image are its pixels. Integers whose number varies are a list (source.h). A feature of other
 * bytes whose length varies, such as a text, becomes no field, nor do floats whose number varies.
 * Both checksums of all records are checked when the source is opened,
 * that of the message again when it is read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "source/features.h"
#include "source/format.h"
#include "source/formats/example.h"
#include "source/images/image_set.h"
#include "source/index.h"
#include "source/pixel_cache.h"
#include "source/places.h"

enum { HEAD = 12, TAIL = 4 };

typedef struct column {
    char *name; /* in the records */
    ls_example_kind kind;
    bool image;
    ls_image_sizes sizes; /* } of an image */
    ls_image_fit fit;     /* } */
} column;

typedef struct tfrecord_source {
    ls_records r;
    ls_features features; /* } [features.n] sorted by the columns' names */
    column *columns;      /* } */
    ls_image_set images;  /* checks them while files are indexed */
} tfrecord_source;

/* TensorFlow's usual names of images and classes. */
static const char *field_name(const char *name) {
    if (strcmp(name, "image/encoded") == 0) return "image";
    if (strcmp(name, "image/class/label") == 0) return "label";
    return name;
}

static uint32_t masked_crc(const void *data, size_t nbytes) {
    uint32_t c = ls_crc32c(data, nbytes);
    return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

static bool crc_matches(const uint8_t *data, size_t nbytes) {
    uint32_t want;
    memcpy(&want, data + nbytes, sizeof want);
    return masked_crc(data, nbytes) == want;
}

/* The message of the record at offset `at` of the file. *next_p: where the next record begins; 0 if
 * this is not known, since the length is damaged. */
static ls_status find_message(const ls_plain *file, uint64_t at, const uint8_t **message_p,
                              size_t *nbytes_p, uint64_t *next_p, ls_error *e) {
    uint64_t length, rest = file->nbytes - at;
    const uint8_t *record = file->data + at;
    *next_p = 0;
    if (rest < HEAD)
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu is cut off", file->path,
                       (unsigned long long)at);
    memcpy(&length, record, sizeof length);
    if (!crc_matches(record, sizeof length))
        return ls_fail(e, LS_EINVAL,
                       "%s: the record at byte %llu has a damaged length (its CRC-32C is another)",
                       file->path, (unsigned long long)at);
    if (rest - HEAD < TAIL || length > rest - HEAD - TAIL)
        return ls_fail(e, LS_EINVAL,
                       "%s: the record at byte %llu has %llu bytes, but the file ends after %llu",
                       file->path, (unsigned long long)at, (unsigned long long)length,
                       (unsigned long long)(rest - HEAD));
    *next_p = at + HEAD + length + TAIL;
    if (!crc_matches(record + HEAD, length))
        return ls_fail(e, LS_EINVAL,
                       "%s: the record at byte %llu is damaged (its CRC-32C is another)",
                       file->path, (unsigned long long)at);
    *message_p = record + HEAD;
    *nbytes_p = length;
    return LS_OK;
}

static size_t value_nbytes(const ls_example_feature *x, size_t i) {
    size_t nbytes = 0;
    ls_example_bytes(x, i, &nbytes);
    return nbytes;
}

static ls_dtype type_of(ls_example_kind kind) {
    return kind == LS_EXAMPLE_FLOATS ? LS_F32 : kind == LS_EXAMPLE_INTEGERS ? LS_I64 : LS_U8;
}

static bool is_image(const ls_example_feature *x) {
    size_t nbytes = 0;
    if (x->kind != LS_EXAMPLE_BYTES || x->n != 1) return false;
    const uint8_t *data = ls_example_bytes(x, 0, &nbytes);
    return ls_image_recognize(data, nbytes);
}

/* Sets type and shape of a feature by its first values; of an image, see fit_images(). */
static void set_shape(ls_feature *f, const ls_example_feature *x) {
    f->type = type_of(x->kind);
    if (is_image(x)) return;
    if (x->n != 1) f->dims[f->ndims++] = (int64_t)x->n;
    f->count = x->n;
    if (x->kind != LS_EXAMPLE_BYTES) return;
    size_t nbytes = value_nbytes(x, 0);
    f->dims[f->ndims++] = (int64_t)nbytes;
    if (nbytes == 0) f->left_out = "it has no bytes";
    if (nbytes > LS_SAMPLE_NBYTES || x->n > LS_SAMPLE_NBYTES)
        f->left_out = "it is too large";
    else
        f->count *= nbytes;
}

static void free_columns(tfrecord_source *s) {
    for (size_t i = 0; s->columns && i < s->features.n; i++) {
        free(s->columns[i].name);
        ls_image_sizes_free(&s->columns[i].sizes);
    }
    free(s->columns);
    s->columns = NULL;
    ls_features_free(&s->features);
}

static void add_features(tfrecord_source *s, const ls_example *x) {
    s->columns = LS_NEW_ARRAY(column, x->n);
    for (size_t i = 0; i < x->n; i++) {
        const char *name = x->features[i].name, *short_name = field_name(name);
        if (ls_example_find(x, short_name)) short_name = name;
        ls_feature *f = ls_features_add(&s->features, short_name, strlen(short_name));
        s->columns[i] = (column){.name = ls_strdup(name),
                                 .kind = x->features[i].kind,
                                 .image = is_image(&x->features[i])};
        set_shape(f, &x->features[i]);
    }
}

/* Why a record's values do not fit the feature; NULL: they do. */
static const char *compare(const ls_feature *f, const ls_example_feature *x) {
    size_t n = f->ndims > (x->kind == LS_EXAMPLE_BYTES) ? (size_t)f->dims[0] : 1;
    if (x->n + n == 1) return "some records have no value of it";
    if (x->n != n) return "its number of values varies";
    if (x->kind != LS_EXAMPLE_BYTES) return NULL;
    for (size_t i = 0; i < x->n; i++)
        if (value_nbytes(x, i) != (size_t)f->dims[f->ndims - 1])
            return "the length of its bytes varies";
    return NULL;
}

/* No values may be an empty list of integers. A column that has had no values may get any. */
static bool same_kind(ls_example_kind kind, const column *c) {
    bool is_empty = kind == LS_EXAMPLE_EMPTY && c->kind == LS_EXAMPLE_INTEGERS;
    return kind == c->kind || c->kind == LS_EXAMPLE_EMPTY || is_empty;
}

/* All records have the same names and kinds. */
static ls_status check_names(const tfrecord_source *s, const ls_example *x, const char *path,
                             uint64_t at, ls_error *e) {
    for (size_t i = 0; i < x->n || i < s->features.n; i++) {
        const char *has = i < x->n ? x->features[i].name : NULL;
        const char *wanted = i < s->features.n ? s->columns[i].name : NULL;
        int order = !has ? 1 : !wanted ? -1 : strcmp(has, wanted);
        if (order)
            return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu has %s feature '%s', %s",
                           path, (unsigned long long)at, order > 0 ? "no" : "a",
                           order > 0 ? wanted : has,
                           order > 0 ? "which others have" : "which others lack");
        const ls_feature *f = &s->features.list[i];
        const column *c = &s->columns[i];
        bool none = x->features[i].kind == LS_EXAMPLE_EMPTY;
        if (!same_kind(x->features[i].kind, c) && !f->left_out)
            return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu has %s in '%s'%s", path,
                           (unsigned long long)at, none ? "no value" : "values of another kind",
                           c->name, none ? ", where others have one" : "");
    }
    return LS_OK;
}

/* Checks the images of a record; seen [features.n] are set. */
static ls_status check_images(tfrecord_source *s, const ls_example *x, const char *path,
                              uint64_t at, ls_image_seen *seen, ls_error *e) {
    for (size_t i = 0; i < x->n; i++) {
        if (!s->columns[i].image || s->features.list[i].left_out || x->features[i].n != 1) continue;
        size_t nbytes = 0;
        char *name = ls_format("%s: the record at byte %llu, '%s'", path, (unsigned long long)at,
                               s->columns[i].name);
        const uint8_t *data = ls_example_bytes(&x->features[i], 0, &nbytes);
        ls_status status = ls_image_set_check(&s->images, name, data, nbytes, &seen[i], e);
        free(name);
        if (status != LS_OK) return status;
    }
    return LS_OK;
}

/* The least i64 ends a list. */
static bool has_ids(const ls_example_feature *x) {
    for (size_t i = 0; i < x->n; i++)
        if (x->integers[i] == INT64_MIN) return false;
    return true;
}

/* Integers of another number than before; the first records may have had none. */
static bool learn_list(column *c, ls_feature *f, const ls_example_feature *x) {
    bool is_empty = c->kind == LS_EXAMPLE_EMPTY;
    if (c->kind == LS_EXAMPLE_BYTES || c->kind == LS_EXAMPLE_FLOATS) return false;
    if (x->kind != LS_EXAMPLE_INTEGERS && x->kind != LS_EXAMPLE_EMPTY) return false;
    if (x->kind == LS_EXAMPLE_INTEGERS && is_empty) {
        c->kind = LS_EXAMPLE_INTEGERS;
        f->type = type_of(c->kind);
    }
    if (c->kind == LS_EXAMPLE_EMPTY) return true;
    return has_ids(x) && ls_feature_grow(f, x->n);
}

static void learn_values(column *c, ls_feature *f, const ls_example_feature *x) {
    const char *wrong = compare(f, x);
    if (!wrong && !f->is_list) return;
    if (!learn_list(c, f, x)) f->left_out = wrong ? wrong : "it has a number that no list can have";
}

static void learn(tfrecord_source *s, const ls_example *x, const ls_image_seen *seen) {
    for (size_t i = 0; i < x->n; i++) {
        ls_feature *f = &s->features.list[i];
        const ls_example_feature *values = &x->features[i];
        if (f->left_out) continue;
        if (s->columns[i].image && values->n == 1)
            ls_image_sizes_add(&s->columns[i].sizes, seen[i]);
        else if (s->columns[i].image)
            f->left_out = "its number of values varies";
        else
            learn_values(&s->columns[i], f, values);
        if (values->kind == LS_EXAMPLE_INTEGERS && !has_ids(values)) f->has_least = true;
        if (!f->left_out && values->kind == LS_EXAMPLE_INTEGERS && f->ndims == 0)
            f->whole = f->whole && ls_feature_fits_i32(f, values->integers);
    }
}

static ls_status add_record(tfrecord_source *s, const ls_example *x, const char *path, uint64_t at,
                            ls_error *e) {
    if (s->r.places.n == 0) { /* a damaged record may have come before */
        free_columns(s);
        add_features(s, x);
    }
    LS_TRY(check_names(s, x, path, at, e));
    ls_image_seen *seen = LS_NEW_ARRAY(ls_image_seen, x->n + 1);
    ls_status status = check_images(s, x, path, at, seen, e);
    if (status == LS_OK) {
        learn(s, x, seen);
        ls_places_add(&s->r.places, at);
    }
    free(seen);
    return status;
}

static ls_status index_record(tfrecord_source *s, const ls_plain *file, uint64_t at,
                              uint64_t *next_p, ls_error *e) {
    const uint8_t *message = NULL;
    size_t nbytes = 0;
    ls_example x = {0};
    LS_TRY(find_message(file, at, &message, &nbytes, next_p, e));
    if (!ls_example_parse(message, nbytes, &x))
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu is no tf.train.Example",
                       file->path, (unsigned long long)at);
    ls_status status = add_record(s, &x, file->path, at, e);
    ls_example_free(&x);
    return status;
}

static ls_status index_file(tfrecord_source *s, const ls_source_options *o, ls_error *e) {
    const ls_plain *file = &s->r.places.files[s->r.places.nfiles - 1];
    for (uint64_t at = 0, next = 0; at < file->nbytes; at = next) {
        ls_error why = {0};
        if (index_record(s, file, at, &next, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->r.places, &s->r.base, o, &why, e));
        if (next == 0) return LS_OK; /* the rest of the file can't be divided into records */
    }
    return LS_OK;
}

static void store_bytes(const ls_feature *f, void *sample, const ls_example_feature *x) {
    char *to = (char *)sample + f->offset;
    for (size_t i = 0; i < x->n; i++) {
        size_t nbytes = 0;
        const uint8_t *from = ls_example_bytes(x, i, &nbytes);
        memcpy(to, from, nbytes);
        to += nbytes;
    }
}

static ls_status store_image(const column *c, const ls_feature *f, const ls_example_feature *x,
                             void *sample, ls_error *e) {
    size_t nbytes = 0;
    const uint8_t *data = ls_example_bytes(x, 0, &nbytes);
    return ls_image_fit_decode(&c->fit, data, nbytes, (uint8_t *)sample + f->offset, e);
}

static ls_status store_feature(const column *c, const ls_feature *f, const ls_example_feature *x,
                               void *sample, ls_error *e) {
    if (c->image && x->n == 1) return store_image(c, f, x, sample, e);
    bool fits_list = f->is_list && x->n <= f->count && has_ids(x);
    const char *wrong = f->is_list ? "it has more numbers, or others, than a list can have" : NULL;
    wrong = fits_list ? NULL : wrong ? wrong : compare(f, x);
    if (wrong || c->image) return ls_fail(e, LS_EINVAL, "%s", wrong ? wrong : "it is no image");
    if (x->kind == LS_EXAMPLE_BYTES)
        store_bytes(f, sample, x);
    else
        ls_feature_copy(f, sample,
                        x->kind == LS_EXAMPLE_FLOATS ? (const void *)x->floats
                                                     : (const void *)x->integers,
                        x->n);
    return LS_OK;
}

/* number: of the sample. */
static ls_status store(const tfrecord_source *s, const ls_example *x, uint64_t number, void *sample,
                       ls_error *e) {
    ls_sample_place place = ls_places_find(&s->r.places, number);
    LS_TRY(check_names(s, x, place.file->path, place.at, e));
    for (size_t i = 0; i < x->n; i++) {
        const ls_feature *f = &s->features.list[i];
        ls_error why = {0};
        char *to = (char *)sample + f->offset;
        bool image = s->columns[i].image && !f->left_out;
        if (f->left_out || (image && ls_pixel_cache_get(s->r.base.pixels, number, f->offset, to)))
            continue;
        if (store_feature(&s->columns[i], f, &x->features[i], sample, &why) == LS_OK) {
            if (image) ls_pixel_cache_put(s->r.base.pixels, number, f->offset, to);
            continue;
        }
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu, '%s': %s", place.file->path,
                       (unsigned long long)place.at, s->columns[i].name, why.msg);
    }
    return LS_OK;
}

static ls_status read_record(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const tfrecord_source *s = (const tfrecord_source *)source;
    ls_sample_place place = ls_places_find(&s->r.places, i);
    const uint8_t *message = NULL;
    size_t nbytes = 0;
    uint64_t next = 0;
    ls_example x = {0};
    LS_TRY(find_message(place.file, place.at, &message, &nbytes, &next, e));
    if (!ls_example_parse(message, nbytes, &x))
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu is no tf.train.Example",
                       place.file->path, (unsigned long long)place.at);
    ls_status status = store(s, &x, i, sample, e);
    ls_example_free(&x);
    return status;
}

static void close_tfrecord(ls_source *source) {
    tfrecord_source *s = (tfrecord_source *)source;
    ls_places_close(&s->r.places);
    free_columns(s);
    ls_image_set_free(&s->images);
    free(s);
}

static void put_index(const tfrecord_source *s, ls_buf *out) {
    ls_places_put(&s->r.places, &s->r.base, out);
    ls_features_put(&s->features, out);
    for (size_t i = 0; i < s->features.n; i++) {
        ls_bytes_put_text(out, s->columns[i].name);
        ls_bytes_put_u64(out, s->columns[i].kind);
        ls_bytes_put_u64(out, s->columns[i].image);
        ls_image_sizes_put(&s->columns[i].sizes, out);
    }
}

/* Values are copied by type and dimensions, so these must be those of the kind. */
static bool fits(const column *c, const ls_feature *f) {
    int bytes = c->kind == LS_EXAMPLE_BYTES;
    if (f->left_out) return true;
    if (c->kind == LS_EXAMPLE_EMPTY) return f->count == 0 && !f->text && !f->spelled;
    if (f->text || f->spelled || f->type != type_of(c->kind)) return false;
    if (c->image) return bytes && f->ndims == 0 && c->sizes.n;
    return f->ndims >= bytes && f->ndims <= bytes + 1;
}

/* What an index knows of the features, instead of reading the records. */
static ls_status take_index(tfrecord_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->r.places, &s->r.base, in);
    ls_features_take(&s->features, in);
    s->columns = LS_NEW_ARRAY(column, s->features.n);
    for (size_t i = 0; i < s->features.n && !in->bad; i++) {
        column *c = &s->columns[i];
        c->name = ls_bytes_take_text(in, in->left);
        c->kind = (ls_example_kind)ls_bytes_take_u64(in, LS_EXAMPLE_INTEGERS);
        c->image = ls_bytes_take_u64(in, 1);
        ls_image_sizes_take(&c->sizes, in);
        if (!fits(c, &s->features.list[i])) in->bad = true;
    }
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static void end_sizes(tfrecord_source *s) {
    for (size_t i = 0; i < s->features.n; i++) ls_image_sizes_end(&s->columns[i].sizes);
}

/* Sets the dimensions of images. */
static ls_status fit_images(tfrecord_source *s, const char *what, ls_error *e) {
    for (size_t i = 0; i < s->features.n; i++) {
        column *c = &s->columns[i];
        ls_feature *f = &s->features.list[i];
        if (!c->image || f->left_out) continue;
        ls_image_case x = {s->images.way, &c->sizes, f->name, what};
        LS_TRY(ls_image_fit_decide(&x, &c->fit, &s->r.base, e));
        ls_feature_set_image(f, c->fit.shape);
        s->r.base.fits = s->r.base.decodes = true;
    }
    return LS_OK;
}

static ls_status index_files(tfrecord_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    bool known = ls_index_is_known(o->index);
    s->images.way = o->images;
    s->images.decodes = o->skip_damaged;
    for (size_t i = 0; i < files->n; i++) {
        LS_TRY(ls_places_open(&s->r.places, files->paths[i], o, e));
        if (!known) LS_TRY(index_file(s, o, e));
    }
    end_sizes(s);
    if (known) LS_TRY(take_index(s, ls_index_in(o->index), e));
    if (s->r.places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no records", files->paths[0]);
    if (!known && ls_index_out(o->index)) put_index(s, ls_index_out(o->index));
    LS_TRY(fit_images(s, files->paths[0], e));
    return ls_features_finish(&s->features, o->named, &s->r.base, files->paths[0], e);
}

static ls_status open_tfrecord(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                               ls_error *e) {
    tfrecord_source *s = LS_NEW(tfrecord_source);
    s->r.features = &s->features;
    ls_records_begin(
        &s->r, (ls_source){.format = "tfrecord", .read = read_record, .close = close_tfrecord});
    ls_status status = index_files(s, files, o, e);
    return ls_records_end(&s->r, status, s_p);
}

/* The checksum of a length leaves no doubt. */
static bool recognizes(const ls_first_file *file) {
    return file->named || (file->nbytes >= HEAD && crc_matches(file->bytes, 8));
}

const ls_data_format ls_format_tfrecord = {
    .name = "tfrecord",
    .in_records = true,
    .suffixes = {".tfrecord", ".tfrecords"},
    .recognizes = recognizes,
    .open = open_tfrecord,
};
