/* fake.h - a source of random samples for a model, to measure its steps without data. */
#ifndef LS_PERF_FAKE_H
#define LS_PERF_FAKE_H

#include "model/model.h"

/* Bytes, classes and tokens are uniform, real numbers normal. All samples are made at once, so that
 * reading one is a copy. The caller closes the source. */
ls_source *ls_fake_source(const ls_model *, uint64_t count);

#endif
