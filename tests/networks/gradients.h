/* gradients.h - are the gradients of every layer of a model right? */
#ifndef LS_TEST_NETWORKS_GRADIENTS_H
#define LS_TEST_NETWORKS_GRADIENTS_H

#include "model/check.h"
#include "test.h"

static inline void print_wrong(void *arg, const ls_check_result *r) {
    (void)arg;
    if (r->wrong) print_error("%s: %s\n", r->layer->name, r->wrong);
}

static inline void assert_gradients(const ls_model *m) {
    ls_error e = {0};
    ls_check_count count = {0, 0};
    assert_ls_ok(ls_check_model(m, print_wrong, NULL, &count, &e), e);
    assert_int_equal(count.wrong + count.open, 0);
}

#endif
