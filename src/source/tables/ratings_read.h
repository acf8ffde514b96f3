/* ratings_read.h - interactions from CSV files, and which of them are held out. */
#ifndef LS_SOURCE_TABLES_RATINGS_READ_H
#define LS_SOURCE_TABLES_RATINGS_READ_H

#include "data/files.h"
#include "source/tables/ratings.h"

/* r->wanted is set; sets the rest. s gets the hash and the numbers of files and damaged rows.
 * LS_EINVAL: the files lack a column, have no rows, or a user has all items and negatives are
 * wanted. On failure too r is to be freed. */
ls_status ls_ratings_read_files(const ls_files *, const ls_source_options *, ls_ratings *r,
                                ls_source *s, ls_error *);
/* The interactions of other files become those that are held out; of the users and items of r
 * alone. s as above. LS_EINVAL: they have none of these. */
ls_status ls_ratings_read_held_out(const ls_files *, const ls_source_options *, ls_ratings *r,
                                   ls_source *s, ls_error *);
void ls_ratings_free(ls_ratings *);

#endif
