/* text_files.h - which files are texts, of those that are named and those below directories. */
#ifndef LS_SOURCE_TEXT_FILES_H
#define LS_SOURCE_TEXT_FILES_H

#include "data/files.h"
#include "source/left_out.h"

typedef struct ls_text_files {
    ls_files files; /* in the order in which they are read */
    bool *below;    /* [files.n] it was found below a directory */
    size_t nbelow;
    ls_left_out left_out;
    bool json; /* of directories files of JSON alone are taken */
} ls_text_files;

/* The files of paths (files.h), directories replaced by the texts below them: files that end in
 * .txt .text .md .markdown .rst .json .jsonl or .ndjson, also before .gz or .zst, and others whose
 * first unpacked bytes are UTF-8 without control characters. LS_EINVAL: a directory has none. */
ls_status ls_text_files_find(const char *paths, ls_text_files *f_p, ls_error *);
/* As ls_text_files_find(), for conversations: below directories only files of JSON count. */
ls_status ls_text_files_find_json(const char *paths, ls_text_files *f_p, ls_error *);
/* Logs how many files below directories are read, without `nless` of them, and what is not. */
void ls_text_files_log(const ls_text_files *, const char *name, size_t nless);
void ls_text_files_free(ls_text_files *);

/* Does the name end in .txt, .text, .md, .markdown or .rst, also before .gz or .zst? */
bool ls_text_files_is_plain(const char *path);
/* Does the name end in .json, .jsonl or .ndjson, also before .gz or .zst? */
bool ls_text_files_is_json(const char *path);

#endif
