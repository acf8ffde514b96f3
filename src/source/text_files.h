/* text_files.h - which files are texts, of those that are named and those below directories. */
#ifndef LS_SOURCE_TEXT_FILES_H
#define LS_SOURCE_TEXT_FILES_H

#include "base/mem.h"
#include "data/files.h"
#include "data/words.h"

/* What is below directories and not read, for one line in the log. */
typedef struct ls_left_out {
    ls_words kinds;   /* ends of names: ".png", "without an ending" */
    uint64_t *counts; /* [kinds.n] */
} ls_left_out;

typedef struct ls_text_files {
    ls_files files; /* in the order in which they are read */
    bool *below;    /* [files.n] it was found below a directory */
    size_t nbelow;
    ls_left_out left_out;
} ls_text_files;

/* The files of paths (files.h), directories replaced by the texts below them: files that end in .txt
 * .text .md .markdown .rst .json .jsonl or .ndjson, also before .gz or .zst, and others whose first
 * unpacked bytes are UTF-8 without control characters. LS_EINVAL: a directory has none. */
ls_status ls_text_files_find(const char *paths, ls_text_files *f_p, ls_error *);
void ls_text_files_free(ls_text_files *);

/* Does the name end in .json, .jsonl or .ndjson, also before .gz or .zst? */
bool ls_text_files_is_json(const char *path);

/* Counts a file that is not read, as of its kind (`kind`), or NULL: as of its name's ending. */
void ls_left_out_add(ls_left_out *, const char *path, const char *kind);
/* Appends "3 .png, 1 hidden". */
void ls_left_out_put(const ls_left_out *, ls_buf *);

#endif
