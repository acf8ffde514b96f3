/* format.h - what a reader of a file format provides; source.c has the table of them. */
#ifndef LS_SOURCE_FORMAT_H
#define LS_SOURCE_FORMAT_H

#include "data/files.h"
#include "source/options.h"
#include "source/plain.h"

/* The first of the files, as a format sees it that is asked whether it can read it. */
typedef struct ls_first_file {
    const char *path;     /* as given */
    const char *name;     /* without directories and without .gz or .zst */
    bool is_dir;          /* then there are no bytes */
    bool named;           /* the name ends in one of this format's suffixes */
    const uint8_t *bytes; /* [nbytes] the first of the unpacked file, LS_PLAIN_FIRST at most */
    size_t nbytes;
    uint64_t size; /* bytes of the unpacked file; UINT64_MAX: not known, since it is packed */
} ls_first_file;

typedef struct ls_data_format {
    const char *name;        /* "idx" */
    bool in_records;         /* ls_source_in_records() */
    bool is_table;           /* ls_source_options.missing and csv act */
    bool has_columns;        /* of these, what says which columns are read, and data.missing */
    bool has_missing;        /* of these, data.missing alone */
    const char *suffixes[8]; /* ends of its files' names, without .gz or .zst; NULL ends them */
    /* NULL: the suffix decides. Asked first of a file that has the suffix: false where another
     * format's file has this suffix, too. Then of any other file: true only where the bytes leave
     * no doubt. */
    bool (*recognizes)(const ls_first_file *);
    /* The caller frees *s_p by its close(). options is not NULL. */
    ls_status (*open)(const ls_files *, const ls_source_options *options, ls_source **s_p,
                      ls_error *);
} ls_data_format;

extern const ls_data_format ls_format_idx, ls_format_npy, ls_format_cifar, ls_format_tokens;
extern const ls_data_format ls_format_csv, ls_format_jsonl, ls_format_tfrecord, ls_format_mds;
extern const ls_data_format ls_format_images, ls_format_webdataset, ls_format_ratings;
extern const ls_data_format ls_format_clicks;

#endif
