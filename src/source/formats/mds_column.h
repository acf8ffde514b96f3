/* mds_column.h - columns of MDS shards: encodings, and the values of one sample. */
#ifndef LS_SOURCE_FORMATS_MDS_COLUMN_H
#define LS_SOURCE_FORMATS_MDS_COLUMN_H

#include "base/json.h"
#include "source/features.h"
#include "source/images/fit.h"

typedef enum ls_mds_kind {
    LS_MDS_NUMBER,  /* int, int32, float64 ... */
    LS_MDS_SPELLED, /* str_int, str_float: a number as text */
    LS_MDS_TEXT,    /* str */
    LS_MDS_BYTES,   /* bytes */
    LS_MDS_ARRAY,   /* ndarray, ndarray:dtype, ndarray:dtype:shape */
    LS_MDS_PIXELS,  /* pil: 8-bit gray or RGB, not compressed */
    LS_MDS_IMAGE,   /* jpeg, png */
    LS_MDS_OTHER    /* becomes no field */
} ls_mds_kind;

typedef struct ls_mds_column {
    ls_mds_kind kind;
    bool has_type, has_dims; /* an array's; where one is false, each value begins with it */
    ls_dtype type;
    int ndims;
    int64_t dims[LS_FIELD_DIMS];
    size_t nbytes;        /* size of each value; 0: it varies, and is in the sample */
    const char *why;      /* LS_MDS_OTHER: static text */
    bool integers;        /* LS_MDS_SPELLED */
    bool unturned;        /* } of images; the reader sets it (ls_image_way) */
    ls_image_sizes sizes; /* } */
    ls_image_fit fit;     /* } */
} ls_mds_column;

/* NULL, or what is wrong with the encoding (static text). */
const char *ls_mds_column_parse(const char *encoding, ls_mds_column *c_p);

/* One value of a sample. */
typedef struct ls_mds_value {
    ls_dtype type;
    int ndims;
    int64_t dims[LS_FIELD_DIMS];
    const uint8_t *data; /* [nbytes] of the type and shape; of a text, an image: as it is stored */
    size_t nbytes;
    double number; /* LS_MDS_SPELLED */
    int64_t whole; /* } where it is an integer */
    bool is_whole; /* } */
    bool turned;   /* an image: as ls_image_seen has it */
} ls_mds_value;

/* Finds type, shape and data of the value that is stored in these bytes. NULL, or what is wrong
 * with it (static text). */
const char *ls_mds_column_value(const ls_mds_column *, const uint8_t *data, size_t nbytes,
                                ls_mds_value *v_p);

/* Sets type and shape of a feature by its first value. */
void ls_mds_column_start(const ls_mds_column *, const ls_mds_value *, ls_feature *);
/* Adds what the value shows about the feature, which is left out once shapes vary, but of
 * images. */
void ls_mds_column_learn(ls_mds_column *, const ls_mds_value *, ls_feature *);
/* Decides how images become the feature; that of another kind stays as it is. LS_EINVAL: as
 * ls_image_fit_decide() says. */
ls_status ls_mds_column_fit(ls_mds_column *, const ls_image_way *, ls_feature *, const char *what,
                            ls_source *, ls_error *);
/* Stores the value in a sample; false: it does not fit the feature, or an image is damaged. */
bool ls_mds_column_store(const ls_mds_column *, const ls_mds_value *, const ls_feature *,
                         void *sample);

/* True if the feature, which an index has, can be one of this column: what it learned is then
 * stored without harm. */
bool ls_mds_column_fits(const ls_mds_column *, const ls_feature *);

#endif
