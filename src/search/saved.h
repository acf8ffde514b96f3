/* saved.h - what a search was asked for, in its directory, so that `lockstep tune --resume DIR`
 * needs no more: DIR/base.yaml is a copy of the config, DIR/space.yaml of the file of the space,
 * and DIR/command.json has what the command line set.
 */
#ifndef LS_SEARCH_SAVED_H
#define LS_SEARCH_SAVED_H

#include "base/mem.h"

typedef struct ls_search_saved {
    ls_buf config, space;    /* texts */
    const char *const *sets; /* [nsets] KEY=VALUE of --set */
    int nsets;
    char **owned;   /* [nsets] the same, of a search that was read */
    int64_t trials; /* of --trials; 0: those of the space */
} ls_search_saved;

/* Writes or replaces the files. */
ls_status ls_search_saved_write(const char *dir, const ls_search_saved *, ls_error *);
/* Frees with ls_search_saved_free(). LS_EINVAL: the directory has no search, or one of an older
 * version. */
ls_status ls_search_saved_read(const char *dir, ls_search_saved *s_p, ls_error *);
/* Frees a search that ls_search_saved_read() has read. */
void ls_search_saved_free(ls_search_saved *);

#endif
