/* ratings.c - see ratings.h: the samples, and what is drawn for them. */
#include "source/tables/ratings.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "source/format.h"
#include "source/tables/ratings_read.h"

typedef struct ratings_source {
    ls_source base;
    ls_ratings *ratings; /* belongs to all sources that have it */
    const ls_ratings_part *part;
    int user, items, clicked, rating; /* numbers of fields; rating -1: there is none */
} ratings_source;

/* ---- negatives ---- */

bool ls_ratings_has(const ls_ratings_part *p, int32_t user, int32_t item) {
    uint64_t low = p->begins[user], high = p->begins[user + 1];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->items[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->begins[user + 1] && p->items[low] == item;
}

static bool is_chosen(const ls_ratings *r, int32_t user, int32_t item, bool known) {
    return ls_ratings_has(&r->training, user, item) ||
           (known && ls_ratings_has(&r->held_out, user, item));
}

/* Draws until an item fits; a user who has chosen almost all gets the next one that fits. */
int32_t ls_ratings_negative(const ls_ratings *r, const ls_ratings_place *place, int32_t user,
                            bool known) {
    enum { TRIES = 8 };
    uint32_t w[4];
    int32_t item = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        ls_random_words(place->seed, LS_STREAM_NEGATIVES, place->epoch, place->i * TRIES + t, w);
        for (int k = 0; k < 4; k++) {
            item = (int32_t)((uint64_t)w[k] * (uint64_t)r->nitems >> 32);
            if (!is_chosen(r, user, item, known)) return item;
        }
    }
    for (int32_t i = 0; i < r->nitems && is_chosen(r, user, item, known); i++)
        item = (item + 1) % r->nitems;
    return item;
}

/* ---- samples ---- */

static void write_sample(const ratings_source *s, uint64_t i, const ls_draw *d, char *sample) {
    const ls_ratings *r = s->ratings;
    const ls_field *f = s->base.fields;
    int64_t k = r->wanted.negatives;
    int32_t user = s->part->users[i], *items = (int32_t *)(void *)(sample + f[s->items].offset);
    float *clicked = (float *)(void *)(sample + f[s->clicked].offset);
    bool known = s->part == &r->held_out;
    ls_ratings_place place = {.seed = LS_RATINGS_SEED, .epoch = LS_RATINGS_VALIDATION};
    if (d) place = (ls_ratings_place){.seed = d->seed, .epoch = d->epoch};
    memcpy(sample + f[s->user].offset, &user, sizeof user);
    items[0] = s->part->items[i];
    clicked[0] = 1;
    for (int64_t j = 0; j < k; j++) {
        place.i = i * (uint64_t)k + (uint64_t)j;
        items[1 + j] = ls_ratings_negative(r, &place, user, known);
        clicked[1 + j] = 0;
    }
    if (s->rating >= 0)
        memcpy(sample + f[s->rating].offset, &s->part->ratings[i], sizeof *s->part->ratings);
}

static ls_status read_fixed(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)e;
    write_sample((const ratings_source *)s, i, NULL, sample);
    return LS_OK;
}

static ls_status draw(const ls_source *s, uint64_t i, const ls_draw *d, void *sample, ls_error *e) {
    (void)e;
    write_sample((const ratings_source *)s, i, d, sample);
    return LS_OK;
}

/* ---- sources ---- */

static void close_ratings(ls_source *source) {
    ratings_source *s = (ratings_source *)source;
    if (--s->ratings->nsources == 0) ls_ratings_free(s->ratings);
    free(s);
}

static ls_status add_field(ratings_source *s, const char *what, const ls_field *f, int *number_p,
                           ls_error *e) {
    *number_p = s->base.nfields;
    return ls_source_add_field(&s->base, what, f, e);
}

static ls_status add_fields(ratings_source *s, const char *what, ls_error *e) {
    const ls_ratings *r = s->ratings;
    int64_t n = 1 + r->wanted.negatives;
    ls_field user = {.name = "user", .type = LS_I32, .ids = r->nusers};
    ls_field items = {.name = "items", .type = LS_I32, .ndims = 1, .dims = {n}, .ids = r->nitems};
    ls_field clicked = {.name = "clicked", .type = LS_F32, .ndims = 1, .dims = {n}};
    ls_field rating = {.name = "rating", .type = LS_F32};
    s->rating = -1;
    LS_TRY(add_field(s, what, &user, &s->user, e));
    LS_TRY(add_field(s, what, &items, &s->items, e));
    LS_TRY(add_field(s, what, &clicked, &s->clicked, e));
    return r->training.ratings ? add_field(s, what, &rating, &s->rating, e) : LS_OK;
}

/* On failure too the source is to be closed. */
static ls_status open_part(ls_ratings *r, const ls_ratings_part *part, const char *what,
                           ratings_source **s_p, ls_error *e) {
    ratings_source *s = *s_p = LS_NEW(ratings_source);
    r->nsources++;
    s->ratings = r;
    s->part = part;
    s->base = (ls_source){.format = "ratings",
                          .count = part->n,
                          .read = read_fixed,
                          .ids = &r->ids,
                          .draw = draw,
                          .close = close_ratings};
    return add_fields(s, what, e);
}

ls_status ls_ratings_held_out(const ls_source *training, const char *what, ls_source **s_p,
                              ls_error *e) {
    const ratings_source *t = (const ratings_source *)training;
    ratings_source *s = NULL;
    if (t->ratings->held_out.n == 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: holds no interaction out for validation: users have too few; set "
                       "data.val_fraction higher, or split: leave_one_out in data.ratings",
                       what);
    ls_status status = open_part(t->ratings, &t->ratings->held_out, what, &s, e);
    s->base.hash = training->hash;
    if (status == LS_OK)
        *s_p = &s->base;
    else
        close_ratings(&s->base);
    return status;
}

ls_status ls_ratings_hold_out(ls_source *training, const char *paths, const ls_source_options *o,
                              ls_error *e) {
    ratings_source *t = (ratings_source *)training;
    ls_files files = {0};
    ls_source read = {0}; /* what is known of the files */
    LS_TRY(ls_files_find(paths, &files, e));
    ls_status s = ls_ratings_read_held_out(&files, o, t->ratings, &read, e);
    ls_files_free(&files);
    return s;
}

const ls_ratings *ls_ratings_of(const ls_source *s) { return ((const ratings_source *)s)->ratings; }

static ls_status open_ratings(const ls_files *files, const ls_source_options *o, ls_source **s_p,
                              ls_error *e) {
    ls_ratings *r = LS_NEW(ls_ratings);
    ratings_source *s = NULL;
    ls_source read = {0}; /* what is known of the files */
    r->wanted = *o->ratings;
    ls_status status = ls_ratings_read_files(files, o, r, &read, e);
    if (status != LS_OK) {
        ls_ratings_free(r);
        return status;
    }
    status = open_part(r, &r->training, files->paths[0], &s, e);
    if (status != LS_OK) {
        close_ratings(&s->base);
        return status;
    }
    s->base.hash = read.hash;
    s->base.nfiles = read.nfiles;
    s->base.file_nbytes = read.file_nbytes;
    s->base.damage = read.damage;
    s->base.nmissing = read.nmissing;
    memcpy(s->base.form, read.form, sizeof read.form);
    *s_p = &s->base;
    return LS_OK;
}

const ls_data_format ls_format_ratings = {
    .name = "ratings", .is_table = true, .open = open_ratings};
