/* owned_rows.c - see owned_rows.h. */
#include "table/owned_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

void ls_rows_init(ls_rows *r, const ls_table_config *c, int worker, int nworkers) {
    *r = (ls_rows){.c = c, .worker = worker, .nworkers = nworkers};
    if (c->optimizer == LS_ROW_ADAGRAD) r->nstates = 1;
    if (c->optimizer == LS_ROW_ADAM) r->nstates = 2 * c->width;
}

/* Bytes of a segment's values, states, ages and ids. */
enum { VALUES, STATES, AGES, IDS, NPARTS };

static size_t part_nbytes(const ls_rows *r, int part) {
    size_t width = (size_t)r->c->width, n = LS_SEGMENT_ROWS;
    if (part == VALUES) return n * width * sizeof(float);
    if (part == STATES) return n * (size_t)r->nstates * sizeof(float);
    if (part == AGES) return n * sizeof(uint32_t);
    return r->c->rows ? 0 : n * sizeof(uint64_t);
}

static void free_segment(const ls_rows *r, ls_row_segment *c) {
    ls_unmap(c->values, part_nbytes(r, VALUES));
    ls_unmap(c->states, part_nbytes(r, STATES));
    ls_unmap(c->ages, part_nbytes(r, AGES));
    ls_unmap(c->ids, part_nbytes(r, IDS));
    *c = (ls_row_segment){0};
}

void ls_rows_free(ls_rows *r) {
    for (size_t i = 0; i < r->nsegments; i++) free_segment(r, &r->segments[i]);
    free(r->segments);
    free(r->free);
    ls_id_map_free(&r->map);
    *r = (ls_rows){0};
}

/* Limited ids are often ordered by how often they occur: neighbours go to different workers. */
int ls_rows_owner(const ls_rows *r, uint64_t id) {
    if (r->c->rows) return (int)(id % (uint64_t)r->nworkers);
    return (int)((ls_id_mix(id) >> 32) * (uint64_t)r->nworkers >> 32);
}

bool ls_rows_can_have(const ls_rows *r, uint64_t id) {
    return !r->c->rows || id < (uint64_t)r->c->rows;
}

/* ---- slots ---- */

static ls_row row_at(const ls_rows *r, size_t slot) {
    const ls_row_segment *c = &r->segments[slot / LS_SEGMENT_ROWS];
    size_t i = slot % LS_SEGMENT_ROWS;
    float *states = r->nstates ? c->states + i * (size_t)r->nstates : NULL;
    return (ls_row){c->values + i * (size_t)r->c->width, &c->ages[i], states};
}

/* SIZE_MAX: the id has no slot, or its slot no memory. */
static size_t slot_of(const ls_rows *r, uint64_t id) {
    if (!r->c->rows) {
        uint32_t slot = ls_id_map_get(&r->map, id);
        return slot == LS_ID_NONE ? SIZE_MAX : slot;
    }
    size_t slot = id / (uint64_t)r->nworkers, segment = slot / LS_SEGMENT_ROWS;
    return segment < r->nsegments && r->segments[segment].values ? slot : SIZE_MAX;
}

static bool is_there(const ls_rows *r, uint32_t age, int64_t clock) {
    return age > 0 && (r->c->keep == 0 || clock - (int64_t)age <= r->c->keep);
}

bool ls_rows_has(const ls_rows *r, uint64_t id, int64_t clock) {
    size_t slot = slot_of(r, id);
    return slot != SIZE_MAX && is_there(r, *row_at(r, slot).age, clock);
}

bool ls_rows_at(const ls_rows *r, size_t slot, int64_t clock, uint64_t *id_p, ls_row *row_p) {
    const ls_row_segment *c = &r->segments[slot / LS_SEGMENT_ROWS];
    if (!c->values) return false;
    *row_p = row_at(r, slot);
    *id_p = c->ids ? c->ids[slot % LS_SEGMENT_ROWS]
                   : slot * (uint64_t)r->nworkers + (uint64_t)r->worker;
    return is_there(r, *row_p->age, clock);
}

void ls_rows_prefetch_map(const ls_rows *r, uint64_t id) {
    if (!r->c->rows) ls_id_map_prefetch(&r->map, id);
}

void ls_rows_prefetch(const ls_rows *r, uint64_t id) {
    size_t slot = slot_of(r, id);
    if (slot == SIZE_MAX) return;
    ls_row row = row_at(r, slot);
    for (int i = 0; i < r->c->width && i < 64; i += 16) __builtin_prefetch(row.values + i);
    __builtin_prefetch(row.age);
    if (row.states) __builtin_prefetch(row.states);
}

/* ---- reading ---- */

static void draw(const ls_rows *r, uint64_t id, float *values) {
    ls_random_place place = {.seed = r->c->seed, .stream = LS_STREAM_ROWS, .substream = id};
    if (r->c->bound > 0)
        ls_random_uniform_f32(place, (size_t)r->c->width, (float)r->c->bound, values);
    else
        memset(values, 0, (size_t)r->c->width * sizeof *values);
}

enum { AHEAD = 8 }; /* rows whose memory is fetched while others are used */

void ls_rows_read(const ls_rows *r, const uint64_t *ids, size_t n, int64_t clock, float *out) {
    size_t width = (size_t)r->c->width;
    for (size_t i = 0; i < n; i++) {
        if (i + 2 * AHEAD < n) ls_rows_prefetch_map(r, ids[i + 2 * AHEAD]);
        if (i + AHEAD < n) ls_rows_prefetch(r, ids[i + AHEAD]);
        size_t slot = slot_of(r, ids[i]);
        if (slot != SIZE_MAX && is_there(r, *row_at(r, slot).age, clock))
            memcpy(out + i * width, row_at(r, slot).values, width * sizeof *out);
        else
            draw(r, ids[i], out + i * width);
    }
}

/* ---- new rows ---- */

static ls_status add_segment(ls_rows *r, size_t at, ls_error *e) {
    void *parts[NPARTS] = {NULL};
    ls_status s = LS_OK;
    if (at < r->nsegments && r->segments[at].values) return LS_OK;
    for (int i = 0; s == LS_OK && i < NPARTS; i++)
        if (part_nbytes(r, i) > 0) s = ls_map(part_nbytes(r, i), "rows of a table", &parts[i], e);
    ls_row_segment c = {parts[VALUES], parts[STATES], parts[AGES], parts[IDS]};
    if (s != LS_OK) {
        free_segment(r, &c);
        return s;
    }
    for (; r->nsegments <= at; r->nsegments++) {
        r->segments = ls_grow(r->segments, r->nsegments, sizeof *r->segments);
        r->segments[r->nsegments] = (ls_row_segment){0};
    }
    r->segments[at] = c;
    return LS_OK;
}

/* Slots of limited ids are where the ids are. */
static ls_status reserve_limited(ls_rows *r, const uint64_t *ids, size_t n, ls_error *e) {
    for (size_t i = 0; i < n; i++)
        LS_TRY(add_segment(r, ids[i] / (uint64_t)r->nworkers / LS_SEGMENT_ROWS, e));
    r->end = r->nsegments * LS_SEGMENT_ROWS;
    return LS_OK;
}

ls_status ls_rows_reserve(ls_rows *r, const uint64_t *ids, size_t n, ls_error *e) {
    size_t more = 0;
    if (r->c->rows) return reserve_limited(r, ids, n, e);
    for (size_t i = 0; i < n; i++) more += ls_id_map_get(&r->map, ids[i]) == LS_ID_NONE;
    size_t need = more > r->nfree ? more - r->nfree : 0;
    if (r->end + need >= LS_ID_NONE)
        return ls_fail(e, LS_ENOMEM, "a worker can have %u rows of a table; use more workers",
                       LS_ID_NONE);
    LS_TRY(ls_id_map_reserve(&r->map, more, e));
    for (size_t have = r->nsegments * LS_SEGMENT_ROWS; have < r->end + need;
         have += LS_SEGMENT_ROWS)
        LS_TRY(add_segment(r, r->nsegments, e));
    return LS_OK;
}

static size_t new_slot(ls_rows *r, uint64_t id) {
    bool new = false;
    uint32_t *slot = ls_id_map_put(&r->map, id, &new);
    if (new) {
        *slot = r->nfree ? r->free[--r->nfree] : (uint32_t)r->end++;
        r->segments[*slot / LS_SEGMENT_ROWS].ids[*slot % LS_SEGMENT_ROWS] = id;
    }
    return *slot;
}

ls_row ls_rows_take(ls_rows *r, uint64_t id, int64_t clock) {
    size_t slot = r->c->rows ? id / (uint64_t)r->nworkers : new_slot(r, id);
    ls_row row = row_at(r, slot);
    if (is_there(r, *row.age, clock)) return row;
    r->count += *row.age == 0;
    draw(r, id, row.values);
    if (r->nstates) memset(row.states, 0, (size_t)r->nstates * sizeof *row.states);
    return row;
}

/* ---- expired rows ---- */

static void drop(ls_rows *r, size_t slot) {
    const ls_row_segment *c = &r->segments[slot / LS_SEGMENT_ROWS];
    *row_at(r, slot).age = 0;
    r->count--;
    if (!c->ids) return;
    ls_id_map_remove(&r->map, c->ids[slot % LS_SEGMENT_ROWS]);
    if (r->nfree == r->free_capacity) {
        r->free_capacity = r->free_capacity ? 2 * r->free_capacity : 1024;
        r->free = ls_realloc(r->free, r->free_capacity * sizeof *r->free);
    }
    r->free[r->nfree++] = (uint32_t)slot;
}

void ls_rows_sweep(ls_rows *r, int64_t clock) {
    if (r->c->keep == 0 || r->end == 0) return;
    size_t part = r->end / 64 + 1;
    for (size_t i = 0; i < part; i++, r->swept++) {
        if (r->swept >= r->end) r->swept = 0;
        if (!r->segments[r->swept / LS_SEGMENT_ROWS].values) continue;
        uint32_t age = *row_at(r, r->swept).age;
        if (age > 0 && !is_there(r, age, clock)) drop(r, r->swept);
    }
}
