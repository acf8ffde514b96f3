/* tally.h - recognizes files of texts, conversations or samples, and counts texts and
 * conversations. */
#ifndef LS_SOURCE_TALLY_H
#define LS_SOURCE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef enum ls_tally_kind { LS_TALLY_SAMPLES, LS_TALLY_TEXTS, LS_TALLY_CHATS } ls_tally_kind;

/* The kind of files, one path or pattern a line, by the first file: a text is recognized by its
 * name, conversations by the name and the first object. A directory is one of texts if most names
 * in it are those of texts, or more than those of pictures. */
ls_tally_kind ls_tally_kind_of(const char *paths);
/* The kind of files that can't be read as samples: directories of other files, and JSON with a text
 * in each object. */
ls_tally_kind ls_tally_kind_besides(const char *paths);

typedef struct ls_tally_request {
    const char *paths;
    const char *column; /* data.text; NULL: not named */
    bool skips_damaged; /* texts; conversations are read to the end anyway */
} ls_tally_request;

enum { LS_TALLY_KEYS = 8 };

typedef struct ls_tally {
    uint64_t nfiles, file_nbytes;
    uint64_t nchats, npairs, nmessages, nanswers;
    uint64_t ndocuments, nbytes; /* of texts */
    uint64_t ndamaged;           /* objects that are no conversations, or texts that are left out */
    /* [nkeys] of conversations: by which they are found, the first one's first */
    const char *keys[LS_TALLY_KEYS];
    int nkeys;
} ls_tally;

/* Reads all; logs damage. kind: texts or conversations. LS_EINVAL, LS_EIO: a file can't be read, or
 * is no text. */
ls_status ls_tally_read(const ls_tally_request *, ls_tally_kind kind, ls_tally *t_p, ls_error *);

#endif
