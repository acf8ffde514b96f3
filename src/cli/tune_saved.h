/* tune_saved.h - what a search was asked for, in its directory, so that `lockstep tune --resume DIR`
 * needs no more: DIR/base.yaml is a copy of the config, DIR/space.yaml of the file of the space, and
 * DIR/command.json has what the command line set.
 */
#ifndef LS_CLI_TUNE_SAVED_H
#define LS_CLI_TUNE_SAVED_H

#include "base/mem.h"

typedef struct cli_tune_saved {
    ls_buf config, space;    /* texts */
    const char *const *sets; /* [nsets] KEY=VALUE of --set */
    int nsets;
    char **owned;   /* [nsets] the same, of a search that was read */
    int64_t trials; /* of --trials; 0: those of the space */
} cli_tune_saved;

/* Writes or replaces the files. */
ls_status cli_tune_saved_write(const char *dir, const cli_tune_saved *, ls_error *);
/* Frees with cli_tune_saved_free(). LS_EINVAL: the directory has no search, or one of an older
 * version. */
ls_status cli_tune_saved_read(const char *dir, cli_tune_saved *s_p, ls_error *);
/* Of one that was read. */
void cli_tune_saved_free(cli_tune_saved *);

#endif
