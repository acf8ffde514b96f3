/* opened.h - the files that a config names, opened as sources of samples.
 *
 * The keys of data say how they are read: format, columns, missing values, images and their
 * changes. The fields are still those of the files, and nothing is held out.
 */
#ifndef LS_DATASET_OPENED_H
#define LS_DATASET_OPENED_H

#include "config/config.h"
#include "data/split.h"
#include "model/model.h"
#include "source/ids.h"
#include "source/numbering.h"
#include "source/options.h"
#include "source/tables/clicks.h"
#include "source/tables/csv_rules.h"
#include "source/tables/ratings.h"

typedef struct ls_opened {
    ls_source *source; /* with the changes of data.augment; later as the model reads it */
    const ls_source *files;
    int *missing_p; /* as of ls_other_samples; may be NULL */
} ls_opened;

/* How files are opened that the config names; dir: where relative paths begin; NULL: the working
 * directory. */
typedef struct ls_opening {
    const ls_config *c;
    const ls_image_way *images;
    const char *dir;
    const ls_numbering *numbering; /* those of the training data, which others follow */
    const ls_numbering *base;      /* which the training data follow; NULL: none */
    bool follows;
    bool fresh;         /* an index is made again */
    const ls_ids *ids;  /* the same of ratings and clicks; NULL: the files' own */
    const char *unread; /* columns that nobody reads (ls_source_options); NULL: none */
} ls_opening;

/* What data.ratings or data.clicks say. */
typedef struct ls_columns_wanted {
    ls_ratings_wanted ratings;
    ls_clicks_wanted clicks;
} ls_columns_wanted;

/* The first of the paths, or the program's data, for messages: free() it. */
char *ls_opened_name(const char *paths);
/* The files of the training part, for messages. */
const char *ls_opened_train_name(const ls_config *);
/* Which of n training samples are held out. */
ls_status ls_opened_split(const ls_config *, uint64_t n, ls_split *s_p, ls_error *);

/* What the config says about the files; those about columns are read apart. */
ls_source_options ls_opening_options(const ls_opening *);
/* What the config says about columns of tables, in *o if that is anything. The caller frees
 * *r_p. */
ls_status ls_opening_read_rules(const ls_config *, ls_csv_rules *r_p, ls_source_options *o,
                                ls_error *);
/* What data.ratings or data.clicks say, in *o if that is anything, which then points to *w. */
ls_status ls_opening_read_columns(const ls_config *, ls_columns_wanted *w, ls_source_options *o,
                                  ls_error *);

/* The samples of the program whose model this is. */
ls_status ls_opening_own(const ls_opening *, const ls_model *, ls_opened *o_p, ls_error *);
/* Files, as data.path and data.labels name them. */
ls_status ls_opening_files(const ls_opening *, const char *paths, const char *labels,
                           ls_opened *o_p, ls_error *);
/* What a run is trained on, as it is in the files. */
ls_status ls_opening_training(const ls_opening *, ls_opened *o_p, ls_error *);
/* The same before its model is built. fresh: an index is made again. */
ls_status ls_opening_unbuilt(const ls_config *, bool fresh, ls_opened *o_p, ls_error *);

#endif
