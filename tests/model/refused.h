/* refused.h - models that can't be built, and what the message says. */
#ifndef LS_TEST_MODEL_REFUSED_H
#define LS_TEST_MODEL_REFUSED_H

#include "model/builder.h"
#include "test.h"

typedef struct refused_model {
    void (*build)(ls_model *);
    const char *says;
} refused_model;

static inline void check_refused(const refused_model *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ls_model m = {0};
        ls_error e = {0};
        cases[i].build(&m);
        assert_ls_fails(ls_build_finish(&m, &e), LS_EINVAL, cases[i].says, e);
        ls_model_free(&m);
    }
}

#endif
