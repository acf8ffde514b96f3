/* oracle_state.h - what the oracle remembers of a plan as it runs it.
 *
 * Atoms: the flat buffer is cut where a parameter begins or ends, and at each block, so that all
 * elements of an atom are treated the same. Padding has no atoms.
 */
#ifndef LS_TEST_ORACLE_STATE_H
#define LS_TEST_ORACLE_STATE_H

#include "plan/oracle.h"
#include "plan/rules.h"
#include "plan/terms.h"

enum { GONE = -1 }; /* a parameter's version: not in memory; else its updates in this step */

typedef struct atom {
    size_t first, end;
    int param, bucket;
} atom;

/* A transient buffer and its contents: one micro-batch of a virtual worker; where a layer takes all
 * of them at once, the first `micro`. */
typedef struct cell {
    bool used;
    int vw, micro;
    int touched; /* the latest action that used it */
    int parts;   /* of a gradient: what readers of the value have given */
} cell;

typedef struct worker {
    bool loaded, normed, knows; /* knows: norm and loss of all workers */
    cell *act, *saved, *dact;   /* [nlayers] */
    cell *gathered;             /* [nbuckets] the parameters of all shards */
    cell *grads;                /* [nbuckets][nslots] */
    int *grad;                  /* [nslots][natoms] terms */
    int *sum;                   /* [nsums][natoms] over workers, where rounds are reduced */
    int *got;                   /* [nbuckets] the codes of all virtual workers; of factors, sums */
    bool *decoded;              /* [nbuckets] the codes' sum */
    bool *summed;               /* [natoms] a sum over workers is made of these gradients */
    int *version, *moment;      /* [natoms] */
    int *updated;               /* [nbuckets] times */
    int *calls, ncalls, done;   /* [ncalls] actions that compute, and how many are over */
} worker;

typedef struct oracle {
    rules u;
    bool in_order; /* of the plan */
    bool warm;     /* a step of the warm-up, in which nothing is encoded */
    int at;        /* action */
    terms terms;
    atom *atoms; /* [natoms] */
    int natoms;
    worker *workers;               /* [n] */
    int *forwards, *again, *backs; /* [V][M][nlayers] times */
    int *seen;                     /* the same, of a sum's links */
    int *rounds;                   /* [buckets][2] sums over workers, then over groups */
    int *squared, *losses;         /* [blocks], [V][M] times */
    int *measured;                 /* [V][nbuckets] times */
    int *codes;                    /* [V][natoms] terms, where codes are sent */
    bool *seconds;                 /* [V][nbuckets] the second factor is there */
    int *expected;                 /* [nparams] terms: the whole sum in the tree's order */
    int64_t read;                  /* bytes that workers read from others in this action */
    oracle_result *r;
} oracle;

/* Allocates the memory for the plan of o->u, and cuts the atoms. oracle_close() frees it. */
void oracle_open(oracle *);
void oracle_close(oracle *);

/* Records the first fault. */
__attribute__((format(printf, 2, 3))) void oracle_wrong(oracle *, const char *format, ...);

/* This action uses the buffer. */
void oracle_touch(oracle *, cell *);

bool oracle_inside(const atom *, ls_range range);
/* Is the atom in worker w's shard of its bucket? */
bool oracle_in_shard(const oracle *, int w, const atom *);

#endif
