/* machine.h - what a machine can do, in numbers: measured (`lockstep bench machine`), or from a
 * data sheet.
 *
 * The file is YAML; docs/simulator.md has an example. For each kind of work (model/work.h) a table
 * of speeds over sizes, and at each point two speeds of one core: alone, and when all cores do the
 * same. In between, speeds are interpolated in the logarithms of the sizes; beyond the table, its
 * edge holds. The points of a product must be a grid.
 */
#ifndef LS_PERF_MACHINE_H
#define LS_PERF_MACHINE_H

#include "coll/link.h"
#include "model/work.h"

enum { LS_MACHINE_VERSION = 1, LS_MACHINE_MAX_POINTS = 512, LS_MACHINE_AXIS = 12 };

typedef struct ls_speed {
    double alone, busy; /* floating-point operations, or elements, a second, of one core */
} ls_speed;

typedef struct ls_speeds {
    int naxes; /* 3 of a product (M, N, K), 1 of a pass over memory (elements) */
    int n[3];
    double axis[3][LS_MACHINE_AXIS]; /* rising */
    ls_speed *points;                /* [n[0]][n[1]][n[2]], rows of the last axis together */
} ls_speeds;

typedef struct ls_machine {
    char name[128];
    int cores;
    double action_s; /* of each action, and ... */
    double call_s;   /* ... of each call of a kernel in it */
    /* Collectives through shared memory, when all workers are in one. */
    double shared_start_s;     /* of a call of n workers: times log2(n) */
    double shared_sum_byte_s;  /* a byte that is read to be added */
    double shared_copy_byte_s; /* a byte that is copied */
    ls_link link;              /* between two processes of the machine, over TCP */
    ls_speeds speeds[LS_NWORK_KINDS];
} ls_machine;

/* LS_EINVAL: a key is unknown, missing, twice there, or out of range; the message names file, line
 * and key. *m_p is the caller's, to free. */
ls_status ls_machine_read(const char *path, ls_machine *m_p, ls_error *);
/* Replaces the file; `of` says in a comment what was measured. */
ls_status ls_machine_write(const char *path, const ls_machine *, const char *of, ls_error *);
void ls_machine_free(ls_machine *);

/* "product", "norm", ...: the key in the file. */
const char *ls_work_name(ls_work_kind);
/* Sets up a table with these axes, all speeds 0. */
void ls_speeds_make(ls_speeds *, int naxes, const int n[3], const double *const axis[3]);

/* Seconds of one core for a product, or for a pass over so many elements, while `busy` cores of
 * the machine are at work; without the call's overhead. Where more are busy than there are, each
 * gets its part. */
double ls_machine_product_s(const ls_machine *, ls_work_kind, double M, double N, double K,
                            int busy);
double ls_machine_pass_s(const ls_machine *, ls_work_kind, double elements, int busy);

#endif
