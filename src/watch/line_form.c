/* line_form.c - see line_form.h.
 *
 * Equal texts between numbers mean equal names and equal places, and a number is read as far as one
 * goes. So a line that fits is the same JSON as the one that the form was taken from, but for its
 * numbers.
 */
#include "watch/line_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { WORD = sizeof(uint64_t) };

/* ---- pieces ---- */

/* Takes the text [length] as a piece before a number; returns the words that there are then. */
static uint32_t add_piece(ls_line_form *f, uint32_t word, const char *text, size_t length,
                          int number) {
    ls_form_piece *p = &f->pieces[f->npieces++];
    size_t nwords = (length + WORD - 1) / WORD, rest = length % WORD;
    *p = (ls_form_piece){
        .word = word, .nwords = (uint16_t)nwords, .length = (uint16_t)length, .number = number};
    memset(&p->mask, 0, sizeof p->mask);
    memset(&p->mask, 0xff, rest ? rest : WORD);
    if (nwords) f->words[word + nwords - 1] = 0;
    memcpy(&f->words[word], text, length);
    return word + (uint32_t)nwords;
}

static void make_pieces(ls_line_form *f) {
    size_t from = 0;
    uint32_t word = 0;
    f->npieces = 0;
    for (int i = 0; i < f->n; i++) {
        const ls_form_number *x = &f->numbers[i];
        if (!x->varies) continue;
        word = add_piece(f, word, f->sample + from, x->at - from, i);
        from = (size_t)x->at + x->length;
    }
    add_piece(f, word, f->sample + from, f->nsample - from, -1);
}

bool ls_line_form_of(const char *text, size_t n, const ls_step_line *line, ls_line_form *form_p) {
    if (line->has_others || line->n == LS_STEP_FIELDS || n > UINT16_MAX) return false;
    size_t most = (size_t)line->n + 1; /* pieces, each with less than a word more than its text */
    ls_line_form f = {.n = line->n,
                      .values = LS_NEW_ARRAY(double, most),
                      .sample = ls_alloc(n + 1),
                      .numbers = LS_NEW_ARRAY(ls_form_number, most),
                      .nsample = (uint16_t)n,
                      .pieces = LS_NEW_ARRAY(ls_form_piece, most),
                      .words = LS_NEW_ARRAY(uint64_t, n / WORD + most)};
    memcpy(f.sample, text, n);
    for (int i = 0; i < f.n; i++) {
        const ls_step_field *x = &line->fields[i];
        f.values[i] = x->value;
        f.numbers[i] = (ls_form_number){(uint16_t)(x->number - text), (uint16_t)x->nnumber, false};
    }
    make_pieces(&f);
    *form_p = f;
    return true;
}

void ls_line_form_free(ls_line_form *f) {
    free(f->values);
    free(f->sample);
    free(f->numbers);
    free(f->pieces);
    free(f->words);
    *f = (ls_line_form){0};
}

/* ---- reading ---- */

static bool read_value(const char **at, const char *end, double *value_p) {
    static const char null[] = "null";
    enum { NULL_LENGTH = sizeof null - 1 };
    if (*at < end && **at != 'n') return ls_step_number_read(at, end, value_p);
    if (end - *at < NULL_LENGTH || memcmp(*at, null, NULL_LENGTH) != 0) return false;
    *at += NULL_LENGTH;
    *value_p = NAN;
    return true;
}

/* Up to WORD - 1 bytes behind the text are read. */
static inline bool has_text(const ls_line_form *f, const ls_form_piece *p, const char *at) {
    const uint64_t *want = f->words + p->word;
    uint64_t differ = 0, x;
    int last = p->nwords - 1;
    if (last < 0) return true;
    for (int i = 0; i < last; i++) {
        memcpy(&x, at + i * WORD, sizeof x);
        differ |= x ^ want[i];
    }
    memcpy(&x, at + last * WORD, sizeof x);
    return !(differ | ((x ^ want[last]) & p->mask));
}

bool ls_line_form_read(ls_line_form *f, const char *text, size_t n) {
    const char *at = text, *end = text + n;
    for (int i = 0; i < f->npieces; i++) {
        const ls_form_piece *p = &f->pieces[i];
        if (end - at < p->length || !has_text(f, p, at)) return false;
        at += p->length;
        if (p->number < 0) break;
        double *value = &f->values[p->number];
        if (!ls_step_number_read_fast(&at, value) && !read_value(&at, end, value)) return false;
    }
    return at == end;
}

bool ls_line_form_learn(ls_line_form *f, const char *text, size_t n) {
    const char *at = text, *end = text + n, *want = f->sample;
    double values[LS_STEP_FIELDS];
    bool varies[LS_STEP_FIELDS];
    for (int i = 0; i < f->n; i++) {
        const char *sample = f->sample + f->numbers[i].at;
        size_t length = (size_t)(sample - want);
        if ((size_t)(end - at) < length || memcmp(at, want, length) != 0) return false;
        at += length;
        const char *number = at;
        if (!read_value(&at, end, &values[i])) return false;
        size_t nnumber = f->numbers[i].length;
        varies[i] = (size_t)(at - number) != nnumber || memcmp(number, sample, nnumber) != 0;
        want = sample + nnumber;
    }
    size_t length = (size_t)(f->sample + f->nsample - want);
    if ((size_t)(end - at) != length || memcmp(at, want, length) != 0) return false;
    for (int i = 0; i < f->n; i++) f->numbers[i].varies |= varies[i];
    if (f->n) memcpy(f->values, values, (size_t)f->n * sizeof *values);
    make_pieces(f);
    return true;
}
