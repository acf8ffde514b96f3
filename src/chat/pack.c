/* pack.c - see pack.h.
 *
 * Rows with the same room are a list, the earliest first; a bit for each room says whether its list
 * has a row, so that the next larger one is found 64 at a time. */
#include "chat/pack.h"

#include <stdlib.h>

enum { NONE = -1 };

typedef struct packer {
    int64_t *head, *tail; /* [room + 1] lists of rows; NONE: empty */
    int64_t *next;        /* [n] the row behind a row in its list */
    uint64_t *bits;       /* [room / 64 + 1] */
    uint32_t room;
} packer;

static void push(packer *p, uint32_t room, int64_t row) {
    p->next[row] = NONE;
    if (p->head[room] == NONE)
        p->head[room] = row;
    else
        p->next[p->tail[room]] = row;
    p->tail[room] = row;
    p->bits[room / 64] |= (uint64_t)1 << room % 64;
}

static int64_t pop(packer *p, uint32_t room) {
    int64_t row = p->head[room];
    p->head[room] = p->next[row];
    if (p->head[room] == NONE) p->bits[room / 64] &= ~((uint64_t)1 << room % 64);
    return row;
}

/* The least room of a row, at least `length`; above p->room: there is no such row. */
static uint32_t find(const packer *p, uint32_t length) {
    uint64_t word = p->bits[length / 64] >> length % 64 << length % 64;
    uint32_t i = length / 64;
    while (!word && ++i <= p->room / 64) word = p->bits[i];
    return word ? i * 64 + (uint32_t)__builtin_ctzll(word) : p->room + 1;
}

/* Samples from the longest to the shortest; equal ones in their order. */
static uint64_t *sort(const uint32_t *lengths, uint64_t n, uint32_t room) {
    uint64_t *order = LS_NEW_ARRAY(uint64_t, n + 1), *at = LS_NEW_ARRAY(uint64_t, room + 2);
    for (uint64_t i = 0; i < n; i++) at[room - lengths[i] + 1]++;
    for (uint32_t k = 1; k <= room; k++) at[k] += at[k - 1];
    for (uint64_t i = 0; i < n; i++) order[at[room - lengths[i]]++] = i;
    free(at);
    return order;
}

/* row [n] = the row of each sample; returns how many there are. */
static uint64_t place(const uint32_t *lengths, const uint64_t *order, uint64_t n, uint32_t room,
                      uint64_t *row) {
    packer p = {.head = LS_NEW_ARRAY(int64_t, room + 1),
                .tail = LS_NEW_ARRAY(int64_t, room + 1),
                .next = LS_NEW_ARRAY(int64_t, n + 1),
                .bits = LS_NEW_ARRAY(uint64_t, room / 64 + 1),
                .room = room};
    uint64_t nrows = 0;
    for (uint32_t k = 0; k <= room; k++) p.head[k] = NONE;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t length = lengths[order[i]], at = find(&p, length);
        int64_t r = at > room ? (int64_t)nrows++ : pop(&p, at);
        row[order[i]] = (uint64_t)r;
        push(&p, (at > room ? room : at) - length, r);
    }
    free(p.head);
    free(p.tail);
    free(p.next);
    free(p.bits);
    return nrows;
}

ls_packing ls_pack(const uint32_t *lengths, uint64_t n, uint32_t room, bool alone) {
    ls_packing p = {.nrows = n, .samples = LS_NEW_ARRAY(uint64_t, n + 1)};
    uint64_t *order = sort(lengths, n, room), *row = LS_NEW_ARRAY(uint64_t, n + 1);
    if (!alone) p.nrows = place(lengths, order, n, room, row);
    for (uint64_t i = 0; alone && i < n; i++) row[i] = order[i] = i;
    p.first = LS_NEW_ARRAY(uint64_t, p.nrows + 2);
    uint64_t *at = p.first + 1; /* moves to the ends of the rows */
    for (uint64_t i = 0; i < n; i++) p.first[row[i] + 2]++;
    for (uint64_t r = 2; r <= p.nrows + 1; r++) p.first[r] += p.first[r - 1];
    for (uint64_t i = 0; i < n; i++) p.samples[at[row[order[i]]]++] = order[i];
    free(order);
    free(row);
    return p;
}

void ls_packing_free(ls_packing *p) {
    free(p->first);
    free(p->samples);
    *p = (ls_packing){0};
}
