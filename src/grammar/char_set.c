/* char_set.c - see char_set.h. */
#include "grammar/char_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_SURROGATE = 0xd800, LAST_SURROGATE = 0xdfff };

void ls_char_set_free(ls_char_set *s) {
    free(s->ranges);
    *s = (ls_char_set){0};
}

void ls_char_set_add(ls_char_set *s, uint32_t first, uint32_t last) {
    size_t from = 0, to;
    while (from < s->n && s->ranges[from].last + 1 < first) from++;
    for (to = from; to < s->n && s->ranges[to].first <= last + 1; to++) {
        if (s->ranges[to].first < first) first = s->ranges[to].first;
        if (s->ranges[to].last > last) last = s->ranges[to].last;
    }
    if (from == to) s->ranges = ls_grow(s->ranges, s->n, sizeof *s->ranges);
    memmove(s->ranges + from + 1, s->ranges + to, (s->n - to) * sizeof *s->ranges);
    s->ranges[from] = (ls_char_range){first, last};
    s->n = s->n + 1 - (to - from);
}

void ls_char_set_add_all(ls_char_set *s, const ls_char_set *from) {
    for (size_t i = 0; i < from->n; i++)
        ls_char_set_add(s, from->ranges[i].first, from->ranges[i].last);
}

void ls_char_set_invert(ls_char_set *s) {
    ls_char_set rest = {0};
    uint32_t next = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->ranges[i].first > next) ls_char_set_add(&rest, next, s->ranges[i].first - 1);
        next = s->ranges[i].last + 1;
    }
    if (next <= LS_LAST_CHAR) ls_char_set_add(&rest, next, LS_LAST_CHAR);
    ls_char_set_free(s);
    *s = rest;
}

void ls_char_set_remove(ls_char_set *s, uint32_t first, uint32_t last) {
    ls_char_set_invert(s);
    ls_char_set_add(s, first, last);
    ls_char_set_invert(s);
}

bool ls_char_set_has(const ls_char_set *s, uint32_t c) {
    for (size_t i = 0; i < s->n; i++)
        if (c >= s->ranges[i].first && c <= s->ranges[i].last) return true;
    return false;
}

/* ---- bytes ---- */

static int put_bytes(uint32_t c, uint8_t *bytes) {
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n; i-- > 1; c >>= 6) bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
    bytes[0] = (uint8_t)(heads[n] | c);
    return n;
}

typedef struct byte_output {
    void (*fn)(void *arg, const ls_byte_ranges *);
    void *arg;
} byte_output;

/* Splits a range where its characters differ in more than their last bytes, or in their number of
 * bytes. Source: Thompson's and Cox's "utf8-ranges". */
static void put_range(uint32_t first, uint32_t last, const byte_output *o) {
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff};
    ls_byte_ranges r;
    uint32_t cut = last;
    for (size_t i = 0; i < 3 && cut == last; i++)
        if (first <= ends[i] && last > ends[i]) cut = ends[i];
    for (int i = 1; i < 4 && cut == last && last > 0x7f; i++) {
        uint32_t low = ((uint32_t)1 << (6 * i)) - 1;
        if ((first & ~low) == (last & ~low)) continue;
        if (first & low) cut = first | low;
        if (cut == last && (last & low) != low) cut = (last & ~low) - 1;
    }
    if (cut != last) {
        put_range(first, cut, o);
        put_range(cut + 1, last, o);
        return;
    }
    r.n = put_bytes(first, r.first);
    put_bytes(last, r.last);
    o->fn(o->arg, &r);
}

void ls_char_set_bytes(const ls_char_set *s, void (*fn)(void *arg, const ls_byte_ranges *),
                       void *arg) {
    byte_output o = {fn, arg};
    for (size_t i = 0; i < s->n; i++) {
        uint32_t first = s->ranges[i].first, last = s->ranges[i].last;
        if (first < FIRST_SURROGATE)
            put_range(first, last < FIRST_SURROGATE ? last : FIRST_SURROGATE - 1, &o);
        if (last > LAST_SURROGATE)
            put_range(first > LAST_SURROGATE ? first : LAST_SURROGATE + 1, last, &o);
    }
}
