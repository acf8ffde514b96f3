/* store_inside.h - the internals of the store, for store.c and the other store_*.c. */
#ifndef LS_STATE_STORE_INSIDE_H
#define LS_STATE_STORE_INSIDE_H

#include "state/store.h"

/* A worker's record. Its notes take turns, so the latest one is never being overwritten: a change
 * of the state adds 1, 2 or 3 to the steps (train/replica_sync.h). */
enum { LS_STORE_NOTES = 4 };
typedef struct ls_store_record {
    _Alignas(128) atomic_llong steps;     /* steps done, by the latest note */
    ls_store_note notes[LS_STORE_NOTES];  /* [steps % LS_STORE_NOTES] */
    atomic_llong apart;                   /* } the same of the latest change apart */
    ls_store_note aparts[LS_STORE_NOTES]; /* } */
    /* Changes of the state with the round for which it is ready; 0: there is none. */
    atomic_llong ready;
    ls_store_note round;
    uint64_t islands; /* that decide it together: bit i - 1 is island i */
    atomic_int area, is_distrusted;
    atomic_llong computed; /* 1 + the step for which all its gradients are complete */
    atomic_llong given_up; /* 1 + the step that must be repeated */
} ls_store_record;

/* The backup of a virtual worker's gradient in a step. mark: 2 step + 1 while another worker
 * computes it, 2 step + 2 when it is complete. */
typedef struct ls_store_claim {
    atomic_llong mark;
    atomic_int place;
} ls_store_claim;

typedef struct ls_store_head {
    atomic_llong steps; /* that all areas have had, between steps; -1: no state yet */
    ls_scaler scaler;
    atomic_int finding;   /* ls_store_finding */
    atomic_llong nbacked; /* gradients that a second worker completed before the first */
    atomic_llong places;  /* step * PLACES + the number of places taken in it */
} ls_store_head;

struct ls_store {
    int most, threads, V, nbuckets;
    int per_step; /* changes of the state in a step */
    size_t nblocks, backup_nbytes;
    bool has_masters;
    int nstates; /* states of the optimizer */
    size_t nfloats, steps_nbytes, params_nbytes, area_nbytes, grads_nbytes, sums_nbytes,
        room_nbytes;
    unsigned char *memory;
    size_t nbytes;
    ls_store_head *head;
    ls_store_record *workers; /* [most] */
    ls_journal_saved *saved;  /* [most][threads] */
    unsigned char *carried, *areas, *grads, *sums, *rooms, *backups, *errors, *frozen;
    size_t errors_nbytes;     /* 0: there are none */
    atomic_uint *error_marks; /* [2][V] */
    ls_store_claim *claims;   /* [V] */
    /* [most][nbuckets][2] for each sum of a bucket: 2 (step + 1) while it is made, 2 (step + 1) + 1
     * when it is complete */
    atomic_uint *made;
    _Atomic double *apart_rows;
    atomic_llong *apart_marks;
    /* of this process, whose workers may be threads */
    atomic_size_t island_blocks; /* of a segment; 0: no island is ahead */
    atomic_llong ahead[LS_PLAN_MAX_ISLANDS];
};

/* An area; the steps of each of its blocks; its flat buffers. */
unsigned char *ls_store_area_at(const ls_store *, int area);
atomic_uint *ls_store_block_steps(const ls_store *, int area);
ls_flat ls_store_flat_of(ls_store *, int area);
/* Sets the journal's mark of all blocks that the worker owns. */
void ls_store_mark_owned(ls_store *, const ls_share *, int worker, uint32_t mark);
/* The mark of a block after all changes that its island has had. */
uint32_t ls_store_mark_of(const ls_store *, size_t block);
/* NULL: there is none. */
const ls_store_note *ls_store_newest_note(const ls_store *);

#endif
