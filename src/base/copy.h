/* copy.h - copies of many bytes.
 *
 * glibc's memcpy() copies 4 KB to half a MB by `rep movsb`. On AMD's processors since Zen 3 that
 * instruction does 2 GB/s where source and destination are not aligned to each other by 64 bytes,
 * as the memory of malloc() and a shared arena are; a loop of loads and stores does 13 to 19 GB/s
 * there, and what memcpy() does elsewhere (measured on Zen 3 with glibc 2.36; sourceware.org bug
 * 30994, changed in glibc 2.39).
 */
#ifndef LS_BASE_COPY_H
#define LS_BASE_COPY_H

#include <stddef.h>

/* As memcpy(): nbytes from `from` to `to`, which do not overlap. For copies between buffers of
 * users and of workers, whose alignment we do not choose. */
void ls_copy(void *restrict to, const void *restrict from, size_t nbytes);

#endif
