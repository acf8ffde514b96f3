/* id_map.c - see id_map.h. */
#include "table/id_map.h"

#include "base/mem.h"

void ls_id_map_free(ls_id_map *m) {
    ls_unmap(m->slots, m->capacity * sizeof *m->slots);
    *m = (ls_id_map){0};
}

/* Rounds begin at 1: new pages are 0, and their slots are empty. */
void ls_id_map_clear(ls_id_map *m) {
    m->n = 0;
    if (++m->round != 0) return;
    for (size_t i = 0; i < m->capacity; i++) m->slots[i].round = 0;
    m->round = 1;
}

/* The slot of an id, or the empty one where it belongs. */
static ls_id_slot *find(const ls_id_map *m, uint64_t id) {
    size_t mask = m->capacity - 1, at = ls_id_mix(id) & mask;
    while (m->slots[at].round == m->round && m->slots[at].id != id) at = (at + 1) & mask;
    return &m->slots[at];
}

ls_status ls_id_map_reserve(ls_id_map *m, size_t more, ls_error *e) {
    ls_id_map wide = {.capacity = m->capacity ? m->capacity : 64, .n = m->n, .round = 1};
    void *slots = NULL;
    while (2 * (m->n + more) > wide.capacity) wide.capacity *= 2;
    if (wide.capacity == m->capacity) return LS_OK;
    LS_TRY(ls_map(wide.capacity * sizeof *wide.slots, "ids of a table", &slots, e));
    wide.slots = slots;
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->slots[i].round != m->round) continue;
        ls_id_slot *to = find(&wide, m->slots[i].id);
        *to = m->slots[i];
        to->round = wide.round;
    }
    ls_id_map_free(m);
    *m = wide;
    return LS_OK;
}

uint32_t ls_id_map_get(const ls_id_map *m, uint64_t id) {
    if (!m->capacity) return LS_ID_NONE;
    const ls_id_slot *s = find(m, id);
    return s->round == m->round ? s->value : LS_ID_NONE;
}

uint32_t *ls_id_map_put(ls_id_map *m, uint64_t id, bool *new_p) {
    ls_id_slot *s = find(m, id);
    *new_p = s->round != m->round;
    if (*new_p) {
        *s = (ls_id_slot){.id = id, .round = m->round};
        m->n++;
    }
    return &s->value;
}

/* Moves later ids of the same cluster up, so that a search never meets a gap before its id. */
void ls_id_map_remove(ls_id_map *m, uint64_t id) {
    size_t mask = m->capacity - 1, gap = (size_t)(find(m, id) - m->slots);
    for (size_t i = (gap + 1) & mask; m->slots[i].round == m->round; i = (i + 1) & mask) {
        size_t home = ls_id_mix(m->slots[i].id) & mask;
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        m->slots[gap] = m->slots[i];
        gap = i;
    }
    m->slots[gap].round = m->round - 1;
    m->n--;
}
