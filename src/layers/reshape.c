/* flatten.c - the same numbers as a vector: no layer, only another shape. */
#include "model/builder.h"

ls_value *(ls_flatten)(ls_model *m, ls_value *x) {
    if (!ls_build_is_good(m)) return ls_build_failed(m);
    if (!x) return ls_build_fail(m, "flatten: the input is NULL");
    return ls_build_view(m, x, LS_DIMS(ls_value_count(x)));
}
