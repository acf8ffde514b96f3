/* text_output.c - see text_output.h. */
#include "infer/text_output.h"

#include <string.h>

/* The place of the first stop in the text, or its length. */
static size_t find_stop(const ls_text_output *x) {
    size_t first = x->held.len;
    for (int i = 0; i < x->nstops && first > 0; i++) {
        const char *at = memmem(x->held.data, x->held.len, x->stops[i], strlen(x->stops[i]));
        if (at && (size_t)(at - x->held.data) < first) first = (size_t)(at - x->held.data);
    }
    return first;
}

/* How many bytes at the text's end may be the beginning of a stop. */
static size_t possible_stop(const ls_text_output *x) {
    size_t most = 0;
    for (int i = 0; i < x->nstops; i++) {
        size_t n = strlen(x->stops[i]);
        n = n > x->held.len + 1 ? x->held.len : n - 1;
        while (n > most && memcmp(x->held.data + x->held.len - n, x->stops[i], n) != 0) n--;
        if (n > most) most = n;
    }
    return most;
}

static bool is_shown(const ls_text_output *x, uint32_t token) {
    for (int i = 0; i < x->nshown; i++)
        if (x->shown[i] == token) return true;
    return x->special;
}

size_t ls_text_output_add(ls_text_output *x, uint32_t token, bool *stopped_p) {
    x->decoding.skip_special = !is_shown(x, token);
    ls_decoding_add(&x->decoding, token, &x->held);
    size_t stop = find_stop(x);
    *stopped_p = stop < x->held.len;
    return *stopped_p ? stop : x->held.len - possible_stop(x);
}

size_t ls_text_output_end(ls_text_output *x) {
    ls_decoding_end(&x->decoding, &x->held);
    return x->held.len;
}

void ls_text_output_took(ls_text_output *x, size_t n) {
    if (n == 0) return;
    memmove(x->held.data, x->held.data + n, x->held.len - n);
    x->held.len -= n;
}
