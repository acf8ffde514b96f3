/* plugin.h - what the files of the MPI plugin share.
 *
 * The plugin is compiled once for each MPI (their mpi.h differ) and loaded by ls_mpi_open(). It may
 * use our headers, but no function of the library: the program that loads it may have linked the
 * library statically. base/error.c is compiled into it.
 */
#ifndef LS_NET_MPI_PLUGIN_H
#define LS_NET_MPI_PLUGIN_H

#include <mpi.h>

#include "net/native.h"
#include "net/net.h"

/* The transport's struct begins with this. */
typedef struct ls_mpi {
    ls_net net;
    MPI_Comm comm;   /* a duplicate of MPI_COMM_WORLD, for this transport alone */
    ls_error broken; /* code LS_OK, or why MPI is not called any more */
} ls_mpi;

extern const ls_native_ops ls_mpi_native_ops;

/* A collective of MPI's own that is on its way. */
typedef struct ls_mpi_native {
    ls_message *m; /* NULL: forgotten */
    const void *owner;
    uint64_t number;    /* from 1: the same at all workers; ls_mpi_watch() sets it */
    void *out, *target; /* target: where MPI writes; out, or memory that is then copied to out */
    size_t count, nbytes;
    int divide; /* of an average: the number of workers; else 0 */
    bool wide;  /* it averages doubles, not floats */
} ls_mpi_native;

/* From now on poll() tests it. */
void ls_mpi_watch(ls_mpi *, const ls_mpi_native *, MPI_Request);
/* Completes one that MPI has finished: copies the result to `out`, and divides an average. */
void ls_mpi_native_finish(const ls_mpi_native *);

/* As ls_realloc(). */
void *ls_mpi_grow(void *p, size_t nbytes);

/* Checks what an MPI call returned: LS_OK, or from now on the transport is broken. */
ls_status ls_mpi_check(ls_mpi *, int rc, const char *what);

/* The one symbol that the plugin exports. interface: the loader's LS_NET_INTERFACE. Initialises MPI
 * unless the program has done that; collective over MPI_COMM_WORLD. LS_EINVAL: another interface;
 * MPI has been finalised; its level of thread support is too low. */
__attribute__((visibility("default"))) ls_status ls_mpi_plugin_open(int interface, ls_net **net_p,
                                                                    ls_error *e);

#endif
