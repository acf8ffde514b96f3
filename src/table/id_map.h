/* id_map.h - ids to numbers, by open addressing with linear probing. */
#ifndef LS_TABLE_ID_MAP_H
#define LS_TABLE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LS_ID_NONE UINT32_MAX

typedef struct ls_id_slot {
    uint64_t id;
    uint32_t value;
    uint32_t round; /* the slot is empty unless this is the map's */
} ls_id_slot;

/* {0} is an empty map. */
typedef struct ls_id_map {
    ls_id_slot *slots; /* [capacity], a power of two; at most half are in use */
    size_t capacity, n;
    uint32_t round;
} ls_id_map;

void ls_id_map_free(ls_id_map *);
void ls_id_map_clear(ls_id_map *); /* retains the memory */

/* Room for `more` ids beside those that it has. LS_ENOMEM: the map is as before. */
ls_status ls_id_map_reserve(ls_id_map *, size_t more, ls_error *);

/* LS_ID_NONE: it is not there. */
uint32_t ls_id_map_get(const ls_id_map *, uint64_t id);
/* The value of an id; *new_p: it was not there, and the caller sets its value. The map must have
 * room. */
uint32_t *ls_id_map_put(ls_id_map *, uint64_t id, bool *new_p);
void ls_id_map_remove(ls_id_map *, uint64_t id); /* it is there */

/* Spreads ids, also consecutive ones, over 64 bits. The finalizer of SplitMix64: Steele, Lea &
 * Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static inline uint64_t ls_id_mix(uint64_t id) {
    id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9u;
    id = (id ^ id >> 27) * 0x94d049bb133111ebu;
    return id ^ id >> 31;
}

/* Begins to fetch the slot of an id, which is looked up soon. */
static inline void ls_id_map_prefetch(const ls_id_map *m, uint64_t id) {
    if (m->capacity) __builtin_prefetch(&m->slots[ls_id_mix(id) & (m->capacity - 1)]);
}

#endif
