/* finite.h - numbers that a model can not learn from: NaN and infinities, which arrays may have. */
#ifndef LS_SOURCE_FINITE_H
#define LS_SOURCE_FINITE_H

#include "source/source.h"

/* Checks the numbers of these fields of sample i, which is as the fields say; s: a source that has
 * it, which names its file and record. LS_EINVAL: one is not finite. */
ls_status ls_finite_check(const ls_source *s, uint64_t i, const ls_field *fields, int nfields,
                          const void *sample, ls_error *);

#endif
