/* machine.h - the speeds of a machine: measured (`lockstep bench machine`), or from a data sheet.
 *
 * The file is YAML; docs/design/simulator.md has an example. Each kind of work (model/work.h) has a
 * table of speeds over sizes. A point has two speeds of one core: alone, and while all cores do the
 * same. Between points, speeds are interpolated over the logarithms of the sizes; beyond the table
 * the nearest point is used. The points of a product must form a grid.
 */
#ifndef LS_PERF_MACHINE_H
#define LS_PERF_MACHINE_H

#include "coll/link.h"
#include "model/work.h"

enum { LS_MACHINE_VERSION = 1, LS_MACHINE_AXIS = 12 };

typedef struct ls_speed {
    double alone, busy; /* floating-point operations or elements per second of one core */
} ls_speed;

typedef struct ls_speeds {
    int naxes; /* 3 for a product (M, N, K), 1 for a pass over memory (elements) */
    int n[3];
    double axis[3][LS_MACHINE_AXIS]; /* ascending */
    ls_speed *points;                /* [n[0]][n[1]][n[2]], the last axis contiguous; NULL: the file
                                      * has none (ls_machine_has()) */
} ls_speeds;

/* What a worker costs; 0: not known. */
typedef struct ls_machine_prices {
    double worker_hour; /* of a worker for an hour */
    double watts;       /* of a worker */
    char currency[16];  /* of worker_hour; "": not known */
} ls_machine_prices;

/* A device, as `lockstep bench machine --device` measures it; product 0: not known. */
typedef struct ls_machine_device {
    char name[96];
    double memory_nbytes; /* 0: not known */
    double product;       /* FLOP/s of large products in f32 */
    double product_bf16;  /* in bf16; 0: not known, as in older files */
    double memory;        /* bytes a second that it reads and writes */
    double to, from;      /* bytes a second, from and to pinned memory of the host */
    double launch_s;      /* of a kernel that does next to nothing */
} ls_machine_device;

typedef struct ls_machine {
    char name[128];
    int cores;
    int threads;     /* of a worker, at most, with parallel.threads auto: a GPU has one; 0: any */
    double action_s; /* overhead of each action */
    double call_s;   /* overhead of each call of a kernel in it */
    /* Collectives through shared memory, with all workers in one. */
    double shared_start_s;     /* per call, times log2(number of workers) */
    double shared_sum_byte_s;  /* per byte that is read and added */
    double shared_copy_byte_s; /* per byte that is copied */
    ls_link link;              /* between two processes of the machine, over TCP */
    ls_machine_prices prices;  /* from the file alone: they are not measured */
    ls_machine_device device;  /* of each worker */
    ls_speeds speeds[LS_NWORK_KINDS];
} ls_machine;

/* LS_EINVAL: a key is unknown, missing, duplicate or out of range; the message names file, line and
 * key. The caller frees *m_p with ls_machine_free(). */
ls_status ls_machine_read(const char *path, ls_machine *m_p, ls_error *);
/* Replaces the file; `title`, its first comment, says what was measured. */
ls_status ls_machine_write(const char *path, const ls_machine *, const char *title, ls_error *);
void ls_machine_free(ls_machine *);

/* LS_EINVAL: there are no speeds of this kind, which is of 16 bits: all others are in every
 * file. */
ls_status ls_machine_has(const ls_machine *, ls_work_kind, ls_error *);
/* LS_EINVAL: the machine has a device, and not its speed of products in bf16. */
ls_status ls_machine_device_has_bf16(const ls_machine *, ls_error *);
/* "product", "norm", ...: the key in the file. */
const char *ls_work_name(ls_work_kind);
bool ls_work_is_softmax(ls_work_kind);
/* Creates a table with these axes, all speeds 0. */
void ls_speeds_make(ls_speeds *, int naxes, const int n[3], const double *const axis[3]);

/* Seconds that one core needs for a product, or for a pass over `elements` elements, while `busy`
 * threads of the machine compute; without the call's overhead. Threads beyond the number of cores
 * share them. */
double ls_machine_product_s(const ls_machine *, ls_work_kind, double M, double N, double K,
                            int busy);
double ls_machine_pass_s(const ls_machine *, ls_work_kind, double elements, int busy);

#endif
