/* read_webdataset.c - WebDataset: tar archives (shards) whose members are parts of samples.
 *
 * A member's name up to the first dot of its last component is the sample's key; what follows is
 * the part's kind. Members of a key stand together.
 *
 *     jpg, jpeg, png   the image: the field "image"
 *     cls              a whole number as text, from 0: the field "label"
 *     json             an object: each number in it is a field of its name, LS_I64 where all
 *                      samples have whole numbers, else LS_F32; "label" is a label without a cls
 *     others           ignored
 *
 * Every sample has the parts and the numbers that the first one has. Opening indexes the shards
 * once: labels and numbers are in the index, so that a sample is one place in a shard. Nothing is
 * unpacked to a path; links, and names that point outside, are refused.
 *
 * Source: https://github.com/webdataset/webdataset, "The WebDataset Format".
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/plural.h"
#include "source/archive.h"
#include "source/format.h"
#include "source/image_set.h"
#include "source/index.h"
#include "source/note.h"

enum { MOST_NUMBERS = LS_SOURCE_FIELDS - 2, CLS_NBYTES = 32, JSON_NBYTES = 1 << 20 };

typedef struct place {
    uint64_t at;
    uint32_t shard, nbytes;
    int32_t label;
} place;

/* The sample whose members are being read. */
typedef struct sample {
    char *key; /* NULL: none yet */
    ls_archive_entry image;
    char *image_name;
    bool has_image, has_label, has_json;
    int64_t label;
    double numbers[MOST_NUMBERS];
    ls_error damage; /* LS_OK: none so far */
} sample;

typedef struct webdataset {
    ls_source source;
    ls_plain *shards; /* [nshards] */
    size_t nshards;
    place *places; /* [count] */
    size_t count;
    bool has_label, has_json;
    ls_image_shape shape;
    char names[MOST_NUMBERS][LS_FIELD_NAME]; /* } numbers of the JSON objects */
    bool whole[MOST_NUMBERS];                /* } all are whole */
    int field_of[MOST_NUMBERS];              /* } its place in source.fields; -1: none */
    int nnumbers;                            /* } */
    double *numbers;                         /* [count, nnumbers] */
} webdataset;

/* What is needed while the shards are indexed. */
typedef struct indexing {
    webdataset *w;
    const ls_source_options *o;
    ls_image_set images;
    const ls_plain *shard;
    sample sample;
    uint64_t nothers; /* members that are ignored */
    char *other;      /* the first of them */
} indexing;

/* ---- members ---- */

static ls_status refuse(const indexing *x, const ls_archive_entry *m, const char *why,
                        ls_error *e) {
    return ls_fail(e, LS_EINVAL, "%s: member %s at offset %llu: %s", x->shard->path, m->name,
                   (unsigned long long)m->at, why);
}

/* A name that could leave the directory in which an archive is unpacked. */
static bool points_outside(const char *name) {
    if (name[0] == '/') return true;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') return true;
        p += n + (p[n] == '/');
    }
    return false;
}

/* A whole number from 0 to 2^31 - 1, between spaces. */
static ls_status read_cls(const indexing *x, const ls_archive_entry *m, int64_t *label_p,
                          ls_error *e) {
    char text[CLS_NBYTES + 1] = {0}, *end = text;
    if (m->nbytes > CLS_NBYTES) return refuse(x, m, "is no whole number: it is too long", e);
    memcpy(text, x->shard->data + m->at, m->nbytes);
    errno = 0;
    long long v = strtoll(text, &end, 10);
    bool any = end != text;
    while (isspace((unsigned char)*end)) end++;
    if (!any || errno || end != text + m->nbytes || v < 0 || v > INT32_MAX)
        return refuse(x, m, "is no whole number from 0 to 2147483647", e);
    *label_p = v;
    return LS_OK;
}

/* Whole, and exact as a double. */
static bool is_whole(double v) { return v == floor(v) && fabs(v) <= 9007199254740992.0; }

/* The numbers of the first JSON object become fields. */
static void name_numbers(webdataset *w, const ls_json *j) {
    const char *key;
    const ls_json *value;
    double v;
    for (void *it = NULL; (it = ls_json_next(j, it, &key, &value));) {
        if (!ls_json_number(value, &v) || strcmp(key, "image") == 0) continue;
        if (w->nnumbers == MOST_NUMBERS || strlen(key) >= LS_FIELD_NAME) {
            ls_note("the number '%s' of JSON members is ignored: at most %d numbers become fields, "
                    "with names of at most %d bytes",
                    key, MOST_NUMBERS, LS_FIELD_NAME - 1);
            continue;
        }
        w->whole[w->nnumbers] = true;
        memcpy(w->names[w->nnumbers++], key, strlen(key) + 1);
    }
}

static ls_status read_numbers(indexing *x, const ls_archive_entry *m, const ls_json *j,
                              ls_error *e) {
    webdataset *w = x->w;
    if (!ls_json_is_object(j)) return refuse(x, m, "is not a JSON object", e);
    if (w->count == 0 && w->nnumbers == 0) name_numbers(w, j);
    for (int i = 0; i < w->nnumbers; i++) {
        double *v = &x->sample.numbers[i];
        char why[96];
        if (!ls_json_number(ls_json_get(j, w->names[i]), v)) {
            snprintf(why, sizeof why, "has no number '%s', which the first sample has",
                     w->names[i]);
            return refuse(x, m, why, e);
        }
        if (strcmp(w->names[i], "label") == 0 && !(is_whole(*v) && *v >= 0 && *v <= INT32_MAX))
            return refuse(x, m, "its label is no whole number from 0 to 2147483647", e);
    }
    return LS_OK;
}

static ls_status read_json(indexing *x, const ls_archive_entry *m, ls_error *e) {
    ls_json *j = NULL;
    ls_error own = {0};
    if (m->nbytes > JSON_NBYTES) return refuse(x, m, "has more than 1 MiB of JSON", e);
    const char *text = m->nbytes ? (const char *)x->shard->data + m->at : "";
    if (ls_json_parse(text, m->nbytes, "JSON", &j, &own) != LS_OK) return refuse(x, m, own.msg, e);
    ls_status s = read_numbers(x, m, j, e);
    ls_json_free(j);
    return s;
}

static bool is_image_kind(const char *kind) {
    return strcasecmp(kind, "jpg") == 0 || strcasecmp(kind, "jpeg") == 0 ||
           strcasecmp(kind, "png") == 0;
}

/* Sets *once; it was set before: the sample has two members of this kind. */
static ls_status take_once(const indexing *x, const ls_archive_entry *m, bool *once, ls_error *e) {
    if (*once) return refuse(x, m, "the sample has another member of this kind", e);
    *once = true;
    return LS_OK;
}

static ls_status add_member(indexing *x, const ls_archive_entry *m, const char *kind, ls_error *e) {
    sample *s = &x->sample;
    if (is_image_kind(kind)) {
        LS_TRY(take_once(x, m, &s->has_image, e));
        if (m->nbytes > LS_IMAGE_FILE_NBYTES) return refuse(x, m, "is larger than 256 MiB", e);
        s->image = *m;
        s->image_name = ls_strdup(m->name);
        return LS_OK;
    }
    if (strcasecmp(kind, "cls") == 0) {
        LS_TRY(take_once(x, m, &s->has_label, e));
        return read_cls(x, m, &s->label, e);
    }
    if (strcasecmp(kind, "json") == 0) {
        LS_TRY(take_once(x, m, &s->has_json, e));
        return read_json(x, m, e);
    }
    if (x->nothers++ == 0) x->other = ls_strdup(m->name);
    return LS_OK;
}

/* ---- samples ---- */

/* A sample has the parts that the first one has. */
static ls_status check_parts(const indexing *x, ls_error *e) {
    const webdataset *w = x->w;
    const sample *s = &x->sample;
    const char *differs = NULL;
    if (w->count && s->has_label != w->has_label)
        differs =
            s->has_label ? "a cls, the first sample has none" : "no cls, the first sample has one";
    else if (w->count && s->has_json != w->has_json)
        differs =
            s->has_json ? "a json, the first sample has none" : "no json, the first sample has one";
    if (!differs) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: sample %s has %s", x->shard->path, s->key, differs);
}

/* `name` names the image. */
static ls_status check_sample(indexing *x, const char *name, ls_image_shape *s_p, ls_error *e) {
    const sample *s = &x->sample;
    if (!s->has_image)
        return ls_fail(e, LS_EINVAL, "%s: sample %s has no image (jpg, jpeg or png)",
                       x->shard->path, s->key);
    LS_TRY(ls_image_set_check(&x->images, name, x->shard->data + s->image.at, s->image.nbytes, s_p,
                              e));
    return check_parts(x, e);
}

static void add_place(indexing *x) {
    webdataset *w = x->w;
    const sample *s = &x->sample;
    w->has_label = s->has_label;
    w->has_json = s->has_json;
    w->places = ls_grow(w->places, w->count, sizeof *w->places);
    w->places[w->count] = (place){.at = s->image.at,
                                  .shard = (uint32_t)(x->shard - w->shards),
                                  .nbytes = (uint32_t)s->image.nbytes,
                                  .label = (int32_t)s->label};
    if (w->nnumbers) {
        size_t row = (size_t)w->nnumbers;
        w->numbers = ls_grow(w->numbers, w->count, row * sizeof *w->numbers);
        memcpy(w->numbers + w->count * row, s->numbers, row * sizeof *w->numbers);
        for (int i = 0; i < w->nnumbers; i++) w->whole[i] = w->whole[i] && is_whole(s->numbers[i]);
    }
    w->count++;
}

/* Damage is an error, or the sample is left out. */
static ls_status leave_out(indexing *x, const ls_error *damage, ls_error *e) {
    if (!x->o->skip_damaged) return ls_source_refuse(damage, e);
    ls_image_set_skip(&x->images, damage);
    return LS_OK;
}

/* The sample has all its members: adds it to the index. */
static ls_status end_sample(indexing *x, ls_error *e) {
    sample *s = &x->sample;
    ls_image_shape shape;
    ls_status status = LS_OK;
    if (!s->key) return LS_OK;
    char *name = ls_format("%s: member %s at offset %llu", x->shard->path,
                           s->has_image ? s->image_name : s->key, (unsigned long long)s->image.at);
    if (s->damage.code == LS_OK) check_sample(x, name, &shape, &s->damage);
    if (s->damage.code == LS_OK) {
        status = ls_image_set_add(&x->images, name, shape, e);
        if (status == LS_OK) add_place(x);
    } else {
        status = leave_out(x, &s->damage, e);
        if (x->w->count == 0) x->w->nnumbers = 0;
    }
    free(name);
    free(s->key);
    free(s->image_name);
    *s = (sample){0};
    return status;
}

/* ---- the index in the cache ---- */

static void put_index(const indexing *x, ls_buf *out) {
    const webdataset *w = x->w;
    uint64_t flags = (uint64_t)w->has_label | (uint64_t)w->has_json << 1;
    ls_bytes_put_u64(out, flags);
    ls_bytes_put(out, &x->images.shape, sizeof x->images.shape);
    ls_bytes_put_u64(out, x->images.ndamaged);
    ls_bytes_put_text(out, x->images.damage);
    ls_bytes_put_u64(out, x->nothers);
    ls_bytes_put_text(out, x->other);
    ls_bytes_put_u64(out, (uint64_t)w->nnumbers);
    for (int i = 0; i < w->nnumbers; i++) ls_bytes_put_text(out, w->names[i]);
    for (int i = 0; i < w->nnumbers; i++) ls_bytes_put_u64(out, w->whole[i]);
    ls_bytes_put_array(out, w->places, w->count, sizeof *w->places);
    ls_bytes_put_array(out, w->numbers, w->count * (size_t)w->nnumbers, sizeof *w->numbers);
}

/* Places are in their shards, and numbers have the types of their fields. */
static bool is_possible(const webdataset *w, size_t nnumbers, ls_image_shape s) {
    if (s.height < 1 || s.height > LS_IMAGE_SIDE || s.width < 1 || s.width > LS_IMAGE_SIDE ||
        (s.channels != 1 && s.channels != 3) || nnumbers != w->count * (size_t)w->nnumbers)
        return false;
    for (size_t i = 0; i < w->count; i++) {
        const place *p = &w->places[i];
        if (p->shard >= w->nshards || p->label < 0) return false;
        size_t nbytes = w->shards[p->shard].nbytes;
        if (p->nbytes > nbytes || p->at > nbytes - p->nbytes) return false;
    }
    for (size_t i = 0; i < nnumbers; i++) {
        size_t k = i % (size_t)w->nnumbers;
        bool label = strcmp(w->names[k], "label") == 0;
        double v = w->numbers[i];
        if ((w->whole[k] || label) && !is_whole(v)) return false;
        if (label && !(v >= 0 && v <= INT32_MAX)) return false;
    }
    return true;
}

static void take_names(webdataset *w, ls_bytes *in) {
    w->nnumbers = (int)ls_bytes_take_u64(in, MOST_NUMBERS);
    for (int i = 0; i < w->nnumbers; i++) {
        char *name = ls_bytes_take_text(in, LS_FIELD_NAME - 1);
        memcpy(w->names[i], name, strlen(name) + 1);
        free(name);
    }
    for (int i = 0; i < w->nnumbers; i++) w->whole[i] = ls_bytes_take_u64(in, 1);
}

/* What is known of the shards, instead of reading their members. */
static ls_status take_index(indexing *x, ls_bytes *in, ls_error *e) {
    webdataset *w = x->w;
    size_t nnumbers = 0;
    uint64_t flags = ls_bytes_take_u64(in, 3);
    w->has_label = flags & 1;
    w->has_json = flags & 2;
    ls_bytes_take(in, &x->images.shape, sizeof x->images.shape);
    x->images.ndamaged = ls_bytes_take_u64(in, UINT64_MAX);
    x->images.damage = ls_bytes_take_text(in, sizeof e->msg);
    x->nothers = ls_bytes_take_u64(in, UINT64_MAX);
    x->other = ls_bytes_take_text(in, in->left);
    take_names(w, in);
    w->places = ls_bytes_take_array(in, sizeof *w->places, &w->count);
    w->numbers = ls_bytes_take_array(in, sizeof *w->numbers, &nnumbers);
    if (!in->bad && w->count && is_possible(w, nnumbers, x->images.shape)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "the index is damaged");
}

/* ---- shards ---- */

/* Sets *nkey_p to the length of the name up to the first dot of its last component; returns what
 * follows that dot, NULL if there is none or the key would be empty. */
static const char *split(const char *name, size_t *nkey_p) {
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strchr(base, '.');
    if (!dot || dot == base) return NULL;
    *nkey_p = (size_t)(dot - name);
    return dot + 1;
}

static ls_status take_member(indexing *x, const ls_archive_entry *m, ls_error *e) {
    sample *s = &x->sample;
    ls_error damage = {0};
    size_t nkey = 0;
    if (m->is_dir) return LS_OK;
    if (m->what || points_outside(m->name)) {
        ls_fail(&damage, LS_EINVAL, "%s: member %s is %s", x->shard->path, m->name,
                m->what ? m->what : "a path that points outside of the archive");
        return leave_out(x, &damage, e);
    }
    const char *kind = split(m->name, &nkey);
    if (!kind) {
        if (x->nothers++ == 0) x->other = ls_strdup(m->name);
        return LS_OK;
    }
    if (!s->key || strlen(s->key) != nkey || strncmp(s->key, m->name, nkey) != 0) {
        LS_TRY(end_sample(x, e));
        s->key = ls_format("%.*s", (int)nkey, m->name);
    }
    if (add_member(x, m, kind, &damage) != LS_OK && s->damage.code == LS_OK) s->damage = damage;
    return LS_OK;
}

static ls_status index_members(indexing *x, ls_archive *a, ls_error *e) {
    for (;;) {
        ls_archive_entry m;
        ls_error damage = {0};
        bool there = false;
        if (ls_archive_next(a, &m, &there, &damage) != LS_OK) {
            /* the last sample may lack members */
            if (x->sample.key) x->sample.damage = damage;
            return x->sample.key ? end_sample(x, e) : leave_out(x, &damage, e);
        }
        if (!there) return end_sample(x, e);
        LS_TRY(take_member(x, &m, e));
    }
}

static ls_status index_shard(indexing *x, const char *path, ls_error *e) {
    webdataset *w = x->w;
    ls_archive *a = NULL;
    ls_plain *shard = &w->shards[w->nshards];
    LS_TRY(ls_plain_open(path, x->o, shard, e));
    w->nshards++;
    x->shard = shard;
    w->source.file_nbytes += shard->file_nbytes;
    if (ls_index_is_known(x->o->index)) return LS_OK;
    LS_TRY(ls_archive_open(shard->data, shard->nbytes, path, &a, e));
    ls_status s = index_members(x, a, e);
    ls_archive_close(a);
    return s;
}

static ls_status index_shards(indexing *x, const ls_files *files, ls_error *e) {
    webdataset *w = x->w;
    ls_hasher *hasher = ls_hasher_new();
    ls_status s = LS_OK;
    w->shards = LS_NEW_ARRAY(ls_plain, files->n);
    for (size_t i = 0; i < files->n && s == LS_OK; i++) {
        s = index_shard(x, files->paths[i], e);
        if (s == LS_OK) ls_hasher_add(hasher, &w->shards[i].hash, sizeof w->shards[i].hash);
    }
    w->source.hash = ls_hasher_finish(hasher);
    w->source.nfiles = w->nshards;
    if (s == LS_OK && ls_index_is_known(x->o->index))
        s = take_index(x, ls_index_in(x->o->index), e);
    else if (s == LS_OK && ls_index_out(x->o->index))
        put_index(x, ls_index_out(x->o->index));
    return s;
}

/* ---- fields ---- */

static ls_status add_number(webdataset *w, int i, const char *what, ls_error *e) {
    ls_field f = {.type = w->whole[i] ? LS_I64 : LS_F32};
    bool is_label = strcmp(w->names[i], "label") == 0;
    w->field_of[i] = -1;
    if (is_label && w->has_label) return LS_OK; /* the cls is the label */
    if (is_label) f.type = LS_I32;
    memcpy(f.name, w->names[i], sizeof f.name);
    w->field_of[i] = w->source.nfields;
    return ls_source_add_field(&w->source, what, &f, e);
}

static ls_status add_fields(indexing *x, ls_error *e) {
    webdataset *w = x->w;
    const char *what = w->shards[0].path;
    ls_field label = {.name = "label", .type = LS_I32};
    if (w->count == 0)
        return ls_fail(e, LS_EINVAL, "%s: has no samples%s%s", what,
                       x->images.damage ? "; all are damaged: "
                                        : ": no member is an image "
                                          "(KEY.jpg, .jpeg or .png)",
                       x->images.damage ? x->images.damage : "");
    ls_image_set_log(&x->images, what);
    if (x->nothers)
        ls_note("%s: %llu member%s ignored, the first is %s; an image (jpg, jpeg, png), cls and "
                "json are read",
                what, (unsigned long long)x->nothers, ls_plural((int64_t)x->nothers), x->other);
    w->shape = x->images.shape;
    w->source.count = w->count;
    w->source.ndamaged = x->images.ndamaged;
    LS_TRY(ls_image_set_field(&x->images, &w->source, what, e));
    if (w->has_label) LS_TRY(ls_source_add_field(&w->source, what, &label, e));
    for (int i = 0; i < w->nnumbers; i++) LS_TRY(add_number(w, i, what, e));
    return LS_OK;
}

/* ---- the source ---- */

static void put_number(const ls_field *f, double v, char *to) {
    int32_t i32 = f->type == LS_I32 ? (int32_t)v : 0;
    int64_t i64 = f->type == LS_I64 ? (int64_t)v : 0;
    float f32 = (float)v;
    const void *from = f->type == LS_I32 ? (void *)&i32 : f->type == LS_I64 ? (void *)&i64 : &f32;
    memcpy(to + f->offset, from, f->nbytes);
}

static ls_status read_sample(const ls_source *source, uint64_t i, void *to, ls_error *e) {
    const webdataset *w = (const webdataset *)source;
    const place *p = &w->places[i];
    const ls_plain *shard = &w->shards[p->shard];
    const double *numbers = w->nnumbers ? w->numbers + i * (uint64_t)w->nnumbers : NULL;
    ls_error own = {0};
    if (w->has_label) memcpy((char *)to + source->fields[1].offset, &p->label, sizeof p->label);
    for (int k = 0; k < w->nnumbers; k++)
        if (w->field_of[k] >= 0) put_number(&source->fields[w->field_of[k]], numbers[k], to);
    if (ls_image_decode(shard->data + p->at, p->nbytes, w->shape,
                        (uint8_t *)to + source->fields[0].offset, &own) == LS_OK)
        return LS_OK;
    return ls_fail(e, own.code, "%s: sample %llu at offset %llu: %s", shard->path,
                   (unsigned long long)i, (unsigned long long)p->at, own.msg);
}

static void close_webdataset(ls_source *source) {
    webdataset *w = (webdataset *)source;
    for (size_t i = 0; i < w->nshards; i++) ls_plain_close(&w->shards[i]);
    free(w->shards);
    free(w->places);
    free(w->numbers);
    free(w);
}

static ls_status open_webdataset(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                                 ls_error *e) {
    webdataset *w = LS_NEW(webdataset);
    indexing x = {.w = w, .o = o, .images.decodes = o->skip_damaged};
    w->source.read = read_sample;
    w->source.decodes = true;
    w->source.close = close_webdataset;
    ls_status s = index_shards(&x, files, e);
    if (s == LS_OK) s = add_fields(&x, e);
    ls_image_set_free(&x.images);
    free(x.sample.key);
    free(x.sample.image_name);
    free(x.other);
    if (s == LS_OK)
        *s_p = &w->source;
    else
        close_webdataset(&w->source);
    return s;
}

static bool recognizes(const ls_first_file *f) {
    static const size_t magic = 257;
    return !f->is_dir &&
           (f->named || (f->nbytes > magic + 5 && memcmp(f->bytes + magic, "ustar", 5) == 0));
}

const ls_data_format ls_format_webdataset = {
    .name = "webdataset",
    .in_records = true,
    .suffixes = {".tar", ".tgz"},
    .recognizes = recognizes,
    .open = open_webdataset,
};
