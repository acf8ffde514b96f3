/* plural.h - "1 bucket", "2 buckets": printf("%d bucket%s", n, ls_plural(n)). */
#ifndef LS_BASE_PLURAL_H
#define LS_BASE_PLURAL_H

#include <stdint.h>

static inline const char *ls_plural(int64_t n) { return n == 1 ? "" : "s"; }

#endif
