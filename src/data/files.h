/* files.h - a list of files, from paths and patterns. */
#ifndef LS_DATA_FILES_H
#define LS_DATA_FILES_H

#include <stddef.h>

#include "base/error.h"

typedef struct ls_files {
    char **paths; /* [n] in the order in which they are read */
    size_t n;
} ls_files;

/* paths: files, directories and patterns, one a line: braces (braces.h), then glob(7), with ** for
 * any number of directories, which finds regular files alone (walk.h). Files are
 * taken in the order of the lines; those that match a pattern, in byte order of their names. A file
 * that several patterns match is taken once. A path that exists is not a pattern. A path that does
 * not exist is taken, too: opening it reports the error.
 *
 * Errors: LS_EINVAL: a pattern matches no file; a path is "-". */
ls_status ls_files_find(const char *paths, ls_files *f_p, ls_error *);
void ls_files_add(ls_files *, const char *path);
void ls_files_free(ls_files *);

#endif
