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

/* Which whole numbers the layers of a model can read, by field (ls_model.classes). */
typedef struct ls_own_limits {
    int classes[LS_SOURCE_FIELDS];
    bool padded[LS_SOURCE_FIELDS];
    int ignored[LS_SOURCE_FIELDS];
} ls_own_limits;
ls_own_limits ls_own_limits_of(const ls_model *);
/* LS_EINVAL: a field of the sample with this number has another one: labels and ids are places in
 * memory. */
ls_status ls_own_limits_check(const ls_own_limits *, const ls_source *, const void *sample,
                              uint64_t number, ls_error *);

/* LS_EINVAL: 2^62 samples or more. whose: "the program's data" */
ls_status ls_own_source_check_count(uint64_t count, const char *whose, ls_error *);
/* A source of the samples of `given`, with the fields of the model. LS_EINVAL: it has none. */
ls_status ls_own_source_of(const ls_own_source *given, const ls_model *, ls_source **s_p,
                           ls_error *);
/* A source of the samples of the program's data, whose fields are those of the model. It refers to
 * the program's memory. LS_EINVAL: the data can't be opened, or are no data. */
ls_status ls_own_source_open(const ls_config *, const ls_model *, ls_source **s_p, ls_error *);

#endif
