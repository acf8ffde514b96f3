/* mixed.h - several sources with the same fields as one: the samples of the first, then those of
 * the second, and so on. How often each is taken is not decided here (data/mix.h).
 */
#ifndef LS_SOURCE_MIXED_H
#define LS_SOURCE_MIXED_H

#include "source/source.h"

/* Takes parts [n] over, also on failure. names [n] (paths) name them in messages. The fields must
 * be the same; so must the names of classes, in their order. LS_EINVAL. */
ls_status ls_mixed_open(ls_source *const *parts, const char *const *names, int n, ls_source **s_p,
                        ls_error *);

#endif
