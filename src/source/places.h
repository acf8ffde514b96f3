/* places.h - where the samples of a source begin: files that stay open, and an offset a sample. */
#ifndef LS_SOURCE_PLACES_H
#define LS_SOURCE_PLACES_H

#include "data/files.h"
#include "source/bytes.h"
#include "source/features.h"
#include "source/gaps.h"
#include "source/plain.h"
#include "source/source.h"

typedef struct ls_places {
    ls_plain *files;   /* [nfiles] */
    uint64_t *first;   /* [nfiles] the number of each file's first sample */
    uint64_t *records; /* [nfiles] the number of each file's first record */
    size_t nfiles;
    uint64_t *at; /* [n] offsets in the file */
    uint64_t n;
    ls_gaps gaps;   /* between the samples: records that are left out */
    ls_holes holes; /* of the files that ls_places_open() opens */
} ls_places;

typedef struct ls_sample_place {
    const ls_plain *file;
    uint64_t at;
} ls_sample_place;

/* Opens one more file; the samples that are added next are in it. */
ls_status ls_places_open(ls_places *, const char *path, const ls_source_options *, ls_error *);
/* The samples that are added next are in file i, which is read again from its beginning. */
void ls_places_begin(ls_places *, size_t i);
void ls_places_add(ls_places *, uint64_t at);
/* The next record is left out. */
void ls_places_leave_out(ls_places *);
/* Forgets all samples, and what was left out; the files stay open. */
void ls_places_forget(ls_places *);
/* Adds a sample before all others, in the first file. */
void ls_places_insert(ls_places *, uint64_t at);
/* The place of sample i < n. */
ls_sample_place ls_places_find(const ls_places *, uint64_t i);
void ls_places_close(ls_places *);

/* ls_source_leave_out() of the next record. */
ls_status ls_places_damaged(ls_places *, ls_source *, const ls_source_options *,
                            const ls_error *why, ls_error *e);

/* How sources of records begin, whose samples are at places. */
typedef struct ls_records {
    ls_source base;
    ls_places places;
    ls_features *features; /* that ls_source_follow() changes; NULL: the reader does it itself */
} ls_records;
/* base: the name of the format, read and close, and follow if there are no features. */
void ls_records_begin(ls_records *, ls_source base);
/* Ends the opening, whose status is s: counts the samples, or closes. */
ls_status ls_records_end(ls_records *, ls_status s, ls_source **s_p);

/* Writes to an index, and reads from one once the same files are open: samples, and what was left
 * out. */
void ls_places_put(const ls_places *, const ls_source *, ls_buf *);
void ls_places_take(ls_places *, ls_source *, ls_bytes *);

#endif
