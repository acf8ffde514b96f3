/* dtype.c - names and sizes of element types and operations. A number that is none of them has the
 * name "?" and size 0: it may come from another worker and is then named in a message. */
#include "tensor/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    bool is_float;
} dtypes[LS_NDTYPES] = {
    [LS_F64] = {"f64", 8, true}, [LS_F32] = {"f32", 4, true},  [LS_BF16] = {"bf16", 2, true},
    [LS_F16] = {"f16", 2, true}, [LS_I64] = {"i64", 8, false}, [LS_I32] = {"i32", 4, false},
    [LS_I8] = {"i8", 1, false},  [LS_U8] = {"u8", 1, false},
};

static const char *const ops[LS_NOPS] = {
    [LS_SUM] = "sum", [LS_AVG] = "avg", [LS_PROD] = "prod", [LS_MIN] = "min", [LS_MAX] = "max"};

static bool is_dtype(ls_dtype dtype) { return (unsigned)dtype < LS_NDTYPES; }

size_t ls_dtype_size(ls_dtype dtype) { return is_dtype(dtype) ? dtypes[dtype].size : 0; }

const char *ls_dtype_name(ls_dtype dtype) { return is_dtype(dtype) ? dtypes[dtype].name : "?"; }

const char *ls_op_name(ls_op op) { return (unsigned)op < LS_NOPS ? ops[op] : "?"; }

bool ls_dtype_is_float(ls_dtype dtype) { return is_dtype(dtype) && dtypes[dtype].is_float; }

bool ls_dtype_from_name(const char *name, ls_dtype *dtype_p) {
    for (int i = 0; name && i < LS_NDTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype_p = (ls_dtype)i;
            return true;
        }
    return false;
}

bool ls_op_from_name(const char *name, ls_op *op_p) {
    for (int i = 0; name && i < LS_NOPS; i++)
        if (strcmp(ops[i], name) == 0) {
            *op_p = (ls_op)i;
            return true;
        }
    return false;
}
