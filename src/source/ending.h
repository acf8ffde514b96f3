/* ending.h - how names of files end, before the ending of a packing (.gz, .zst). */
#ifndef LS_SOURCE_ENDING_H
#define LS_SOURCE_ENDING_H

#include <stdbool.h>
#include <stddef.h>

/* The ending of a name, without that of a packing; its length in *n_p: 0 if there is none. */
const char *ls_ending_of(const char *path, size_t *n_p);
/* Is it one of these, in whatever case? endings: up to NULL. */
bool ls_ending_is_one_of(const char *path, const char *const *endings);

#endif
