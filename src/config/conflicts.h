/* conflicts.h - what does not go with what: values of keys that exclude each other, as a table.
 *
 * From it come the messages, the lines of `lockstep help config`, and the page
 * docs/reference/what-goes-with-what.md. What a key needs in order to act is needs.h; sums and
 * divisors are relations.c.
 */
#ifndef LS_CONFIG_CONFLICTS_H
#define LS_CONFIG_CONFLICTS_H

#include "config/config.h"

typedef struct ls_config_conflict {
    const char *one;    /* terms (terms.h) */
    const char *others; /* none of these alternatives goes with it */
    const char *why;    /* ends a message: the reason, and what to do */
} ls_config_conflict;

extern const ls_config_conflict ls_config_conflicts[]; /* ends with {NULL, NULL, NULL} */

/* LS_EINVAL: both sides of the row hold. */
ls_status ls_config_check_conflict(const ls_config *, const ls_config_conflict *, const char *where,
                                   ls_error *);
/* LS_EINVAL: both sides of a row hold; the message names the first such row. */
ls_status ls_config_check_conflicts(const ls_config *, const char *where, ls_error *);

/* Appends a sentence for each row that names the key: "parallel.zero > 1 does not go with ...". */
void ls_config_put_conflicts(const char *key, ls_buf *);

#endif
