/* min.h - the smaller and the larger of two numbers. */
#ifndef LS_BASE_MIN_H
#define LS_BASE_MIN_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t ls_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ls_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline size_t ls_min_size(size_t a, size_t b) { return a < b ? a : b; }

#endif
