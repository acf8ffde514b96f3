/* store.c - see store.h.
 *
 *     head
 *     carried bytes
 *     records of workers      [most]
 *     blocks being updated    [most][threads], as they were before
 *     areas                   [most]: steps, params, state
 *     gradients               [most]
 *     parts and sums          [most]
 *     rooms of whole updates  [most]
 *     claims                  [V]
 *     backups                 [V]: gradients that are computed twice, and parts
 *     marks of sums           [most][buckets][2]
 *     errors                  [2][V]: what encoding has lost (errors.h), and their marks
 *     notes of steps apart    (apart.h), and their marks
 *     frozen parameters
 *
 * Each of them begins a page. There is room for any number of workers up to `most`; what no worker
 * touches takes no memory.
 */
#include "state/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/plural.h"
#include "base/round_up.h"
#include "state/apart.h"
#include "state/store_inside.h"

static size_t pages(size_t nbytes) { return ls_round_up(nbytes, 4096); }

/* Gradient sums that a worker needs at most, whatever its range of virtual workers: those of a
 * cover, and the current one. Unused ones take no memory. */
static size_t most_sums(const ls_share *sh) {
    size_t log2 = 0;
    while ((1 << log2) < sh->V) log2++;
    return (2 * log2 + 2) * (size_t)sh->nchunks;
}

ls_status ls_store_make(const ls_share *sh, const ls_store_config *c, ls_store **s_p, ls_error *e) {
    ls_store *s = LS_NEW(ls_store);
    size_t n = (size_t)c->most, threads = (size_t)c->threads;
    s->most = c->most;
    s->threads = c->threads;
    s->nfloats = sh->floats;
    s->per_step = sh->changes;
    s->nblocks = s->nfloats / LS_BLOCK;
    s->has_masters = sh->has_masters;
    s->nstates = ls_optim_nstates(&sh->optim);
    s->steps_nbytes = pages(s->nblocks * sizeof(atomic_uint));
    s->params_nbytes = pages(sh->nbytes.params);
    s->area_nbytes = s->steps_nbytes + s->params_nbytes + pages(sh->nbytes.state);
    /* 17 pages more, as between the arenas of the commons: workers' gradients are read in step. */
    size_t parts = (size_t)(sh->V * sh->nchunks); /* in the inbox, at most */
    size_t inbox = c->pipes ? parts : (size_t)sh->ninbox;
    s->grads_nbytes = pages((most_sums(sh) + inbox) * sh->nbytes.slot) + 17 * 4096;
    s->sums_nbytes = pages(2 * sh->nbytes.scalars);
    size_t workers_at = pages(sizeof(ls_store_head)) + pages(c->carried_nbytes),
           saved_at = workers_at + pages(n * sizeof(ls_store_record));
    size_t areas_at = saved_at + pages(n * threads * sizeof(ls_journal_saved));
    size_t grads_at = areas_at + n * s->area_nbytes, sums_at = grads_at + n * s->grads_nbytes;
    s->room_nbytes = pages(sh->nbytes.room);
    size_t rooms_at = sums_at + n * s->sums_nbytes, claims_at = rooms_at + n * s->room_nbytes;
    size_t backups_at = claims_at + pages((size_t)sh->V * sizeof(ls_store_claim));
    s->V = sh->V;
    s->backup_nbytes = pages(sh->nbytes.slot) + s->sums_nbytes;
    size_t made_at = backups_at + (size_t)sh->V * s->backup_nbytes;
    s->nbuckets = sh->nbuckets;
    size_t errors_at = made_at + pages(n * (size_t)sh->nbuckets * 2 * sizeof(atomic_uint));
    s->errors_nbytes = sh->nbytes.errors;
    size_t error_marks_at = errors_at + pages(s->errors_nbytes);
    size_t apart_at = error_marks_at + pages(2 * (size_t)sh->V * sizeof(atomic_uint));
    size_t apart_marks_at = apart_at + pages(ls_apart_rows_nbytes(sh));
    size_t frozen_at = apart_marks_at + pages(ls_apart_marks_nbytes(sh));
    s->nbytes = frozen_at + pages(sh->nbytes.frozen);
    s->memory = mmap(NULL, s->nbytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->memory == MAP_FAILED) {
        ls_fail(e, LS_ENOMEM, "no memory for the state of %d worker%s, %.1f MB: %s", c->most,
                ls_plural(c->most), (double)s->nbytes / 1e6, strerror(errno));
        free(s);
        return LS_ENOMEM;
    }
    s->head = (ls_store_head *)(void *)s->memory;
    s->carried = s->memory + pages(sizeof(ls_store_head));
    s->workers = (ls_store_record *)(void *)(s->memory + workers_at);
    s->saved = (ls_journal_saved *)(void *)(s->memory + saved_at);
    s->areas = s->memory + areas_at;
    s->grads = s->memory + grads_at;
    s->sums = s->memory + sums_at;
    s->rooms = s->memory + rooms_at;
    s->claims = (ls_store_claim *)(void *)(s->memory + claims_at);
    s->backups = s->memory + backups_at;
    s->made = (atomic_uint *)(void *)(s->memory + made_at);
    s->errors = s->memory + errors_at;
    s->error_marks = (atomic_uint *)(void *)(s->memory + error_marks_at);
    s->apart_rows = (_Atomic double *)(void *)(s->memory + apart_at);
    s->apart_marks = (atomic_llong *)(void *)(s->memory + apart_marks_at);
    s->frozen = s->memory + frozen_at;
    atomic_store(&s->head->steps, -1);
    *s_p = s;
    return LS_OK;
}

void ls_store_free(ls_store *s) {
    if (!s) return;
    munmap(s->memory, s->nbytes);
    free(s);
}

void *ls_store_memory(ls_store *s, size_t *nbytes_p) {
    *nbytes_p = s->nbytes;
    return s->memory;
}

void *ls_store_carried(const ls_store *s) { return s->carried; }

/* ---- addresses ---- */

unsigned char *ls_store_area_at(const ls_store *s, int area) {
    return s->areas + (size_t)area * s->area_nbytes;
}

atomic_uint *ls_store_block_steps(const ls_store *s, int area) {
    return (atomic_uint *)(void *)ls_store_area_at(s, area);
}

void *ls_store_params(ls_store *s, int area) { return ls_store_area_at(s, area) + s->steps_nbytes; }

float *ls_store_state(ls_store *s, int area) {
    return (float *)(void *)(ls_store_area_at(s, area) + s->steps_nbytes + s->params_nbytes);
}

ls_flat ls_store_flat_of(ls_store *s, int area) {
    return ls_flat_of_state(ls_store_state(s, area),
                            s->has_masters ? NULL : ls_store_params(s, area), s->nstates,
                            s->nfloats);
}

void *ls_store_grads(ls_store *s, int worker) {
    return s->grads + (size_t)worker * s->grads_nbytes;
}

void *ls_store_room(ls_store *s, int worker) {
    return s->room_nbytes ? s->rooms + (size_t)worker * s->room_nbytes : NULL;
}

double *ls_store_sums(ls_store *s, int worker) {
    return (double *)(void *)(s->sums + (size_t)worker * s->sums_nbytes);
}

float *ls_store_errors(ls_store *s) { return (float *)(void *)s->errors; }

atomic_uint *ls_store_error_marks(ls_store *s) { return s->error_marks; }

_Atomic double *ls_store_apart_rows(ls_store *s) { return s->apart_rows; }

atomic_llong *ls_store_apart_marks(ls_store *s) { return s->apart_marks; }

void *ls_store_frozen(ls_store *s) { return s->frozen; }

void ls_store_place(ls_store *s, int worker, int area) {
    atomic_store(&s->workers[worker].area, area);
}

ls_journal ls_store_journal(ls_store *s, int worker) {
    int area = atomic_load(&s->workers[worker].area);
    return (ls_journal){.steps = ls_store_block_steps(s, area),
                        .saved = s->saved + (size_t)worker * (size_t)s->threads,
                        .nthreads = s->threads};
}

/* ---- steps ---- */

void ls_store_mark_owned(ls_store *s, const ls_share *sh, int w, uint32_t mark) {
    ls_journal j = ls_store_journal(s, w);
    for (int k = 0; k < sh->nbuckets; k++) {
        ls_range b = ls_share_owned(sh, k, w);
        ls_journal_set(&j, b.first, b.end, mark);
    }
}

void ls_store_mark_filled(ls_store *s, const ls_share *sh, int w, int64_t steps) {
    ls_store_mark_owned(s, sh, w, ls_store_mark(steps * s->per_step));
}

void ls_store_distrust(ls_store *s, int w) { atomic_store(&s->workers[w].is_distrusted, 1); }

void ls_store_begin(ls_store *s, int64_t steps, const ls_scaler *scaler) {
    s->head->scaler = *scaler;
    atomic_store(&s->head->steps, steps * s->per_step);
}

void ls_store_decide(ls_store *s, int worker, const ls_store_note *note) {
    ls_store_record *w = &s->workers[worker];
    if (note->apart) {
        w->aparts[note->steps % LS_STORE_NOTES] = *note;
        atomic_store(&w->apart, note->steps);
        return;
    }
    w->notes[note->steps % LS_STORE_NOTES] = *note;
    atomic_store(&w->steps, note->steps);
}

void ls_store_set_ready(ls_store *s, int worker, const ls_store_note *note, uint64_t islands) {
    ls_store_record *w = &s->workers[worker];
    atomic_store(&w->ready, 0);
    if (!note) return;
    w->round = *note;
    w->islands = islands;
    atomic_store(&w->ready, note->steps);
}

void ls_store_set_ahead(ls_store *s, const ls_share *sh, const int64_t *changes) {
    for (int i = 0; changes && i < sh->islands; i++) atomic_store(&s->ahead[i], changes[i]);
    atomic_store(&s->island_blocks, changes ? sh->segment_floats / LS_BLOCK : 0);
}

uint32_t ls_store_mark_of(const ls_store *s, size_t block) {
    size_t blocks = atomic_load(&s->island_blocks), segment = blocks ? block / blocks : 0;
    return ls_store_mark(segment ? atomic_load(&s->ahead[segment - 1]) : ls_store_steps(s));
}

int64_t ls_store_steps(const ls_store *s) { return atomic_load(&s->head->steps); }

int64_t ls_store_trained(const ls_store *s) {
    int64_t changes = ls_store_steps(s);
    return changes < 0 ? -1 : changes / s->per_step;
}

ls_scaler ls_store_scaler(const ls_store *s) { return s->head->scaler; }

const ls_store_note *ls_store_newest_note(const ls_store *s) {
    const ls_store_note *best = NULL;
    for (int i = 0; i < s->most; i++) {
        int64_t steps = atomic_load(&s->workers[i].steps);
        if (steps > 0 && (!best || steps > best->steps))
            best = &s->workers[i].notes[steps % LS_STORE_NOTES];
    }
    return best;
}

bool ls_store_unfinished_note(const ls_store *s, ls_store_note *note_p) {
    const ls_store_note *n = ls_store_newest_note(s);
    if (!n || n->steps <= ls_store_steps(s)) return false;
    *note_p = *n;
    return true;
}

bool ls_store_last_note(const ls_store *s, ls_store_note *note_p) {
    const ls_store_note *n = ls_store_newest_note(s);
    if (!n || n->steps != ls_store_steps(s)) return false;
    *note_p = *n;
    return true;
}

void ls_store_set_finding(ls_store *s, ls_store_finding f) {
    atomic_store(&s->head->finding, (int)f);
}

ls_store_finding ls_store_get_finding(const ls_store *s) {
    return (ls_store_finding)atomic_load(&s->head->finding);
}
