/* workout.h - steps on a table whose ids and gradients follow from step, virtual worker and
 * rows. */
#ifndef LS_TEST_TABLE_WORKOUT_H
#define LS_TEST_TABLE_WORKOUT_H

#include "lockstep/table.h"
#include "table/id_map.h"
#include "test.h"

typedef struct workout {
    const ls_table_config *c;
    int first, steps;        /* steps [first, first + steps) */
    const char *load, *save; /* before and after them; NULL: not */
    char *hash;              /* [33] in the end */
    const char *refused;     /* loading fails with this message; NULL: it must succeed */
    ls_status why;
} workout;

enum { WORKOUT_IDS = 9 };

static inline void workout_step(ls_table *t, const ls_table_config *c, int step, ls_error *e) {
    int first = 0, end = 0;
    ls_table_virtual_workers(t, &first, &end);
    size_t width = (size_t)c->width, n = (size_t)(end - first) * WORKOUT_IDS;
    float *rows = calloc(n * width, sizeof *rows);
    int64_t *ids = calloc(n, sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        uint64_t drawn = ls_id_mix((uint64_t)step * 1000 + (uint64_t)first * WORKOUT_IDS + i);
        ids[i] = (int64_t)(drawn % (drawn % 2 ? 100 : 13)); /* some ids are frequent */
    }
    assert_ls_ok(ls_table_read(t, ids, n, rows, e), *e);
    for (size_t i = 0; i < n * width; i++)
        rows[i] = 0.3f * rows[i] + 0.1f / (float)(ids[i / width] + (int64_t)(i % width) + 1);
    for (int v = first; v < end; v++) {
        size_t at = (size_t)(v - first) * WORKOUT_IDS;
        assert_ls_ok(ls_table_add(t, v, ids + at, WORKOUT_IDS, rows + at * width, e), *e);
    }
    assert_ls_ok(ls_table_update(t, 0.1, e), *e);
    free(rows);
    free(ids);
}

static inline ls_status workout_run(ls_group *g, void *arg, ls_error *e) {
    const workout *w = arg;
    char hash[33];
    ls_table *t = NULL;
    assert_ls_ok(ls_table_open(g, w->c, &t, e), *e);
    if (w->load && w->refused)
        assert_ls_fails(ls_table_load(t, w->load, e), w->why, w->refused, *e);
    else if (w->load)
        assert_ls_ok(ls_table_load(t, w->load, e), *e);
    for (int i = 0; i < w->steps; i++) workout_step(t, w->c, w->first + i, e);
    assert_ls_ok(ls_table_hash(t, hash, e), *e);
    if (w->hash && ls_group_rank(g) == 0) memcpy(w->hash, hash, sizeof hash);
    if (w->save) assert_ls_ok(ls_table_save(t, w->save, e), *e);
    ls_table_close(t);
    return LS_OK;
}

static inline void work_out(int nworkers, const workout *w) {
    ls_error e = {0};
    workout copy = *w;
    assert_ls_ok(ls_run_threads(nworkers, workout_run, &copy, &e), e);
}

#endif
