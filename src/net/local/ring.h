/* ring.h - a queue of short notes from one worker to another, in memory that they share.
 *
 * One writer, one reader, no lock.
 */
#ifndef LS_NET_LOCAL_RING_H
#define LS_NET_LOCAL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LS_RING_NOTES = 16, LS_NOTE_INLINE = 192 };

typedef enum ls_note_kind {
    LS_NOTE_INLINE_DATA, /* a message or a part of one, in the note */
    LS_NOTE_THERE,       /* part of a message: read it at `place`, then answer with LS_NOTE_READ */
    LS_NOTE_READ,        /* the answer: `id` can be written again */
} ls_note_kind;

typedef struct ls_note {
    uint32_t kind;
    uint32_t id;                 /* the sender's, of the part */
    uint64_t tag, print, nbytes; /* of the message */
    int64_t place;
    uint64_t first, count; /* of the part, in bytes */
    unsigned char data[LS_NOTE_INLINE];
} ls_note;

typedef struct ls_ring {
    _Alignas(64) atomic_uint written;
    _Alignas(64) atomic_uint read;
    _Alignas(64) ls_note notes[LS_RING_NOTES];
} ls_ring;

/* Room for a note, or NULL; ls_ring_push() shows it to the reader. */
static inline ls_note *ls_ring_room(ls_ring *r) {
    unsigned written = atomic_load_explicit(&r->written, memory_order_relaxed);
    unsigned read = atomic_load_explicit(&r->read, memory_order_acquire);
    return written - read < LS_RING_NOTES ? &r->notes[written % LS_RING_NOTES] : NULL;
}
static inline void ls_ring_push(ls_ring *r) {
    unsigned written = atomic_load_explicit(&r->written, memory_order_relaxed);
    atomic_store_explicit(&r->written, written + 1, memory_order_release);
}

/* The oldest note, or NULL; ls_ring_pop() frees its place. */
static inline const ls_note *ls_ring_front(ls_ring *r) {
    unsigned read = atomic_load_explicit(&r->read, memory_order_relaxed);
    unsigned written = atomic_load_explicit(&r->written, memory_order_acquire);
    return written != read ? &r->notes[read % LS_RING_NOTES] : NULL;
}
static inline void ls_ring_pop(ls_ring *r) {
    unsigned read = atomic_load_explicit(&r->read, memory_order_relaxed);
    atomic_store_explicit(&r->read, read + 1, memory_order_release);
}

#endif
