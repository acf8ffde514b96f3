/* read_tfrecord.c - TFRecord files of tf.train.Example messages, plain or packed by gzip.
 *
 * A record: its length as a uint64, the masked CRC-32C of these 8 bytes, the message, its masked
 * CRC-32C; all little-endian. Every record has the features of the first one, with as many values:
 * floats are f32 fields, integers i64, bytes of one length u8. A feature of bytes whose length
 * varies, such as a text or a JPEG, becomes no field, nor does one whose number of values varies.
 * Both checksums of all records are checked when the source is opened, that of the message again
 * when it is read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "source/example.h"
#include "source/features.h"
#include "source/format.h"
#include "source/index.h"
#include "source/places.h"

enum { HEAD = 12, TAIL = 4 };

typedef struct tfrecord_source {
    ls_source base;
    ls_places places;
    ls_features features;   /* sorted by name */
    ls_example_kind *kinds; /* [features.n] */
} tfrecord_source;

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

/* Sets type and shape of a feature by its first values. */
static void set_shape(ls_feature *f, const ls_example_feature *x) {
    f->type = type_of(x->kind);
    if (x->n > 1) f->dims[f->ndims++] = (int64_t)x->n;
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

static void add_features(tfrecord_source *s, const ls_example *x) {
    s->kinds = LS_NEW_ARRAY(ls_example_kind, x->n);
    for (size_t i = 0; i < x->n; i++) {
        const char *name = x->features[i].name;
        ls_feature *f = ls_features_add(&s->features, name, strlen(name));
        s->kinds[i] = x->features[i].kind;
        set_shape(f, &x->features[i]);
        if (s->kinds[i] == LS_EXAMPLE_EMPTY) f->left_out = "it has no values";
    }
}

/* Why a record's values do not fit the feature; NULL: they do. */
static const char *compare(const ls_feature *f, const ls_example_feature *x) {
    size_t n = f->ndims > (x->kind == LS_EXAMPLE_BYTES) ? (size_t)f->dims[0] : 1;
    if (x->n != n) return "its number of values varies";
    if (x->kind != LS_EXAMPLE_BYTES) return NULL;
    for (size_t i = 0; i < x->n; i++)
        if (value_nbytes(x, i) != (size_t)f->dims[f->ndims - 1])
            return "the length of its bytes varies";
    return NULL;
}

/* All records have the same names and kinds. */
static ls_status check_names(const tfrecord_source *s, const ls_example *x, const char *path,
                             uint64_t at, ls_error *e) {
    if (x->n != s->features.n)
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu has %zu features, the first %zu",
                       path, (unsigned long long)at, x->n, s->features.n);
    for (size_t i = 0; i < x->n; i++) {
        const ls_feature *f = &s->features.list[i];
        if (strcmp(x->features[i].name, f->name) != 0)
            return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu has no feature '%s'", path,
                           (unsigned long long)at, f->name);
        if (x->features[i].kind != s->kinds[i] && !f->left_out)
            return ls_fail(e, LS_EINVAL,
                           "%s: the record at byte %llu has values of another kind in '%s'", path,
                           (unsigned long long)at, f->name);
    }
    return LS_OK;
}

static void learn(tfrecord_source *s, const ls_example *x) {
    for (size_t i = 0; i < x->n; i++) {
        ls_feature *f = &s->features.list[i];
        const ls_example_feature *values = &x->features[i];
        if (!f->left_out) f->left_out = compare(f, values);
        if (!f->left_out && values->kind == LS_EXAMPLE_INTEGERS && f->ndims == 0)
            f->whole = f->whole && ls_feature_fits_i32(f, values->integers);
    }
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
    if (s->places.n == 0) add_features(s, &x);
    ls_status status = check_names(s, &x, file->path, at, e);
    if (status == LS_OK) {
        learn(s, &x);
        ls_places_add(&s->places, at);
    }
    ls_example_free(&x);
    return status;
}

static ls_status index_file(tfrecord_source *s, const ls_source_options *o, ls_error *e) {
    const ls_plain *file = &s->places.files[s->places.nfiles - 1];
    for (uint64_t at = 0, next = 0; at < file->nbytes; at = next) {
        ls_error why = {0};
        if (index_record(s, file, at, &next, &why) == LS_OK) continue;
        LS_TRY(ls_places_damaged(&s->places, &s->base, o, &why, e));
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

static ls_status store(const tfrecord_source *s, const ls_example *x, ls_sample_place place,
                       void *sample, ls_error *e) {
    LS_TRY(check_names(s, x, place.file->path, place.at, e));
    for (size_t i = 0; i < x->n; i++) {
        const ls_feature *f = &s->features.list[i];
        const ls_example_feature *values = &x->features[i];
        if (f->left_out) continue;
        const char *wrong = compare(f, values);
        if (wrong)
            return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu, '%s': %s", place.file->path,
                           (unsigned long long)place.at, f->name, wrong);
        if (values->kind == LS_EXAMPLE_BYTES)
            store_bytes(f, sample, values);
        else
            ls_feature_copy(f, sample,
                            values->kind == LS_EXAMPLE_FLOATS ? (const void *)values->floats
                                                              : (const void *)values->integers);
    }
    return LS_OK;
}

static ls_status read_record(const ls_source *source, uint64_t i, void *sample, ls_error *e) {
    const tfrecord_source *s = (const tfrecord_source *)source;
    ls_sample_place place = ls_places_find(&s->places, i);
    const uint8_t *message = NULL;
    size_t nbytes = 0;
    uint64_t next = 0;
    ls_example x = {0};
    LS_TRY(find_message(place.file, place.at, &message, &nbytes, &next, e));
    if (!ls_example_parse(message, nbytes, &x))
        return ls_fail(e, LS_EINVAL, "%s: the record at byte %llu is no tf.train.Example",
                       place.file->path, (unsigned long long)place.at);
    ls_status status = store(s, &x, place, sample, e);
    ls_example_free(&x);
    return status;
}

static void close_tfrecord(ls_source *source) {
    tfrecord_source *s = (tfrecord_source *)source;
    ls_places_close(&s->places);
    ls_features_free(&s->features);
    free(s->kinds);
    free(s);
}

static void put_index(const tfrecord_source *s, ls_buf *out) {
    ls_places_put(&s->places, &s->base, out);
    ls_features_put(&s->features, out);
    for (size_t i = 0; i < s->features.n; i++) ls_bytes_put_u64(out, s->kinds[i]);
}

/* What an index knows of the features, instead of reading the records. Their values are copied by
 * it, so type and dimensions must be those of the kind. */
static ls_status take_index(tfrecord_source *s, ls_bytes *in, ls_error *e) {
    ls_places_take(&s->places, &s->base, in);
    ls_features_take(&s->features, in);
    s->kinds = LS_NEW_ARRAY(ls_example_kind, s->features.n);
    for (size_t i = 0; i < s->features.n && !in->bad; i++) {
        const ls_feature *f = &s->features.list[i];
        s->kinds[i] = (ls_example_kind)ls_bytes_take_u64(in, LS_EXAMPLE_INTEGERS);
        int bytes = s->kinds[i] == LS_EXAMPLE_BYTES;
        if (f->left_out) continue;
        if (s->kinds[i] == LS_EXAMPLE_EMPTY || f->text || f->spelled || f->ndims < bytes ||
            f->ndims > bytes + 1 || f->type != type_of(s->kinds[i]))
            in->bad = true;
    }
    return in->bad ? ls_fail(e, LS_EINVAL, "the index is damaged") : LS_OK;
}

static ls_status index_files(tfrecord_source *s, const ls_files *files, const ls_source_options *o,
                             ls_error *e) {
    bool known = ls_index_is_known(o->index);
    for (size_t i = 0; i < files->n; i++) {
        LS_TRY(ls_places_open(&s->places, files->paths[i], o, e));
        if (!known) LS_TRY(index_file(s, o, e));
    }
    if (known) LS_TRY(take_index(s, ls_index_in(o->index), e));
    if (s->places.n == 0) return ls_fail(e, LS_EINVAL, "%s: has no records", files->paths[0]);
    if (!known && ls_index_out(o->index)) put_index(s, ls_index_out(o->index));
    return ls_features_finish(&s->features, &s->base, files->paths[0], e);
}

static ls_status open_tfrecord(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                               ls_error *e) {
    tfrecord_source *s = LS_NEW(tfrecord_source);
    s->base = (ls_source){.format = "tfrecord", .read = read_record, .close = close_tfrecord};
    ls_status status = index_files(s, files, o, e);
    if (status != LS_OK) {
        close_tfrecord(&s->base);
        return status;
    }
    s->base.count = s->places.n;
    s->base.hash = ls_places_hash(&s->places);
    *s_p = &s->base;
    return LS_OK;
}

/* The checksum of a length leaves no doubt. */
static bool recognizes(const ls_first_file *file) {
    return file->named || (file->nbytes >= HEAD && crc_matches(file->bytes, 8));
}

const ls_data_format ls_format_tfrecord = {
    .name = "tfrecord",
    .suffixes = {".tfrecord", ".tfrecords"},
    .recognizes = recognizes,
    .open = open_tfrecord,
};
