/* name.c - see name.h. */
#include "base/name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char OURS[] = "lockstep";
enum { LENGTH = sizeof OURS - 1 };

static char name[LS_NAME_NBYTES] = "lockstep";

void ls_name_set(const char *given) { snprintf(name, sizeof name, "%s", given); }

const char *ls_name(void) { return name; }

/* Does a quoted command begin at text + 1? */
static bool is_command(const char *text, size_t n) {
    return n > LENGTH + 1 && (*text == '\'' || *text == '`') &&
           memcmp(text + 1, OURS, LENGTH) == 0 && text[LENGTH + 1] == ' ';
}

size_t ls_name_copy(const char *text, size_t n, char *out, size_t room) {
    size_t at = 0, length = strlen(name);
    for (size_t i = 0; i < n && at < room; i++) {
        out[at++] = text[i];
        if (!is_command(text + i, n - i)) continue;
        size_t fits = length < room - at ? length : room - at;
        memcpy(out + at, name, fits);
        at += fits;
        i += LENGTH;
    }
    return at;
}
