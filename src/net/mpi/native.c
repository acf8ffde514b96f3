/* native.c - MPI's own collectives; see net/native.h. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/mpi/plugin.h"

static bool is_float(ls_dtype t) { return t == LS_F64 || t == LS_F32; }

static bool native_supports(ls_dtype t, ls_op op) {
    if (t == LS_BF16 || t == LS_F16) return false;
    if (is_float(t)) return op == LS_SUM || op == LS_AVG || op == LS_PROD;
    return op != LS_AVG;
}

static MPI_Datatype type_of(ls_dtype t) {
    switch (t) {
    case LS_F64: return MPI_DOUBLE;
    case LS_F32: return MPI_FLOAT;
    case LS_I64: return MPI_INT64_T;
    case LS_I32: return MPI_INT32_T;
    case LS_I8: return MPI_INT8_T;
    case LS_U8: return MPI_UINT8_T;
    default: return MPI_UINT16_T; /* halves are only moved */
    }
}

static size_t size_of(ls_dtype t) {
    switch (t) {
    case LS_F64:
    case LS_I64: return 8;
    case LS_F32:
    case LS_I32: return 4;
    case LS_I8:
    case LS_U8: return 1;
    default: return 2;
    }
}

static MPI_Op op_of(ls_op op) {
    switch (op) {
    case LS_PROD: return MPI_PROD;
    case LS_MIN: return MPI_MIN;
    case LS_MAX: return MPI_MAX;
    default: return MPI_SUM;
    }
}

static ls_status refuse(ls_dtype t, ls_op op, ls_error *e) {
    static const char *const types[] = {"f64", "f32", "bf16", "f16", "i64", "i32", "i8", "u8"};
    static const char *const ops[] = {"sum", "avg", "prod", "min", "max"};
    return ls_fail(e, LS_EINVAL, "MPI's own collectives don't make the %s of %s here: %s", ops[op],
                   types[t], "use another algorithm than 'native'");
}

/* An int counts what MPI takes at once. */
static ls_status too_long(const ls_mpi *x, size_t count, ls_error *e) {
    return ls_fail(e, LS_EINVAL,
                   "%d blocks of %zu elements are too long for MPI's own collective: use "
                   "another algorithm than 'native'",
                   x->net.size, count);
}

static bool fits(const ls_mpi *x, size_t count, ls_dtype t) {
    return count <= (size_t)INT_MAX / size_of(t) / (size_t)x->net.size;
}

static ls_status usable(const ls_mpi *x, ls_error *e) {
    if (x->broken.code != LS_OK && e) *e = x->broken;
    return x->broken.code;
}

static ls_status result(ls_mpi *x, int rc, const char *what, ls_error *e) {
    if (ls_mpi_check(x, rc, what) == LS_OK) return LS_OK;
    return usable(x, e);
}

static void average(void *out, size_t count, ls_dtype t, int n) {
    for (size_t i = 0; t == LS_F32 && i < count; i++) ((float *)out)[i] /= (float)n;
    for (size_t i = 0; t == LS_F64 && i < count; i++) ((double *)out)[i] /= n;
}

static ls_status native_all_reduce(ls_net *net, const void *in, void *out, size_t count, ls_dtype t,
                                   ls_op op, ls_error *e) {
    static const size_t most = (size_t)1 << 30;
    ls_mpi *x = (ls_mpi *)net;
    LS_TRY(usable(x, e));
    if (!native_supports(t, op)) return refuse(t, op, e);
    for (size_t first = 0; first < count; first += most) {
        size_t n = count - first < most ? count - first : most, at = first * size_of(t);
        const void *from = in == out ? MPI_IN_PLACE : (const unsigned char *)in + at;
        int rc =
            MPI_Allreduce(from, (unsigned char *)out + at, (int)n, type_of(t), op_of(op), x->comm);
        LS_TRY(result(x, rc, "MPI_Allreduce", e));
    }
    if (op == LS_AVG) average(out, count, t, net->size);
    return LS_OK;
}

static ls_status native_reduce_scatter(ls_net *net, const void *in, void *out, size_t count,
                                       ls_dtype t, ls_op op, ls_error *e) {
    ls_mpi *x = (ls_mpi *)net;
    LS_TRY(usable(x, e));
    if (!native_supports(t, op)) return refuse(t, op, e);
    if (!fits(x, count, t)) return too_long(x, count, e);
    if (!count) return LS_OK;
    /* MPI knows no result inside of the input. */
    size_t nbytes = count * size_of(t);
    bool inside = (const unsigned char *)in + (size_t)net->rank * nbytes == out;
    void *to = inside ? malloc(nbytes) : out;
    if (!to) return ls_fail(e, LS_ENOMEM, "no %zu bytes for a reduce-scatter", nbytes);
    int rc = MPI_Reduce_scatter_block(in, to, (int)count, type_of(t), op_of(op), x->comm);
    if (inside) {
        memcpy(out, to, nbytes);
        free(to);
    }
    LS_TRY(result(x, rc, "MPI_Reduce_scatter_block", e));
    if (op == LS_AVG) average(out, count, t, net->size);
    return LS_OK;
}

static ls_status native_all_gather(ls_net *net, const void *in, void *out, size_t count, ls_dtype t,
                                   ls_error *e) {
    ls_mpi *x = (ls_mpi *)net;
    LS_TRY(usable(x, e));
    if (!fits(x, count, t)) return too_long(x, count, e);
    if (!count) return LS_OK;
    bool inside = (unsigned char *)out + (size_t)net->rank * count * size_of(t) == in;
    int rc = MPI_Allgather(inside ? MPI_IN_PLACE : in, (int)count, type_of(t), out, (int)count,
                           type_of(t), x->comm);
    return result(x, rc, "MPI_Allgather", e);
}

static ls_status native_broadcast(ls_net *net, void *buf, size_t count, ls_dtype t, int root,
                                  ls_error *e) {
    static const size_t most = (size_t)1 << 28;
    ls_mpi *x = (ls_mpi *)net;
    LS_TRY(usable(x, e));
    for (size_t first = 0; first < count; first += most) {
        size_t n = count - first < most ? count - first : most;
        int rc =
            MPI_Bcast((unsigned char *)buf + first * size_of(t), (int)n, type_of(t), root, x->comm);
        LS_TRY(result(x, rc, "MPI_Bcast", e));
    }
    return LS_OK;
}

const ls_native_ops ls_mpi_native = {.supports = native_supports,
                                     .all_reduce = native_all_reduce,
                                     .reduce_scatter_block = native_reduce_scatter,
                                     .all_gather = native_all_gather,
                                     .broadcast = native_broadcast};
