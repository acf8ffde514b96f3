/* features.h - what a reader learns about each column, member or feature of its records, and the
 * fields that they become.
 *
 * A reader adds a feature for each name of the first record, compares every record with it, and
 * calls ls_features_finish(), which decides:
 *  - The first of the features named label, class or target (in any case) that is one whole number
 *    or a text becomes the field "label", an i32; texts are numbered, and their table is the
 *    source's classes. One that the model's config names (`named`) keeps its name.
 *  - Numbers that a text file spells are f32. They are i32 if all are whole and the reader says so
 *    (`integers`), or the feature is named as above. Those that are integers beyond the range of an
 *    i32 are i64, where the reader has them as such (`wide`).
 *  - Texts are i32 codes: numbers in the sorted table of the feature's distinct texts. A feature
 *    with too many texts, or with a reason in left_out, becomes no field, which is logged.
 *  - Whole numbers in one dimension, of which records have different numbers, are a list
 *    (source.h). Lists that find no place beside the other fields become none, which is logged.
 *  - If there are more than LS_FEATURES_APART fields, single numbers of text files, and single f32,
 *    are joined into one f32 field "x", in the order of the features.
 */
#ifndef LS_SOURCE_FEATURES_H
#define LS_SOURCE_FEATURES_H

#include "base/png.h"
#include "data/words.h"
#include "source/bytes.h"
#include "source/classes.h"
#include "source/numbering.h"
#include "source/source.h"

typedef struct ls_feature {
    char *name;
    ls_dtype type; /* type of its values in the records; LS_F32 where they are spelled out */
    int ndims;
    int64_t dims[LS_FIELD_DIMS];
    size_t count;  /* values: the product of dims */
    bool spelled;  /* numbers as text */
    bool text;     /* texts; then it has classes */
    bool whole;    /* every value so far has no fraction and is in the range of an i32 */
    bool integers; /* and may be stored as an i32 */
    bool wide;     /* they are int64_t, so they may be stored as an i64: ls_feature_store_whole() */
    bool has_least; /* the least integer of its type is among the values: it can't become a list */
    bool row_numbers; /* without a name, and they count the records: no field, unless it is asked
                       * for */
    bool unchosen;    /* data.columns does not name it: it becomes no field, without a remark */
    bool own_name;    /* the model's config names it: it is no label under another name */
    bool is_list;     /* records have different numbers of values, at most dims[0] */
    const char
        *left_out; /* static text, or `taken`: why it becomes no field; NULL: it becomes one */
    char *taken;
    char *trouble; /* see ls_field */
    ls_classes classes;
    uint64_t nmissing; /* records without a value, for which `mean` stands */
    uint64_t nvalues;  /* of which that is the mean; 0: it has none */
    double mean;
    /* decided by ls_features_finish() */
    bool single; /* it is no part of "x" */
    ls_dtype as; /* type in the sample: `type`, LS_F32 or LS_I32 */
    size_t offset;
} ls_feature;

enum { LS_FEATURES_APART = 8 };

typedef struct ls_features {
    ls_feature *list; /* [n] */
    size_t n;
    ls_words names;
    size_t *of_name;        /* [names.n] the first feature of each name */
    size_t most_fields;     /* the most fields that are not joined; 0: LS_FEATURES_APART */
    bool no_label;          /* none is the label: the source has one of another kind */
    bool follows;           /* ls_features_follow() decides what is left out, and logs it */
    ls_numbering numbering; /* as decided */
    int nfields;            /* } of the source before these */
    size_t nbytes;          /* } */
} ls_features;

/* Adds a feature, which owns a copy of the name [n bytes]; the caller fills in the rest: type
 * LS_F32, no dimensions and one value so far. The pointer is valid until the next is added. */
ls_feature *ls_features_add(ls_features *, const char *name, size_t n);
/* A record has n whole numbers in one dimension, where others had another number of them: the
 * feature becomes a list. False: it can't, since it is of another type or has too many. */
bool ls_feature_grow(ls_feature *, size_t n);
/* Declares that the values of the feature are pixels of this shape. */
void ls_feature_set_image(ls_feature *, ls_image_shape);
ls_feature *ls_features_find(const ls_features *, const char *name);
void ls_features_free(ls_features *);

/* Sets fields, classes and sizes of the source; `what` (a path) names it in messages. named: as
 * ls_source_options.named. LS_EINVAL: no
 * field is left, names are too long or equal, there are too many fields, or they are too large. */
ls_status ls_features_finish(ls_features *, const char *named, ls_source *, const char *what,
                             ls_error *);
/* Decides again, as another source has decided: the same fields with the same numbers of texts. A
 * field whose feature is of another kind, or has texts without a number, gets its trouble. */
ls_status ls_features_follow(ls_features *, const ls_numbering *, ls_source *, const char *what,
                             ls_error *);
/* The code of feature i: that of its name, or the label's, if it is the label here. NULL: none. */
const ls_numbered *ls_features_numbered(const ls_features *, const ls_numbering *, size_t i);
/* Does the numbering have this text [n] of feature i? Texts of labels are checked where labels are
 * read. */
bool ls_features_knows(const ls_features *, const ls_numbering *, size_t i, const char *text,
                       size_t n);
/* Is there a text that the numbering does not have? */
bool ls_features_have_unknown(const ls_features *, const ls_numbering *);
/* Which feature is the label; NULL: none. */
const ls_feature *ls_features_label(const ls_features *);

/* Marks the features that are among these names, one a line, as not chosen. NULL: none. */
void ls_features_pass_over(ls_features *, const char *names);

/* Writes to an index, and reads from one, all that is learned before ls_features_finish(). What is
 * taken is possible in itself; the reader checks that it fits its format. */
void ls_features_put(const ls_features *, ls_buf *);
void ls_features_take(ls_features *, ls_bytes *);

/* Marks the features that are not among these names, one a line; NULL: all are. LS_EINVAL: a name
 * is none of them, unless they may lack; the message lists them. */
ls_status ls_features_choose(ls_features *, const char *names, bool may_lack, const char *what,
                             ls_error *);

/* Stores value i of a feature whose values are numbers of a text file, or the code of a text. */
void ls_feature_store(const ls_feature *, void *sample, size_t i, double value);
/* Stores value i of a feature whose values are integers of a text file. */
void ls_feature_store_whole(const ls_feature *, void *sample, size_t i, int64_t value);
/* Stores n values, all of them or those of a list, which lie at `from` as type f->type. */
void ls_feature_copy(const ls_feature *, void *sample, const void *from, size_t n);
/* Ends a list behind its n values. */
void ls_feature_end(const ls_feature *, void *sample, size_t n);
/* True if a value of an integer type of f, at `from`, is in the range of an i32. */
bool ls_feature_fits_i32(const ls_feature *, const void *from);

#endif
