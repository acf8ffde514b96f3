/* round_up.h - sizes in whole units: lines, pages, blocks. */
#ifndef LS_BASE_ROUND_UP_H
#define LS_BASE_ROUND_UP_H

#include <stddef.h>

/* The least multiple of `unit` that is not less than n. */
static inline size_t ls_round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

#endif
