/* data_record.h - which samples a run is trained on, by the hashes of the files they come from.
 *
 *     RUN/data.json   {"format": "lockstep data", "version": 1,
 *                      "directory": "/home/me",   in which the run began: relative paths are there
 *                      "training":   {"format": "idx", "paths": [...], "labels": [...],
 *                                     "samples": N, "xxh3_128": "..."},
 *                      "mix": [{"samples": N, "weight": 1.0}, ...]   of data.mix; else absent
 *                      "validation": the same of data.val_path; absent: a part of
 *                                     the training files
 *                      "fields": [{"name": "image", "dtype": "u8", "shape": [28, 28, 1]}, ...],
 *                      "classes": ["shirt", ...],   absent: they have no names
 *                      "numbering": [...]}   how texts became numbers (source/numbering.h)
 *
 * The file is written when a run begins; each checkpoint has a copy. The samples stay where they
 * are: a run resumes with files of the same contents, wherever they are, or not at all.
 */
#ifndef LS_DATASET_DATA_RECORD_H
#define LS_DATASET_DATA_RECORD_H

#include "data/mix.h"
#include "source/numbering.h"
#include "source/source.h"

#define LS_DATA_RECORD "data.json"

enum { LS_DATA_RECORD_NBYTES = 16 << 20, LS_DATA_DIRECTORY = 4096 }; /* at most */

/* The files of one part. */
typedef struct ls_data_part {
    uint64_t samples; /* 0: the part has no files of its own */
    ls_hash hash;
    bool in_records; /* the format's samples follow each other in files (ls_source_in_records()) */
    bool is_whole;   /* nothing of it is held out: LS_DATA_OWN_LOOP */
} ls_data_part;

/* The format of samples that a program's own loop fills in (train/feed.h): all are trained on. */
#define LS_DATA_OWN_LOOP "own loop"

typedef struct ls_data_record {
    ls_data_part training, validation;
    ls_mix mix;                        /* of the training part, as ranges of its samples */
    char directory[LS_DATA_DIRECTORY]; /* "": not known */
    bool has_numbering;                /* records of earlier versions lack it */
} ls_data_record;

/* What ls_data_record_write() writes of a part: its source, and the config's lists of files. */
typedef struct ls_data_given {
    const ls_source *source;    /* NULL: the part has no files of its own */
    const char *paths, *labels; /* one a line; labels may be empty */
    const ls_mix *mix;          /* NULL: none */
    const char *directory;      /* of relative paths */
} ls_data_given;

/* A hash that two records share if their samples are the same. */
ls_hash ls_data_record_identity(const ls_data_record *);
ls_data_part ls_data_part_of(const ls_source *); /* NULL: a part without files */
/* Appends the file's text. */
void ls_data_record_write(const ls_data_given *training, const ls_data_given *validation, ls_buf *);
/* Reads the file in a run's or checkpoint's directory. *there_p: it exists. LS_EINVAL: it is not a
 * valid record. */
ls_status ls_data_record_read(const char *dir, ls_data_record *r_p, bool *there_p, ls_error *);
/* The numbering of that file, which the caller frees. LS_EINVAL: it has none, or is damaged.
 * LS_EIO: it is not there. */
ls_status ls_data_record_numbering(const char *dir, ls_numbering *c_p, ls_error *);
/* The names of a field's classes; none, if the file or the names are not there. The caller frees
 * them. LS_EINVAL: the file is damaged. */
ls_status ls_data_record_classes(const char *dir, const char *field, ls_classes *c_p, ls_error *);

#endif
