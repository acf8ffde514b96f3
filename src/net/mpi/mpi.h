/* mpi.h - the transport "mpi", over the MPI that started the program.
 *
 * MPI libraries are not compatible with each other, so neither the library nor the program links
 * one: a plugin for each of them is loaded on demand. It is a file
 * lockstep-mpi-openmpi.so or lockstep-mpi-mpich.so in $LOCKSTEP_PLUGINS; else in `plugins` or
 * `../lib/lockstep` beside the program; else where Lockstep was installed.
 *
 * Threads  MPI is asked for MPI_THREAD_SERIALIZED. A program that initialised MPI itself, with
 *          MPI_THREAD_FUNNELED, calls its groups from that one thread.
 * End      closing notifies the other workers, for which this one is then lost. It finalises MPI if
 *          opening initialised it: it waits until the other workers close, too, and then MPI can't
 *          be opened again. After an error of MPI it doesn't, nor where a group is broken and some
 *          don't close within 10 s; then the launcher ends the others.
 */
#ifndef LS_NET_MPI_MPI_H
#define LS_NET_MPI_MPI_H

#include "net/net.h"

/* Collective. which: "openmpi", "mpich", or NULL: the one whose launcher started the program, as
 * the environment says. LS_EINVAL: there is no such plugin, or this MPI did not start the program.
 *
 * The workers meet in MPI_Init, which ends only when all have called it. A wait there is logged
 * (base/waiting.h); after timeout_ns (< 0: never) this process ends with an error, since nothing
 * else ends the call. */
ls_status ls_mpi_open(const char *which, int64_t timeout_ns, ls_net **net_p, ls_error *);

#endif
