/* device.h - a device that computes: memory of its own, kernels, and streams of work.
 *
 * What is queued on one stream runs in its order; streams run beside each other, and an event makes
 * one wait for another. Queuing returns at once. So memory of the host that a copy uses must stay
 * as it is until the copy is done, and so must memory of the device until all that use it are:
 * after ls_device_finish(), or by an event.
 *
 * Addresses of a device's memory are pointers that the host must not follow. Arithmetic on them is
 * allowed.
 *
 * An error of queued work is kept, and what is queued later has no effect; ls_device_finish()
 * reports it.
 */
#ifndef LS_DEVICE_DEVICE_H
#define LS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/kernels.h"
#include "device/readers.h"

typedef struct ls_device ls_device;

typedef enum ls_device_stream {
    LS_DEVICE_COMPUTE,
    LS_DEVICE_COPY,
    LS_DEVICE_NSTREAMS
} ls_device_stream;

enum { LS_DEVICE_EVENTS = 64, LS_LAUNCH_ARGS = 32 };
/* Bytes of a page: drivers give whole ones. */
enum { LS_DEVICE_PAGE = 2 << 20 };

/* A value of a kernel's parameter, of the type that the kernel's signature says (kernels.h). */
typedef union ls_device_arg {
    void *p;
    const void *from; /* as p: memory that is only read */
    int64_t l;
    float f;
} ls_device_arg;

typedef struct ls_device_call {
    ls_device_kernel kernel;
    /* Each of the kernel's number of items; 0: nothing runs. At most 2^31 - 1 and 65535. */
    int64_t groups_x, groups_y;
    ls_device_arg args[LS_LAUNCH_ARGS];
} ls_device_call;

/* The groups that n items, rows or numbers need if each has `each` of them. */
static inline int64_t ls_device_groups(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* A device that a process can open. */
typedef struct ls_device_seen {
    int number;    /* as in cuda:1 */
    uint64_t id;   /* all processes of a machine see the same one; 0: each process makes a device of
                    * its own */
    bool is_cores; /* the driver runs it on the host's cores */
} ls_device_seen;

/* Names memory of a device for other processes of its host. */
typedef struct ls_device_handle {
    unsigned char bytes[96]; /* of a kind */
    ls_readers_name readers;
} ls_device_handle;

/* A device's memory, in bytes; 0: not known. */
typedef struct ls_device_room {
    size_t all, free; /* that it has; that nobody has taken */
    size_t most;      /* that one allocation may have */
} ls_device_room;

/* What a kind of device does. Streams, events and sizes are right; no member is NULL but those for
 * shared memory, of a kind that does not share. */
typedef struct ls_device_ops {
    const char *kind; /* "c", "opencl", "cuda" */
    bool shares;      /* devices of different processes read each other's memory */
    /* At most `room` of them. Errors: the driver can't be used. */
    ls_status (*list)(ls_device_seen *list, int room, int *n_p, ls_error *);
    /* index: which of this kind. Errors: those of ls_device_open(). */
    /* bare: without kernels. */
    ls_status (*open)(int index, bool bare, ls_device **d_p, ls_error *);
    void (*room)(ls_device *, ls_device_room *);
    ls_status (*alloc)(ls_device *, size_t nbytes, const char *what, void **p_p, ls_error *);
    void (*free)(ls_device *, void *p);
    ls_status (*copy_to)(ls_device *, ls_device_stream, void *to, const void *from, size_t,
                         ls_error *);
    ls_status (*copy_from)(ls_device *, ls_device_stream, void *to, const void *from, size_t,
                           ls_error *);
    ls_status (*copy)(ls_device *, ls_device_stream, void *to, const void *from, size_t,
                      ls_error *);
    ls_status (*clear)(ls_device *, ls_device_stream, void *p, size_t nbytes, ls_error *);
    ls_status (*launch)(ls_device *, ls_device_stream, const ls_device_call *, ls_error *);
    ls_status (*record)(ls_device *, ls_device_stream, int event, ls_error *);
    ls_status (*wait)(ls_device *, ls_device_stream, int event, ls_error *);
    ls_status (*await)(ls_device *, int event, ls_error *);
    ls_status (*finish)(ls_device *, ls_device_stream, ls_error *);
    /* Pin and unpin the host's memory; a kind that need not do so does nothing. */
    ls_status (*pin)(ls_device *, void *p, size_t nbytes, ls_error *);
    void (*unpin)(ls_device *, void *p);
    ls_status (*share)(ls_device *, const void *p, ls_device_handle *h_p, ls_error *);
    ls_status (*open_shared)(ls_device *, const ls_device_handle *, void **p_p, ls_error *);
    void (*close_shared)(ls_device *, void *p);
    void (*close)(ls_device *); /* after all streams are finished, or failed */
} ls_device_ops;

/* A kind's own struct begins with this. */
struct ls_device {
    const ls_device_ops *ops;
    char name[96];        /* for people: "NVIDIA H100 80GB HBM3" */
    size_t memory_nbytes; /* that it has; 0: not known */
    ls_status status;     /* } of the first work that could not be queued */
    ls_error error;       /* } */
    ls_readers *readers;  /* of its memory that is shared, and of that which it has opened */
    int64_t patience_ns;  /* how long memory that is freed waits until others have closed it */
    ls_device *next_left;
};

/* The devices [n] of which a process may choose one if it is given this name: for "cuda" all of its
 * kind, but if some of them are not the host's cores, these alone; for "cuda:1" the one, or none.
 * LS_EINVAL: there is no such kind, or it can't be used here. */
enum { LS_DEVICE_LIST = 64 };
ls_status ls_device_list(const char *name, ls_device_seen list[LS_DEVICE_LIST], int *n_p,
                         ls_error *);
/* Has the name a number, as cuda:1 has? */
bool ls_device_is_numbered(const char *name);
/* Is it a device of that kind, as cuda and cuda:1 are of "cuda"? */
bool ls_device_is_kind(const char *name, const char *kind);

/* Opens "c", "cuda:1", "opencl" ...; without a number, the first of the list. LS_EINVAL: there is
 * no such kind or number, or it can't be used here; LS_EIO: it fails. One line says why, and what
 * to do. */
ls_status ls_device_open(const char *name, ls_device **d_p, ls_error *);
/* The same without kernels, which may take long to compile: for memory and copies. */
ls_status ls_device_open_bare(const char *name, ls_device **d_p, ls_error *);
/* Waits for queued work, and for those that have opened its memory, as ls_device_free(). NULL is
 * fine. */
void ls_device_close(ls_device *);
void ls_device_room_of(ls_device *, ls_device_room *);

/* Memory for nbytes > 0, of undefined contents, at a multiple of 256 bytes. LS_ENOMEM, with what it
 * is for. */
ls_status ls_device_alloc(ls_device *, size_t nbytes, const char *what, void **p_p, ls_error *);
/* Waits for queued work. Memory that is shared waits, too, until all that have opened it have
 * closed it, or died; after patience_ns, 10 s, it is left to the end of the process, and a line
 * says so. NULL is fine. */
void ls_device_free(ls_device *, void *p);

/* Pins memory of the host, whole pages: copies of it then run beside kernels, at the bus's speed.
 * If it fails, copies are slower, and right. Unpin it before it is freed. */
ls_status ls_device_pin(ls_device *, void *p, size_t nbytes, ls_error *);
void ls_device_unpin(ls_device *, void *p);

/* Queue work. */
void ls_device_copy_to(ls_device *, ls_device_stream, void *to, const void *from, size_t nbytes);
void ls_device_copy_from(ls_device *, ls_device_stream, void *to, const void *from, size_t nbytes);
/* Between two places of the device, or of one and another whose memory is shared. */
void ls_device_copy(ls_device *, ls_device_stream, void *to, const void *from, size_t nbytes);
void ls_device_clear(ls_device *, ls_device_stream, void *p, size_t nbytes); /* to bytes of 0 */
void ls_device_launch(ls_device *, ls_device_stream, const ls_device_call *);

/* Event number `event`: it happens when all that the stream has queued so far is done; and work
 * that the stream queues from now on waits until it has happened, as it was recorded last. */
void ls_device_record(ls_device *, ls_device_stream, int event);
void ls_device_wait(ls_device *, ls_device_stream, int event);

/* Waits until an event that was recorded has happened. Reports the first error. */
ls_status ls_device_await(ls_device *, int event, ls_error *);
/* Waits until the stream has done all that it has queued. Reports the first error. */
ls_status ls_device_finish(ls_device *, ls_device_stream, ls_error *);

/* Memory of several devices of a host. A kind, or a device of it ("cuda:1"), shares if its memory
 * can be opened by devices of its kind in other processes. */
bool ls_device_shares(const char *name);
/* p: what ls_device_alloc() gave. */
ls_status ls_device_share(ls_device *, const void *p, ls_device_handle *h_p, ls_error *);
/* LS_EINVAL: the device can't read that memory; LS_EIO: it is gone. *p_p: its address on this
 * device. */
ls_status ls_device_open_shared(ls_device *, const ls_device_handle *, void **p_p, ls_error *);
void ls_device_close_shared(ls_device *, void *p); /* NULL is fine */

#endif
