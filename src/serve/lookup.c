/* lookup.c - see lookup.h. */
#include "serve/lookup.h"

#include <string.h>

enum { SAME = 3, FAR = 4096 }; /* FAR: how far back it looks */

int64_t ls_lookup(const uint32_t *tokens, int64_t n, int64_t most, uint32_t *guesses) {
    const uint32_t *last = tokens + n - SAME;
    for (int64_t end = n - 1; end >= SAME && end > n - FAR; end--) {
        if (memcmp(tokens + end - SAME, last, SAME * sizeof *last) != 0) continue;
        int64_t found = n - end < most ? n - end : most;
        memcpy(guesses, tokens + end, (size_t)found * sizeof *guesses);
        return found;
    }
    return 0;
}
