/* scratch.h - memory that lies in a file, and may be larger than there is memory.
 *
 * The file has no name from the beginning, so nothing is left when the program ends in any way.
 */
#ifndef LS_BASE_SCRATCH_H
#define LS_BASE_SCRATCH_H

#include <stddef.h>

#include "base/error.h"

/* A file of zeros in folder `dir`, which takes no place on the disk yet. Close it when mapped. */
ls_status ls_scratch_open(const char *dir, size_t nbytes, int *file_p, ls_error *);

/* Makes sure that the disk has room for a part. LS_EIO where it has not. Else a write to a mapped
 * page for which there is no room would end the program (SIGBUS). */
ls_status ls_scratch_reserve(int file, const char *dir, size_t first, size_t nbytes, ls_error *);

/* The whole file as memory; ls_unmap() it. */
ls_status ls_scratch_map(int file, const char *dir, size_t nbytes, void **p_p, ls_error *);

#endif
