/* data.h - samples of a program's own data.
 *
 *     static ls_status read(void *own, uint64_t i, ls_sample *s, ls_error *e) {
 *         const table *t = own;
 *         float *features = ls_sample_field(s, "features");
 *         ...
 *         return LS_OK;
 *     }
 *     static const ls_own_source mine = {.count = 1000, .read = read, .own = &table, .hash = 17};
 *     ... (ls_program){.name = "mine", .build = build, .source = &mine} ...
 *
 * Which samples a step takes, their order, and which are held out for validation
 * (data.val_fraction, data.folds) are decided by the library, from the count alone.
 */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include "lockstep/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One sample: the fields that the model reads, as its calls of ls_input() describe them. */
typedef struct ls_sample ls_sample;

/* Where to write a field's numbers, of its type and dimensions. All bytes are 0 before. NULL: the
 * model has no field of this name. */
void *ls_sample_field(ls_sample *, const char *name);

typedef struct ls_own_source {
    uint64_t count LS_UNSET; /* samples, below 2^62 */
    /* Writes the fields of sample i < count, always with the same values. Called from several
     * threads at the same time, for any samples in any order. On failure returns LS_EINVAL or
     * LS_EIO, and writes into e->msg what is wrong with which record; the run ends with this
     * message. */
    ls_status (*read)(void *own, uint64_t i, ls_sample *, ls_error *e) LS_UNSET;
    void *own LS_UNSET;
    /* A number that differs if the samples do: a run that began with other data is not
     * continued. */
    uint64_t hash LS_UNSET;
} ls_own_source;

#ifdef __cplusplus
}
#endif
#endif
