/* file_kind.h - files of other programs, by their first bytes or names: what they are, and what
 * makes samples of them. A message that says so helps more than one that a file is of no known
 * format.
 */
#ifndef LS_BASE_FILE_KIND_H
#define LS_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ls_file_kind {
    const char *name;  /* "an HDF5 file" */
    const char *makes; /* what to do in order to train on it */
    bool is_table;     /* it is a table as a text: read as CSV, if that is asked for */
} ls_file_kind;

/* path: of the file; its name may end in a suffix that tells more. first [n]: its first bytes, 4096
 * if it has as many. NULL: it is none of them. */
const ls_file_kind *ls_file_kind_of(const char *path, const uint8_t *first, size_t n);

#endif
