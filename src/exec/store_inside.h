/* store_inside.h - the store from inside, for the files that it is made of: store.c, store_backup.c,
 * store_step.c, store_repair.c, store_blocks.c. */
#ifndef LS_EXEC_STORE_INSIDE_H
#define LS_EXEC_STORE_INSIDE_H

#include "exec/store.h"

/* Notes take turns: the one that counts is never being written. */
typedef struct ls_store_record {
    _Alignas(128) atomic_llong steps; /* of the latest note */
    ls_store_note notes[2];           /* [steps % 2] */
    atomic_int area, is_distrusted;
    atomic_llong computed; /* 1 + the step of which all its gradients are there */
    atomic_llong given_up; /* 1 + the step that is to be done again */
} ls_store_record;

/* Of a virtual worker, in a step: 2 step + 1 where a second one computes its gradient, + 2 where it
 * is there. */
typedef struct ls_store_claim {
    atomic_llong mark;
    atomic_int place;
} ls_store_claim;

typedef struct ls_store_head {
    atomic_llong steps; /* of all areas, in rest; -1: no state yet */
    ls_scaler scaler;
    atomic_int finding;   /* ls_store_finding */
    atomic_llong nbacked; /* gradients that a second worker had before the first */
    atomic_llong places;  /* step * PLACES + how many are taken in it */
} ls_store_head;

struct ls_store {
    int most, threads, V, nbuckets;
    size_t nblocks, backup_nbytes;
    bool has_masters;
    size_t nfloats, steps_nbytes, params_nbytes, area_nbytes, grads_nbytes, sums_nbytes;
    unsigned char *memory;
    size_t nbytes;
    ls_store_head *head;
    ls_store_record *workers; /* [most] */
    ls_journal_kept *kept;    /* [most][threads] */
    unsigned char *carried, *areas, *grads, *sums, *backups;
    ls_store_claim *claims; /* [V] */
    atomic_uint *made; /* [most][nbuckets][2] of buckets' sums: 2 (step + 1) while one is made, + 1
                          when it is there */
};

/* An area, and in it the steps of each block, and the flat buffers. */
unsigned char *ls_store_area_at(const ls_store *, int area);
atomic_uint *ls_store_block_steps(const ls_store *, int area);
ls_journal_state ls_store_flat_of(ls_store *, int area);
/* The journal's mark of all blocks that the worker owns. */
void ls_store_mark_owned(ls_store *, const ls_plan *, int worker, uint32_t mark);
/* NULL: there is none. */
const ls_store_note *ls_store_newest_note(const ls_store *);

#endif
