/* damage.c - see damage.h. */
#include "source/damage.h"

#include <string.h>

#include "source/note.h"

void ls_damage_add(ls_damage *d, const char *why) {
    if (d->n++ < LS_DAMAGE_NAMED) ls_buf_printf(&d->named, "%s\n", why);
}

void ls_damage_note(const ls_damage *d, const char *what) {
    const char *line = d->named.data;
    for (; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        ls_note("skipped: %.*s", (int)strcspn(line, "\n"), line);
    if (d->n > LS_DAMAGE_NAMED)
        ls_note("%s: skipped %llu in all, since they are damaged", what, (unsigned long long)d->n);
}

void ls_damage_free(ls_damage *d) {
    ls_buf_free(&d->named);
    *d = (ls_damage){0};
}
