/* id_names.h - ids of texts, such as the names of users: numbered in the order in which they first
 * appear. */
#ifndef LS_SOURCE_ID_NAMES_H
#define LS_SOURCE_ID_NAMES_H

#include "source/csv.h"

typedef struct ls_id_names { /* zero-initialised: empty */
    ls_buf texts;            /* one after the other, each with a 0 */
    size_t *at;              /* [n] where each begins in `texts` */
    int32_t n;
    int32_t *slots; /* [nslots] ids plus 1, by the hash of their texts; 0: free */
    size_t nslots;  /* a power of 2 */
} ls_id_names;

/* The id of a text, which is new unless it was there. -1: there are INT32_MAX others. */
int32_t ls_id_of(ls_id_names *, const char *text, size_t n);
/* The id of a text that is there; -1: it is not. */
int32_t ls_id_find(const ls_id_names *, const char *text, size_t n);
/* The id of a cell's text, as ls_id_find(). */
ls_status ls_id_find_cell(const ls_id_names *, const ls_csv_cell *, const char *name, int32_t *id_p,
                          ls_error *);
/* ls_id_of() of a cell. LS_EINVAL: it is empty, or too long; `name` is its column's. */
ls_status ls_id_of_cell(ls_id_names *, const ls_csv_cell *, const char *name, int32_t *id_p,
                        ls_error *);
/* Without a list of names: the hash of the cell's text modulo `nids`, 1 to INT32_MAX. Different
 * texts may have the same id. */
ls_status ls_id_hash_of_cell(int64_t nids, const ls_csv_cell *, const char *name, int32_t *id_p,
                             ls_error *);
const char *ls_id_name(const ls_id_names *, int32_t id);
void ls_id_names_free(ls_id_names *);

#endif
