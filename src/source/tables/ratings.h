/* ratings.h - what users have rated or chosen: interactions of users with items, as samples with
 * drawn negatives.
 *
 * CSV files have a row for each interaction. Users and items are numbered in the order in which
 * they first appear. If a user has several interactions with an item, the latest one counts: by
 * time, if there is such a column, else by the order of the rows. Some of each user's interactions
 * are held out, for validation.
 *
 * A sample is an interaction, with the fields
 *     user     i32            the user's number
 *     items    i32 [1 + k]    the item's number, then k items that the user has not chosen
 *     clicked  f32 [1 + k]    1, then zeros
 *     rating   f32            if there is such a column
 *
 * Negatives are drawn uniformly: in training among all items that the user has not chosen in the
 * training part, as a function of the seed, the epoch and the sample's number; in validation among
 * those without an interaction in any part, as a function of the sample's number alone.
 *
 * All interactions are in memory, 16 bytes each. */
#ifndef LS_SOURCE_TABLES_RATINGS_H
#define LS_SOURCE_TABLES_RATINGS_H

#include "source/ids.h"
#include "source/options.h"

/* text: a tree (base/yaml.h) that begins in this line of the file. */
ls_status ls_ratings_read(const char *text, const char *file, int line, double fraction,
                          ls_ratings_wanted *w_p, ls_error *);

/* Interactions, sorted by user, then by item. */
typedef struct ls_ratings_part {
    uint64_t n;
    uint64_t *begins; /* [nusers + 1] those of user u: [begins[u], begins[u + 1]) */
    int32_t *users, *items;
    float *ratings;
} ls_ratings_part;

typedef struct ls_ratings {
    ls_ratings_wanted wanted;
    int32_t nusers, nitems;
    ls_ids ids; /* of the column of users, and of that of items */
    ls_ratings_part training, held_out;
    int nsources; /* that have it */
} ls_ratings;

/* The interactions behind a source that ls_source_open() has opened with options.ratings. */
const ls_ratings *ls_ratings_of(const ls_source *);
/* A source of those that are held out. The other one may be closed before it. LS_EINVAL: there are
 * none. */
ls_status ls_ratings_held_out(const ls_source *, const char *what, ls_source **s_p, ls_error *);
/* From now on the interactions of other files (paths as data.path) are held out, in place of those.
 * No other source of them is open. */
ls_status ls_ratings_hold_out(ls_source *, const char *paths, const ls_source_options *,
                              ls_error *);

bool ls_ratings_has(const ls_ratings_part *, int32_t user, int32_t item);
/* An item that the user has not chosen: drawn by the seed and its place (epoch, i). known: neither
 * in the part that is held out. */
typedef struct ls_ratings_place {
    uint64_t seed, epoch, i;
} ls_ratings_place;
int32_t ls_ratings_negative(const ls_ratings *, const ls_ratings_place *, int32_t user, bool known);
/* The epoch and the seed of what is drawn for evaluations. */
enum { LS_RATINGS_SEED = 1 };
#define LS_RATINGS_VALIDATION UINT64_MAX
#define LS_RATINGS_CANDIDATES (UINT64_MAX - 1)

#endif
