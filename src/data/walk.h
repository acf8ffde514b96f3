/* walk.h - the regular files below a directory.
 *
 * Links are followed; a directory that several of them lead to is visited once, so that links in a
 * circle end. Files and directories whose names begin with a dot are left out.
 */
#ifndef LS_DATA_WALK_H
#define LS_DATA_WALK_H

#include <stdbool.h>

#include "data/files.h"

enum { LS_WALK_MOST = 10000000 /* names */ };

typedef struct ls_walk {
    ls_files files; /* sorted by the bytes of their paths, which begin with that of the directory */
    size_t nhidden; /* files and directories whose names begin with a dot */
    ls_files others; /* pipes, devices, links to nothing: in no order */
    size_t nagain;   /* links to directories that were visited, or that are not to be */
} ls_walk;

void ls_walk_free(ls_walk *);
/* The caller frees *w_p. LS_EIO: a directory can't be read. LS_EINVAL: there are more than
 * LS_WALK_MOST names. */
ls_status ls_walk_below(const char *dir, ls_walk *w_p, ls_error *);
/* As ls_walk_below(), but links to the directories `others` are not followed. */
ls_status ls_walk_beside(const char *dir, const ls_files *others, ls_walk *w_p, ls_error *);

/* Does a path have this pattern? Each component of the pattern is one of glob(7), or ** for any
 * number of directories, also none; at its end, for all that is below. Both are relative to one
 * directory. A wildcard stands for no dot at the beginning of a name. */
bool ls_walk_matches(const char *pattern, const char *path);

#endif
