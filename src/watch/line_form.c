/* line_form.c - see line_form.h.
 *
 * Equal texts between numbers mean equal names and equal places, and a number is read as far as one goes. So a
 * line that fits is the same JSON as the one that the form was taken from, but for its numbers.
 */
#include "watch/line_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool ls_line_form_of(const char *text, size_t n, const ls_step_line *line, ls_line_form *form_p) {
    if (line->has_others || line->n == LS_STEP_FIELDS || n > UINT16_MAX) return false;
    ls_line_form f = {.n = line->n, .text = ls_alloc(n + 1)};
    const char *at = text;
    size_t done = 0;
    for (int i = 0; i <= f.n; i++) {
        const char *end = i < f.n ? line->fields[i].number : text + n;
        size_t length = (size_t)(end - at);
        memcpy(f.text + done, at, length);
        f.lengths[i] = (uint16_t)length;
        done += length;
        if (i < f.n) at = end + line->fields[i].nnumber;
    }
    *form_p = f;
    return true;
}

void ls_line_form_free(ls_line_form *f) {
    free(f->text);
    *f = (ls_line_form){0};
}

static inline bool read_value(const char **at, const char *end, double *value_p) {
    static const char null[] = "null";
    enum { NULL_LENGTH = sizeof null - 1 };
    if (*at < end && **at != 'n') return ls_step_number_read_fast(at, end, value_p);
    if (end - *at < NULL_LENGTH || memcmp(*at, null, NULL_LENGTH) != 0) return false;
    *at += NULL_LENGTH;
    *value_p = NAN;
    return true;
}

bool ls_line_form_read(const ls_line_form *f, const char *text, size_t n, double *values) {
    const char *at = text, *end = text + n, *want = f->text;
    for (int i = 0; i < f->n; i++) {
        size_t length = f->lengths[i];
        if ((size_t)(end - at) < length || memcmp(at, want, length) != 0) return false;
        at += length;
        want += length;
        if (!read_value(&at, end, &values[i])) return false;
    }
    size_t length = f->lengths[f->n];
    return (size_t)(end - at) == length && memcmp(at, want, length) == 0;
}
