/* plugin.h - what the two files of the MPI plugin share.
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
    MPI_Comm comm;   /* a duplicate of MPI_COMM_WORLD, of this transport alone */
    ls_error broken; /* code LS_OK, or why MPI is not called any more */
} ls_mpi;

extern const ls_native_ops ls_mpi_native_ops;

/* A collective of MPI's own, on its way. */
typedef struct ls_mpi_native {
    ls_message *m; /* NULL: forgotten */
    const void *owner;
    uint64_t number;    /* from 1: the same at all workers; ls_mpi_watch() sets it */
    void *out, *target; /* target: where MPI writes; out, or room that is then copied there */
    size_t count, nbytes;
    int divide; /* an average's number of workers, or 0; of doubles, if `wide` */
    bool wide;
} ls_mpi_native;

/* poll() tests it from now on. */
void ls_mpi_watch(ls_mpi *, const ls_mpi_native *, MPI_Request);
/* MPI is done with it: the rest. */
void ls_mpi_native_finish(const ls_mpi_native *);

/* As ls_realloc(). */
void *ls_mpi_grow(void *p, size_t nbytes);

/* What an MPI call returned: LS_OK, or from now on the transport is broken. */
ls_status ls_mpi_check(ls_mpi *, int rc, const char *what);

/* The one symbol that the plugin exports. interface: the loader's LS_NET_INTERFACE. Initialises MPI
 * unless that is done; collective over MPI_COMM_WORLD. LS_EINVAL: another interface, MPI has been
 * finalised, or allows too little to threads. */
__attribute__((visibility("default"))) ls_status ls_mpi_plugin_open(int interface, ls_net **net_p,
                                                                    ls_error *e);

#endif
