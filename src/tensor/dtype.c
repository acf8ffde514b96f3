/* dtype.c - names and sizes of element types and operations. An unknown number has the name "?" and
 * size 0: it may come from another worker, and a message then names it. */
#include "tensor/dtype.h"

#include <string.h>

/* Kinds of elements, as a mask: an operation is defined for some of them. */
enum { FLOAT = 1, INTEGER = 2, BOOL = 4, PAIR = 8 };

static const struct {
    const char *name;
    size_t size;
    unsigned kind;
} dtypes[LS_NDTYPES] = {
    [LS_F64] = {"f64", 8, FLOAT},        [LS_F32] = {"f32", 4, FLOAT},
    [LS_BF16] = {"bf16", 2, FLOAT},      [LS_F16] = {"f16", 2, FLOAT},
    [LS_I64] = {"i64", 8, INTEGER},      [LS_I32] = {"i32", 4, INTEGER},
    [LS_I8] = {"i8", 1, INTEGER},        [LS_U8] = {"u8", 1, INTEGER},
    [LS_U16] = {"u16", 2, INTEGER},      [LS_U32] = {"u32", 4, INTEGER},
    [LS_U64] = {"u64", 8, INTEGER},      [LS_I16] = {"i16", 2, INTEGER},
    [LS_BOOL] = {"bool", 1, BOOL},       [LS_F64_I64] = {"f64_i64", 16, PAIR},
    [LS_F32_I32] = {"f32_i32", 8, PAIR}, [LS_I64_I64] = {"i64_i64", 16, PAIR},
    [LS_I32_I32] = {"i32_i32", 8, PAIR},
};

static const struct {
    const char *name, *takes_what;
    unsigned takes;
} ops[LS_NOPS] = {
    [LS_SUM] = {"sum", "numbers", FLOAT | INTEGER},
    [LS_AVG] = {"avg", "floating-point types", FLOAT},
    [LS_PROD] = {"prod", "numbers", FLOAT | INTEGER},
    [LS_MIN] = {"min", "numbers", FLOAT | INTEGER},
    [LS_MAX] = {"max", "numbers", FLOAT | INTEGER},
    [LS_LAND] = {"land", "integers and bool", INTEGER | BOOL},
    [LS_LOR] = {"lor", "integers and bool", INTEGER | BOOL},
    [LS_LXOR] = {"lxor", "integers and bool", INTEGER | BOOL},
    [LS_BAND] = {"band", "integers", INTEGER},
    [LS_BOR] = {"bor", "integers", INTEGER},
    [LS_BXOR] = {"bxor", "integers", INTEGER},
    [LS_MINLOC] = {"minloc", "pairs", PAIR},
    [LS_MAXLOC] = {"maxloc", "pairs", PAIR},
};

static bool is_dtype(ls_dtype dtype) { return (unsigned)dtype < LS_NDTYPES; }

size_t ls_dtype_size(ls_dtype dtype) {
    if (ls_dtype_is_own(dtype)) return (size_t)dtype - LS_OWN_ELEMENTS;
    return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

size_t ls_dtype_align(ls_dtype dtype) {
    if (ls_dtype_is_own(dtype)) return 1;
    return is_dtype(dtype) && dtypes[dtype].kind == PAIR ? dtypes[dtype].size / 2
                                                         : ls_dtype_size(dtype);
}

const char *ls_dtype_name(ls_dtype dtype) { return is_dtype(dtype) ? dtypes[dtype].name : "?"; }

bool ls_dtype_is_whole(ls_dtype dtype) {
    return is_dtype(dtype) && dtypes[dtype].kind & (INTEGER | BOOL);
}

int64_t ls_whole_at(ls_dtype dtype, const void *from) {
    bool is_signed = dtype == LS_I8 || dtype == LS_I16 || dtype == LS_I32 || dtype == LS_I64;
    size_t nbytes = ls_dtype_size(dtype), unused = 64 - 8 * nbytes;
    uint64_t bits = 0;
    memcpy(&bits, from, nbytes);
    if (is_signed) return (int64_t)(bits << unused) >> unused;
    return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

static bool is_op(ls_op op) { return (unsigned)op < LS_NOPS; }

const char *ls_op_name(ls_op op) { return is_op(op) ? ops[op].name : "?"; }

bool ls_op_takes(ls_op op, ls_dtype dtype) {
    return is_op(op) && is_dtype(dtype) && ops[op].takes & dtypes[dtype].kind;
}

const char *ls_op_takes_what(ls_op op) { return is_op(op) ? ops[op].takes_what : "nothing"; }
