/* mpi_native.c - MPI's own collectives; see net/native.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "net/mpi/plugin.h"

static bool is_float(ls_dtype t) { return t == LS_F64 || t == LS_F32; }

static size_t size_of(ls_dtype t) {
    switch (t) {
    case LS_F64_I64:
    case LS_I64_I64: return 16;
    case LS_F32_I32:
    case LS_I32_I32:
    case LS_F64:
    case LS_U64:
    case LS_I64: return 8;
    case LS_F32:
    case LS_U32:
    case LS_I32: return 4;
    case LS_BOOL:
    case LS_I8:
    case LS_U8: return 1;
    default: return 2;
    }
}

static bool is_logic(ls_op op) { return op >= LS_LAND && op <= LS_BXOR; }

/* Do MPI's libraries compute this right? Open MPI 4.1.4's sums of 8 and 16 bits saturate if the
 * processor has AVX; MPICH 4.0.2 takes unsigned integers for signed in minima and maxima. */
static bool reduces_well(ls_dtype t, ls_op op) {
    if (t == LS_BF16 || t == LS_F16 || t > LS_BOOL) return false;
    if (is_float(t)) return op == LS_SUM || op == LS_AVG || op == LS_PROD;
    if (is_logic(op)) return true;
    if (op == LS_MIN || op == LS_MAX) return t == LS_I64 || t == LS_I32;
    return op != LS_AVG && size_of(t) >= 4;
}

static MPI_Datatype type_of(ls_dtype t) {
    switch (t) {
    case LS_F64: return MPI_DOUBLE;
    case LS_F32: return MPI_FLOAT;
    case LS_I64: return MPI_INT64_T;
    case LS_I32: return MPI_INT32_T;
    case LS_I8: return MPI_INT8_T;
    case LS_U8: return MPI_UINT8_T;
    case LS_U32: return MPI_UINT32_T;
    case LS_U64: return MPI_UINT64_T;
    case LS_I16: return MPI_INT16_T;
    case LS_BOOL: return MPI_C_BOOL;
    case LS_F64_I64: /* pairs are only moved */
    case LS_I64_I64: return MPI_C_DOUBLE_COMPLEX;
    case LS_F32_I32:
    case LS_I32_I32: return MPI_INT64_T;
    default: return MPI_UINT16_T; /* u16; halves are only moved */
    }
}

static MPI_Op op_of(ls_op op) {
    switch (op) {
    case LS_PROD: return MPI_PROD;
    case LS_MIN: return MPI_MIN;
    case LS_MAX: return MPI_MAX;
    case LS_LAND: return MPI_LAND;
    case LS_LOR: return MPI_LOR;
    case LS_LXOR: return MPI_LXOR;
    case LS_BAND: return MPI_BAND;
    case LS_BOR: return MPI_BOR;
    case LS_BXOR: return MPI_BXOR;
    default: return MPI_SUM;
    }
}

static bool reduces(ls_native_what what) {
    return what == LS_NATIVE_ALL_REDUCE || what == LS_NATIVE_REDUCE_SCATTER ||
           what == LS_NATIVE_REDUCE || what == LS_NATIVE_SCAN || what == LS_NATIVE_EXSCAN;
}

static bool native_can(const ls_net *net, const ls_native_call *c) {
    bool whole = c->what == LS_NATIVE_ALL_REDUCE || c->what == LS_NATIVE_REDUCE ||
                 c->what == LS_NATIVE_BROADCAST || c->what == LS_NATIVE_SCAN ||
                 c->what == LS_NATIVE_EXSCAN;
    size_t blocks = whole ? 1 : (size_t)net->size;
    return c->count <= (size_t)INT_MAX / size_of(c->dtype) / blocks &&
           (!reduces(c->what) || reduces_well(c->dtype, c->op));
}

static const void *own_block(const ls_net *net, const ls_native_call *c) {
    return (const unsigned char *)c->in + (size_t)net->rank * c->count * size_of(c->dtype);
}

static size_t out_nbytes(const ls_net *net, const ls_native_call *c) {
    size_t block = c->count * size_of(c->dtype);
    if (c->what == LS_NATIVE_EXSCAN && net->rank == 0) return 0;
    return c->what == LS_NATIVE_ALL_TO_ALL ? (size_t)net->size * block : block;
}

/* Where MPI writes. It supports no reduce-scatter whose result lies inside its input, and an
 * all-to-all in place only if all workers do it in place. */
static void *target_of(const ls_net *net, const ls_native_call *c) {
    const unsigned char *own = (const unsigned char *)c->in;
    own += (size_t)net->rank * c->count * size_of(c->dtype);
    bool inside = (c->what == LS_NATIVE_REDUCE_SCATTER && c->out == own) ||
                  (c->what == LS_NATIVE_ALL_TO_ALL && c->out == c->in);
    size_t room = out_nbytes(net, c);
    if (c->what == LS_NATIVE_EXSCAN && net->rank == 0) { /* MPICH needs an `out` there, too */
        inside = true;
        room = c->count * size_of(c->dtype);
    }
    return inside && c->count ? ls_mpi_grow(NULL, room) : c->out;
}

static int post(ls_mpi *x, const ls_native_call *c, void *out, MPI_Request *r_p) {
    MPI_Datatype t = type_of(c->dtype);
    MPI_Op op = op_of(c->op);
    MPI_Comm comm = x->comm;
    int n = (int)c->count, root = c->root;
    const unsigned char *mine =
        (const unsigned char *)out + (size_t)x->net.rank * c->count * size_of(c->dtype);
    const void *in = c->in == c->out ? MPI_IN_PLACE : c->in;
    switch (c->what) {
    case LS_NATIVE_ALL_REDUCE: return MPI_Iallreduce(in, out, n, t, op, comm, r_p);
    case LS_NATIVE_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(c->in, out, n, t, op, comm, r_p);
    case LS_NATIVE_ALL_GATHER:
        in = c->in == mine ? MPI_IN_PLACE : c->in;
        return MPI_Iallgather(in, n, t, out, n, t, comm, r_p);
    case LS_NATIVE_BROADCAST: return MPI_Ibcast(out, n, t, root, comm, r_p);
    case LS_NATIVE_REDUCE:
        in = x->net.rank == root ? in : c->in;
        return MPI_Ireduce(in, out, n, t, op, root, comm, r_p);
    case LS_NATIVE_GATHER:
        in = x->net.rank == root && c->in == mine ? MPI_IN_PLACE : c->in;
        return MPI_Igather(in, n, t, out, n, t, root, comm, r_p);
    case LS_NATIVE_SCATTER:
        if (x->net.rank == root && c->out == own_block(&x->net, c)) out = MPI_IN_PLACE;
        return MPI_Iscatter(c->in, n, t, out, n, t, root, comm, r_p);
    case LS_NATIVE_ALL_TO_ALL: return MPI_Ialltoall(c->in, n, t, out, n, t, comm, r_p);
    case LS_NATIVE_SCAN: return MPI_Iscan(in, out, n, t, op, comm, r_p);
    case LS_NATIVE_EXSCAN:
        if (x->net.rank == 0) in = c->in;
        return MPI_Iexscan(in, out, n, t, op, comm, r_p);
    default: return MPI_Ibarrier(comm, r_p);
    }
}

static ls_status native_start(ls_net *net, const ls_native_call *c, ls_message *m, ls_error *e) {
    ls_mpi *x = (ls_mpi *)net;
    ls_mpi_native n = {.m = m, .owner = m->owner, .out = c->out, .target = target_of(net, c)};
    bool gets = c->what != LS_NATIVE_REDUCE || c->root == net->rank;
    MPI_Request request = MPI_REQUEST_NULL;
    if (x->broken.code == LS_OK)
        ls_mpi_check(x, post(x, c, n.target, &request), "a collective of MPI's own");
    if (x->broken.code != LS_OK) {
        if (n.target != n.out) free(n.target);
        if (e) *e = x->broken;
        return x->broken.code;
    }
    n.count = c->count;
    n.nbytes = out_nbytes(net, c);
    n.divide = reduces(c->what) && c->op == LS_AVG && gets ? net->size : 0;
    n.wide = c->dtype == LS_F64;
    ls_mpi_watch(x, &n, request);
    return LS_OK;
}

void ls_mpi_native_finish(const ls_mpi_native *n) {
    if (n->target != n->out) {
        if (n->nbytes) memcpy(n->out, n->target, n->nbytes);
        free(n->target);
    }
    for (size_t i = 0; n->divide && n->wide && i < n->count; i++)
        ((double *)n->out)[i] /= n->divide;
    for (size_t i = 0; n->divide && !n->wide && i < n->count; i++)
        ((float *)n->out)[i] /= (float)n->divide;
}

const ls_native_ops ls_mpi_native_ops = {.can = native_can, .start = native_start};
