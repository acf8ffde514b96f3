/* packed.h - rows of numbers as a message of those that are not all 0.
 *
 *     row row ... row  bits
 *
 * The rows that are sent, in their order, and behind them a bit for each row: is it sent? If that
 * would be no shorter than all rows, these are the message, without bits; its length shows which of
 * the two it is. Packing and unpacking are done in place. A row that is not sent is 0 afterwards.
 */
#ifndef LS_EXEC_PACKED_H
#define LS_EXEC_PACKED_H

#include <stdbool.h>
#include <stddef.h>

/* n rows of `nbytes` bytes each at `rows`; bits: memory of ls_packed_bits(n) bytes within a
 * call. */
typedef struct ls_packed_rows {
    unsigned char *rows;
    size_t n, nbytes;
    unsigned char *bits;
} ls_packed_rows;

static inline size_t ls_packed_bits(size_t n) { return (n + 7) / 8; }

/* Is the row wanted? Others are as rows of which all is 0. */
typedef bool ls_packed_wants(void *arg, size_t row);

/* Packs the rows that are wanted (NULL: all), and returns the bytes of the message: at most those
 * of all rows. */
size_t ls_packed_make(const ls_packed_rows *, ls_packed_wants *wants, void *arg);
/* Makes rows of a message of `nbytes` bytes that lies at their place. False: it can't be one; the
 * rows are undefined. */
bool ls_packed_open(const ls_packed_rows *, size_t nbytes);

#endif
