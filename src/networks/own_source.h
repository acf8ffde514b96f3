/* own_source.h - the data of a program (lockstep/data.h) as a source. */
#ifndef LS_NETWORKS_OWN_SOURCE_H
#define LS_NETWORKS_OWN_SOURCE_H

#include "config/config.h"
#include "lockstep/data.h"
#include "model/model.h"

struct ls_sample {
    const ls_source *source; /* whose fields it has */
    unsigned char *bytes;
};

/* LS_EINVAL: 2^62 samples or more. whose: "the program's data" */
ls_status ls_own_source_check_count(uint64_t count, const char *whose, ls_error *);
/* A source of the samples of `given`, with the fields of the model. LS_EINVAL: it has none. */
ls_status ls_own_source_of(const ls_own_source *given, const ls_model *, ls_source **s_p,
                           ls_error *);
/* A source of the samples of the program's data, whose fields are those of the model. It refers to
 * the program's memory. LS_EINVAL: the data can't be opened, or are no data. */
ls_status ls_own_source_open(const ls_config *, const ls_model *, ls_source **s_p, ls_error *);

#endif
