/* damage.c - see damage.h. */
#include "source/damage.h"

#include <stdio.h>
#include <stdlib.h>

#include "source/note.h"

void ls_damage_add(ls_damage *d, const char *why) {
    if (d->n++ < LS_DAMAGE_NAMED) snprintf(d->named[d->n - 1], sizeof d->named[0], "%s", why);
}

static size_t nnamed(const ls_damage *d) { return d->n < LS_DAMAGE_NAMED ? d->n : LS_DAMAGE_NAMED; }

void ls_damage_note(const ls_damage *d, const char *what) {
    for (size_t i = 0; i < nnamed(d); i++) ls_note("skipped: %s", d->named[i]);
    if (d->n > LS_DAMAGE_NAMED)
        ls_note("%s: and %llu more; %llu in all are skipped, since they are damaged", what,
                (unsigned long long)(d->n - LS_DAMAGE_NAMED), (unsigned long long)d->n);
}

void ls_damage_put(const ls_damage *d, ls_buf *b) {
    ls_bytes_put_u64(b, d->n);
    for (size_t i = 0; i < nnamed(d); i++) ls_bytes_put_text(b, d->named[i]);
}

void ls_damage_take(ls_damage *d, ls_bytes *in) {
    *d = (ls_damage){.n = ls_bytes_take_u64(in, UINT64_MAX)};
    for (size_t i = 0; i < nnamed(d) && !in->bad; i++) {
        char *text = ls_bytes_take_text(in, sizeof d->named[0]);
        if (text) snprintf(d->named[i], sizeof d->named[0], "%s", text);
        free(text);
    }
}
