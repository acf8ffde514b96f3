/* options.h - what a caller asks of the files of a source, as the keys of a config say. */
#ifndef LS_SOURCE_OPTIONS_H
#define LS_SOURCE_OPTIONS_H

#include "config/choices.h"
#include "source/csv.h"
#include "source/source.h"

/* ---- images ---- */

/* What is wanted; zeros: nothing, images stay as they are. */
typedef struct ls_image_way {
    int64_t side;                    /* the shorter side is scaled to it (data.resize: 64) */
    int64_t height, width;           /* both sides are scaled to these (data.resize: 64x48) */
    int64_t crop_height, crop_width; /* the centre (data.crop) */
    int64_t channels;                /* 1 or 3; 0: 3 if any image has colour */
    bool unturned;                   /* the orientation that EXIF says is ignored */
    /* [nfields] images of this name have this shape, unless the keys above say another one; 0
     * pixels in height: it has this number of channels, and any size. */
    const ls_field *fields;
    int nfields;
} ls_image_way;

/* ---- tables ---- */

/* What becomes of missing values in a column. */
typedef struct ls_missing_rule {
    char *column; /* "*": of all others */
    ls_missing rule;
} ls_missing_rule;

typedef struct ls_csv_rules { /* zero-initialised: everything is found */
    char *columns;            /* names, one a line; NULL: all */
    char *na;               /* texts, one a line, that stand for a missing value; NULL: none more */
    char *texts;            /* names of columns with texts, one a line; NULL: as found */
    ls_missing_rule *rules; /* [nrules] */
    size_t nrules;
    enum { LS_HEADER_FOUND, LS_HEADER_YES, LS_HEADER_NO } header;
    ls_csv_asked form;
} ls_csv_rules;

/* ---- ratings and clicks ---- */

enum { LS_CSV_COLUMNS = 128 }; /* of ids, numbers and clicks */
enum { LS_RATINGS_NAME = 64, LS_RATINGS_NEGATIVES = 1024 };

/* As the key data.ratings has it:
 *
 *     {user: userId, item: movieId, rating: rating, time: timestamp, at_least: 4, negatives: 4,
 *      split: leave_one_out}
 */
typedef struct ls_ratings_wanted {
    char user[LS_RATINGS_NAME], item[LS_RATINGS_NAME];   /* names of columns */
    char rating[LS_RATINGS_NAME], time[LS_RATINGS_NAME]; /* "": there is none */
    bool has_least;
    double at_least; /* rows with a lower rating are left out */
    int64_t negatives;
    bool leave_one_out; /* of each user with two or more interactions one is held out: the latest by
                         * time, else a random one; else the part `fraction` of them, rounded
                         * down */
    double fraction;
} ls_ratings_wanted;

enum { LS_CLICKS_NAME = 64 };

typedef enum ls_clicks_scale {
    LS_CLICKS_AS_IS,
    LS_CLICKS_LOG,     /* log(1 + x), and 0 of what is below 0: of counts */
    LS_CLICKS_STANDARD /* less the mean of the column, divided by its standard deviation */
} ls_clicks_scale;

/* As the key data.clicks has it:
 *
 *     {clicked: income, positive: ">50K", ids: [job, city], numbers: [age], scale: standard}
 */
typedef struct ls_clicks_wanted {
    char names[LS_CSV_COLUMNS][LS_CLICKS_NAME]; /* clicked, then ids, then numbers */
    int nids, nnumbers;
    char positive[LS_CLICKS_NAME]; /* the text that stands for 1; "": the column has 1 and 0 */
    ls_clicks_scale scale;
    int64_t hash; /* ids of a column; 0: as many as there are texts */
} ls_clicks_wanted;

/* ---- all ---- */

struct ls_source_options {
    const char *format; /* NULL: by the file's name, then by its first bytes */
    const char *labels; /* files with labels, where the format has them apart (IDX, .npy) */
    const char *cache;  /* directory for indexes and downloads; NULL: $XDG_CACHE_HOME/lockstep */
    bool skip_damaged;  /* damaged records are left out; else they are errors */
    ls_missing missing;
    const ls_csv_rules *csv;    /* what else is asked of tables (csv_rules.h); NULL: nothing */
    const ls_image_way *images; /* how images are read; NULL: see fit.h */
    int64_t window;             /* tokens: a sample has window + 1 of them; 0: 1024 */
    bool fresh;                 /* an index in the cache is not used, but made again */
    const char
        *named; /* columns that are fields of their own, however many there are, one a line */
    const char *unread; /* columns of tables that nobody reads, whatever they have, one a line */
    bool follows;       /* ls_source_follow() comes next: columns that `csv` names may be lacking */
    /* limits: what a file may be unpacked to */
    uint64_t most_nbytes;             /* 0: 1 TB */
    double most_ratio;                /* largest ratio of unpacked to packed bytes; 0: 1000 */
    uint64_t pixels_nbytes;           /* of scaled pixels in the cache, at most; 0: none */
    uint64_t index_nbytes;            /* files of fewer bytes in all have no index; 0: 1 MiB */
    ls_index *index;                  /* for readers; ls_source_open() sets it */
    const ls_ratings_wanted *ratings; /* the files have interactions of users; NULL: they do not */
    const ls_clicks_wanted *clicks;   /* or ids, numbers and clicks; NULL: they do not */
    const ls_ids *ids; /* these have the ids and scales of another source, as the model knows them:
                        * other ids are none, and clicks may be missing; NULL: they have their
                        * own */
};

#endif
