/* places.h - where the samples of a source begin: files that stay open, and an offset a sample. */
#ifndef LS_SOURCE_PLACES_H
#define LS_SOURCE_PLACES_H

#include "data/files.h"
#include "source/bytes.h"
#include "source/plain.h"

typedef struct ls_places {
    ls_plain *files; /* [nfiles] */
    uint64_t *first; /* [nfiles] the number of each file's first sample */
    size_t nfiles;
    uint64_t *at; /* [n] offsets in the file */
    uint64_t n;
} ls_places;

typedef struct ls_sample_place {
    const ls_plain *file;
    uint64_t at;
    uint64_t index; /* the sample's number in its file */
} ls_sample_place;

/* Opens one more file; the samples that are added next are in it. */
ls_status ls_places_open(ls_places *, const char *path, const ls_source_options *, ls_error *);
void ls_places_add(ls_places *, uint64_t at);
/* Before all others, in the first file. */
void ls_places_insert(ls_places *, uint64_t at);
/* The place of sample i < n. */
ls_sample_place ls_places_find(const ls_places *, uint64_t i);
/* Appends the path of the file with sample i, if there are several. */
void ls_places_put_name(const ls_places *, uint64_t i, ls_buf *);
/* The hash of all files, in their order: that of the file itself if there is one. */
ls_hash ls_places_hash(const ls_places *);
void ls_places_close(ls_places *);

/* To an index and from it, once the same files are open: samples, and what was left out. */
void ls_places_put(const ls_places *, const ls_source *, ls_buf *);
void ls_places_take(ls_places *, ls_source *, ls_bytes *);

#endif
