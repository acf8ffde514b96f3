/* read_webdataset.c - WebDataset: tar archives (shards) whose members are parts of samples.
 *
 * A member's name up to the first dot of its last component is the sample's key; what follows is
 * the part's kind.
 *
 *     jpg, jpeg, png   the image: the field "image"
 *     cls              a whole number as text, from 0: the field "label"
 *     json             an object: its members are fields (json_members.h), numbers LS_I64 where
 *                      all samples have whole ones, else LS_F32; "label" is a label without a cls
 *     others           ignored
 *
 * Every sample has the parts that the first one has; numbers that most samples have must be in all.
 * Samples of a shard are in the order of their
 * first members, wherever their others are. A member of a kind that the sample has already begins
 * another sample of the same key, unless it follows a member of that sample: shards that were
 * concatenated may have the same keys.
 *
 * Opening indexes the shards once; a sample is then one or two places in a shard. Nothing is
 * unpacked to a path; links, and names that point outside, are refused.
 *
 * Source: https://github.com/webdataset/webdataset, "The WebDataset Format".
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/plural.h"
#include "data/words.h"
#include "source/format.h"
#include "source/formats/archive.h"
#include "source/formats/json_members.h"
#include "source/images/image_set.h"
#include "source/index.h"
#include "source/note.h"
#include "source/pixel_cache.h"

enum { CLS_NBYTES = 32, JSON_NBYTES = 1 << 20 };

typedef struct place {
    uint64_t at, json_at;
    uint32_t shard, nbytes, json_nbytes;
    int32_t label;
} place;

/* A sample whose members are being found. */
typedef struct sample {
    char *key, *image_name;
    place place;
    bool has_image, has_label, has_json;
    ls_error damage; /* LS_OK: none so far */
} sample;

typedef struct webdataset {
    ls_source source;
    ls_plain *shards; /* [nshards] */
    size_t nshards;
    place *places; /* [count] */
    size_t count;
    bool has_label, has_json;
    ls_image_fit fit;
    ls_json_members members; /* of the JSON objects */
} webdataset;

/* What is needed while the shards are indexed. */
typedef struct indexing {
    webdataset *w;
    const ls_source_options *o;
    ls_image_set images;
    const ls_plain *shard; /* the present one */
    sample *samples;       /* [nsamples] of all shards */
    size_t nsamples;
    ls_words keys;    /* of the present shard's samples */
    size_t *newest;   /* [keys.n] the last sample of each key */
    size_t last;      /* the sample of the last member; SIZE_MAX: none */
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
static ls_status read_cls(const indexing *x, const ls_archive_entry *m, int32_t *label_p,
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
    *label_p = (int32_t)v;
    return LS_OK;
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

static ls_status add_member(indexing *x, sample *s, const ls_archive_entry *m, const char *kind,
                            ls_error *e) {
    if (is_image_kind(kind)) {
        LS_TRY(take_once(x, m, &s->has_image, e));
        if (m->nbytes > LS_IMAGE_FILE_NBYTES) return refuse(x, m, "is larger than 256 MiB", e);
        s->place.at = m->at;
        s->place.nbytes = (uint32_t)m->nbytes;
        s->image_name = ls_strdup(m->name);
        return LS_OK;
    }
    if (strcasecmp(kind, "cls") == 0) {
        LS_TRY(take_once(x, m, &s->has_label, e));
        return read_cls(x, m, &s->place.label, e);
    }
    if (strcasecmp(kind, "json") == 0) {
        LS_TRY(take_once(x, m, &s->has_json, e));
        if (m->nbytes > JSON_NBYTES) return refuse(x, m, "has more than 1 MiB of JSON", e);
        s->place.json_at = m->at;
        s->place.json_nbytes = (uint32_t)m->nbytes;
        return LS_OK;
    }
    if (x->nothers++ == 0) x->other = ls_strdup(m->name);
    return LS_OK;
}

/* Does the sample have a part of this kind? */
static bool has_part(const sample *s, const char *kind) {
    if (is_image_kind(kind)) return s->has_image;
    return strcasecmp(kind, "cls") == 0    ? s->has_label
           : strcasecmp(kind, "json") == 0 ? s->has_json
                                           : false;
}

/* ---- samples ---- */

static const ls_plain *shard_of(const webdataset *w, const place *p) {
    return &w->shards[p->shard];
}

/* The JSON of a sample, which must be an object. */
static ls_status parse_json(const webdataset *w, const place *p, ls_json **j_p, ls_error *e) {
    const ls_plain *shard = shard_of(w, p);
    const char *text = p->json_nbytes ? (const char *)shard->data + p->json_at : "";
    ls_error own = {0};
    ls_json *j = NULL;
    if (ls_json_parse(text, p->json_nbytes, "JSON", &j, &own) != LS_OK)
        return ls_fail(e, LS_EINVAL, "%s", own.msg);
    if (ls_json_is_object(j)) {
        *j_p = j;
        return LS_OK;
    }
    ls_json_free(j);
    return ls_fail(e, LS_EINVAL, "is not a JSON object");
}

/* Without the names that fields of other parts have. */
static void drop_others(const webdataset *w, ls_json *j) {
    ls_json_drop(j, "image");
    if (w->has_label) ls_json_drop(j, "label");
}

static ls_status fail_wrong(ls_json_wrong *wrong, ls_error *e) {
    ls_status status = ls_fail(e, LS_EINVAL, "'%s' %s", wrong->name, wrong->why);
    free(wrong->name);
    return status;
}

/* Learns from the JSON of a sample, unless that is NULL: then it is only parsed. */
static ls_status check_json(const indexing *x, const sample *s, ls_json_members *m, ls_error *e) {
    const webdataset *w = x->w;
    ls_json *j = NULL;
    ls_error own = {0};
    ls_json_wrong wrong = {0};
    ls_status status = parse_json(w, &s->place, &j, &own);
    if (status == LS_OK && m) {
        drop_others(w, j);
        wrong = ls_json_members_add(m, j, false);
    }
    if (wrong.why) status = fail_wrong(&wrong, &own);
    ls_json_free(j);
    if (status == LS_OK) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: member %s.json at offset %llu: %s",
                   shard_of(w, &s->place)->path, s->key, (unsigned long long)s->place.json_at,
                   own.msg);
}

/* A sample has the parts that were decided. */
static ls_status check_parts(const indexing *x, const sample *s, ls_error *e) {
    const webdataset *w = x->w;
    const char *differs = NULL;
    if (s->has_label != w->has_label)
        differs =
            s->has_label ? "a cls, the first sample has none" : "no cls, the first sample has one";
    else if (s->has_json != w->has_json)
        differs =
            s->has_json ? "a json, the first sample has none" : "no json, the first sample has one";
    if (!differs) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: sample %s has %s", shard_of(w, &s->place)->path, s->key,
                   differs);
}

/* `name` names the image. */
static ls_status check_sample(indexing *x, const sample *s, const char *name, ls_image_seen *s_p,
                              ls_error *e) {
    webdataset *w = x->w;
    const ls_plain *shard = shard_of(w, &s->place);
    if (!s->has_image && s->has_json) LS_TRY(check_json(x, s, NULL, e));
    if (!s->has_image)
        return ls_fail(e, LS_EINVAL, "%s: sample %s has no image (jpg, jpeg or png)", shard->path,
                       s->key);
    LS_TRY(
        ls_image_set_check(&x->images, name, shard->data + s->place.at, s->place.nbytes, s_p, e));
    LS_TRY(check_parts(x, s, e));
    return s->has_json ? check_json(x, s, &w->members, e) : LS_OK;
}

static void add_place(indexing *x, const sample *s) {
    webdataset *w = x->w;
    w->places = ls_grow(w->places, w->count, sizeof *w->places);
    w->places[w->count++] = s->place;
}

/* Adds a sample to the index. */
static ls_status end_sample(indexing *x, const sample *s, ls_error *e) {
    ls_image_seen seen;
    ls_error damage = s->damage;
    char *name = ls_format("%s: member %s at offset %llu", shard_of(x->w, &s->place)->path,
                           s->has_image ? s->image_name : s->key, (unsigned long long)s->place.at);
    if (damage.code == LS_OK) check_sample(x, s, name, &seen, &damage);
    ls_status status =
        damage.code == LS_OK ? LS_OK : ls_source_leave_out(&x->w->source, x->o, &damage, e);
    if (damage.code == LS_OK) {
        ls_image_sizes_add(&x->images.sizes, seen);
        add_place(x, s);
    }
    free(name);
    return status;
}

/* Which parts samples have: those of the first one, or if samples that differ are left out, those
 * of most. */
static void decide_parts(indexing *x) {
    webdataset *w = x->w;
    size_t n = x->o->skip_damaged ? x->nsamples : x->nsamples > 0, nlabels = 0, njsons = 0;
    for (size_t i = 0; i < n; i++) {
        nlabels += x->samples[i].has_label;
        njsons += x->samples[i].has_json;
    }
    w->has_label = nlabels && 2 * nlabels >= n;
    w->has_json = njsons && 2 * njsons >= n;
}

/* What the JSON objects of all samples have decides which members are fields. */
static void decide_members(indexing *x) {
    webdataset *w = x->w;
    for (size_t i = 0; i < x->nsamples && w->has_json; i++) {
        ls_json *j = NULL;
        const sample *s = &x->samples[i];
        if (!s->has_json || s->damage.code != LS_OK ||
            parse_json(w, &s->place, &j, &(ls_error){0}) != LS_OK)
            continue;
        drop_others(w, j);
        ls_json_members_count(&w->members, j);
        ls_json_free(j);
    }
    ls_json_members_decide(&w->members);
}

static ls_status end_samples(indexing *x, ls_error *e) {
    decide_parts(x);
    decide_members(x);
    for (size_t i = 0; i < x->nsamples; i++) LS_TRY(end_sample(x, &x->samples[i], e));
    ls_image_sizes_end(&x->images.sizes);
    return LS_OK;
}

/* ---- the index in the cache ---- */

static void put_index(const indexing *x, ls_buf *out) {
    const webdataset *w = x->w;
    uint64_t flags = (uint64_t)w->has_label | (uint64_t)w->has_json << 1;
    ls_bytes_put_u64(out, flags);
    ls_image_sizes_put(&x->images.sizes, out);
    ls_damage_put(&w->source.damage, out);
    ls_bytes_put_u64(out, x->nothers);
    ls_bytes_put_text(out, x->other);
    ls_features_put(&w->members.features, out);
    ls_bytes_put_array(out, w->places, w->count, sizeof *w->places);
}

static bool is_within(size_t nbytes, uint64_t at, uint64_t n) {
    return n <= nbytes && at <= nbytes - n;
}

/* Places are in their shards. */
static bool is_possible(const webdataset *w) {
    for (size_t i = 0; i < w->count; i++) {
        const place *p = &w->places[i];
        if (p->shard >= w->nshards || p->label < 0) return false;
        size_t nbytes = w->shards[p->shard].nbytes;
        if (!is_within(nbytes, p->at, p->nbytes) || !is_within(nbytes, p->json_at, p->json_nbytes))
            return false;
    }
    return true;
}

/* What is known of the shards, instead of reading their members. */
static ls_status take_index(indexing *x, ls_bytes *in, ls_error *e) {
    webdataset *w = x->w;
    uint64_t flags = ls_bytes_take_u64(in, 3);
    w->has_label = flags & 1;
    w->has_json = flags & 2;
    ls_image_sizes_take(&x->images.sizes, in);
    ls_damage_take(&w->source.damage, in);
    x->nothers = ls_bytes_take_u64(in, UINT64_MAX);
    x->other = ls_bytes_take_text(in, in->left);
    ls_json_members_take(&w->members, in);
    w->places = ls_bytes_take_array(in, sizeof *w->places, &w->count);
    if (!in->bad && w->count && x->images.sizes.n && is_possible(w)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "the index is damaged");
}

/* ---- shards ---- */

/* Sets *nkey_p to the length of the name up to the first dot of its last component; returns what
 * follows that dot, NULL if there is none or the key would be empty. */
static const char *split(const char *name, size_t *nkey_p) {
    const char *base = ls_file_name(name), *dot = strchr(base, '.');
    if (!dot || dot == base) return NULL;
    *nkey_p = (size_t)(dot - name);
    return dot + 1;
}

/* The sample to which a member of this key and kind belongs: that of the key, or a new one. */
static size_t sample_for(indexing *x, const char *key, const char *kind) {
    bool fresh = false;
    uint32_t k = ls_words_add(&x->keys, (const uint8_t *)key, strlen(key), &fresh);
    size_t at = fresh ? SIZE_MAX : x->newest[k];
    bool again = !fresh && at != x->last && has_part(&x->samples[at], kind);
    if (!fresh && !again) return at;
    if (fresh) x->newest = ls_grow(x->newest, k, sizeof *x->newest);
    x->newest[k] = x->nsamples;
    x->samples = ls_grow(x->samples, x->nsamples, sizeof *x->samples);
    sample *s = &x->samples[x->nsamples];
    *s = (sample){.key = ls_strdup(key)};
    s->place.shard = (uint32_t)(x->shard - x->w->shards);
    return x->nsamples++;
}

static ls_status take_member(indexing *x, const ls_archive_entry *m, ls_error *e) {
    ls_error damage = {0};
    size_t nkey = 0;
    if (m->is_dir) return LS_OK;
    if (m->what || points_outside(m->name)) {
        ls_fail(&damage, LS_EINVAL, "%s: member %s is %s", x->shard->path, m->name,
                m->what ? m->what : "a path that points outside of the archive");
        return ls_source_leave_out(&x->w->source, x->o, &damage, e);
    }
    const char *kind = split(m->name, &nkey);
    if (!kind) {
        if (x->nothers++ == 0) x->other = ls_strdup(m->name);
        return LS_OK;
    }
    char *key = ls_format("%.*s", (int)nkey, m->name);
    x->last = sample_for(x, key, kind);
    sample *s = &x->samples[x->last];
    free(key);
    if (add_member(x, s, m, kind, &damage) != LS_OK && s->damage.code == LS_OK) s->damage = damage;
    return LS_OK;
}

static ls_status index_members(indexing *x, ls_archive *a, ls_error *e) {
    x->last = SIZE_MAX;
    for (;;) {
        ls_archive_entry m;
        ls_error damage = {0};
        bool there = false;
        if (ls_archive_next(a, &m, &there, &damage) != LS_OK) {
            if (x->last == SIZE_MAX) return ls_source_leave_out(&x->w->source, x->o, &damage, e);
            x->samples[x->last].damage = damage; /* the last sample may lack members */
            return LS_OK;
        }
        if (!there) return LS_OK;
        LS_TRY(take_member(x, &m, e));
    }
}

static ls_status index_shard(indexing *x, const char *path, ls_error *e) {
    webdataset *w = x->w;
    ls_archive *a = NULL;
    ls_plain *shard = &w->shards[w->nshards];
    LS_TRY(ls_plain_open(path, x->o, LS_HOLES_INSIDE, shard, e));
    w->nshards++;
    x->shard = shard;
    w->source.file_nbytes += shard->file_nbytes;
    if (ls_index_is_known(x->o->index)) return LS_OK;
    LS_TRY(ls_archive_open(shard->data, shard->nbytes, path, &a, e));
    ls_status s = index_members(x, a, e);
    ls_words_free(&x->keys);
    free(x->newest);
    x->newest = NULL;
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
    if (s == LS_OK && !ls_index_is_known(x->o->index)) s = end_samples(x, e);
    if (s == LS_OK && ls_index_is_known(x->o->index))
        s = take_index(x, ls_index_in(x->o->index), e);
    else if (s == LS_OK && ls_index_out(x->o->index))
        put_index(x, ls_index_out(x->o->index));
    return s;
}

/* ---- fields ---- */

/* Whole numbers are i64, but for a label. */
static ls_status add_members(webdataset *w, const char *what, ls_error *e) {
    ls_features *s = &w->members.features;
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].ndims == 0 && strcmp(s->list[i].name, "label") != 0)
            s->list[i].whole = false;
    s->most_fields = LS_SOURCE_FIELDS;
    s->no_label = w->has_label;
    return ls_features_finish(s, NULL, &w->source, what, e);
}

static ls_status add_fields(indexing *x, ls_error *e) {
    webdataset *w = x->w;
    const char *what = w->shards[0].path;
    ls_field label = {.name = "label", .type = LS_I32};
    if (w->count == 0)
        return ls_fail(e, LS_EINVAL, "%s: has no samples%s%s", what,
                       w->source.damage.n ? "; all are damaged: "
                                          : ": no member is an image "
                                            "(KEY.jpg, .jpeg or .png)",
                       w->source.damage.named[0]);
    if (x->nothers)
        ls_note("%s: %llu member%s ignored, the first is %s; an image (jpg, jpeg, png), cls and "
                "json are read",
                what, (unsigned long long)x->nothers, ls_plural((int64_t)x->nothers), x->other);
    w->source.count = w->count;
    LS_TRY(ls_image_set_field(&x->images, &w->source, what, &w->fit, e));
    if (w->has_label) LS_TRY(ls_source_add_field(&w->source, what, &label, e));
    return w->has_json ? add_members(w, what, e) : LS_OK;
}

/* ---- the source ---- */

static ls_status read_members(const webdataset *w, const place *p, void *to, ls_error *e) {
    ls_json *j = NULL;
    LS_TRY(parse_json(w, p, &j, e));
    ls_json_wrong wrong = ls_json_members_store(&w->members, j, to);
    ls_json_free(j);
    return wrong.why ? fail_wrong(&wrong, e) : LS_OK;
}

static ls_status read_sample(const ls_source *source, uint64_t i, void *to, ls_error *e) {
    const webdataset *w = (const webdataset *)source;
    const place *p = &w->places[i];
    const ls_plain *shard = shard_of(w, p);
    ls_error own = {0};
    if (w->has_label) memcpy((char *)to + source->fields[1].offset, &p->label, sizeof p->label);
    size_t offset = source->fields[0].offset;
    uint8_t *out = (uint8_t *)to + offset;
    ls_status s = LS_OK;
    if (!ls_pixel_cache_get(source->pixels, i, offset, out)) {
        s = ls_image_fit_decode(&w->fit, shard->data + p->at, p->nbytes, out, &own);
        if (s == LS_OK) ls_pixel_cache_put(source->pixels, i, offset, out);
    }
    if (s == LS_OK && w->has_json) s = read_members(w, p, to, &own);
    if (s == LS_OK) return LS_OK;
    return ls_fail(e, own.code, "%s: sample %llu at offset %llu: %s", shard->path,
                   (unsigned long long)i, (unsigned long long)p->at, own.msg);
}

/* Members of JSON follow; an image and a cls have nothing that is numbered elsewhere. */
static ls_status follow(ls_source *source, const ls_numbering *numbering, const char *what,
                        ls_error *e) {
    webdataset *w = (webdataset *)source;
    if (!w->has_json) return LS_OK;
    LS_TRY(ls_features_follow(&w->members.features, numbering, source, what, e));
    if (!w->has_label) return LS_OK;
    source->classes = NULL; /* a cls is a number without a name */
    source->nclasses = 0;
    return LS_OK;
}

/* The name in the header before the image's bytes, of 100 bytes at most. */
static void put_name(const ls_source *source, uint64_t i, ls_buf *b) {
    enum { HEADER = 512, NAME = 100 };
    const webdataset *w = (const webdataset *)source;
    const place *p = &w->places[i];
    const char *header = (const char *)shard_of(w, p)->data + p->at - HEADER;
    if (p->at >= HEADER) ls_buf_append(b, header, strnlen(header, NAME));
}

static void close_webdataset(ls_source *source) {
    webdataset *w = (webdataset *)source;
    for (size_t i = 0; i < w->nshards; i++) ls_plain_close(&w->shards[i]);
    free(w->shards);
    free(w->places);
    ls_json_members_free(&w->members);
    free(w);
}

static ls_status open_webdataset(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                                 ls_error *e) {
    webdataset *w = LS_NEW(webdataset);
    indexing x = {.w = w, .o = o, .images = {.way = o->images, .decodes = o->skip_damaged}};
    w->members.whole_reals = w->members.loose_texts = true;
    w->source.read = read_sample;
    w->source.decodes = w->source.fits = true;
    w->source.follow = follow;
    w->source.put_name = put_name;
    w->source.close = close_webdataset;
    ls_status s = index_shards(&x, files, e);
    if (s == LS_OK) s = add_fields(&x, e);
    ls_image_set_free(&x.images);
    for (size_t i = 0; i < x.nsamples; i++) {
        free(x.samples[i].key);
        free(x.samples[i].image_name);
    }
    free(x.samples);
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
