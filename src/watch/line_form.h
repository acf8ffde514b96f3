/* line_form.h - the form of a step's line: the text between its numbers.
 *
 * The lines of a run have few forms. A line of a known form is compared with it, and its numbers
 * are read, without looking at names: a fraction of the time of step_line.h, which reads the other
 * lines. Both have equal results.
 *
 * Most numbers of a line are those of the line before (its epoch, its workers): a form takes them
 * as text until it is told of a line in which they are others.
 */
#ifndef LS_WATCH_LINE_FORM_H
#define LS_WATCH_LINE_FORM_H

#include <stdint.h>

#include "watch/step_line.h"

typedef struct ls_form_number {
    uint16_t at, length; /* of its text in the sample */
    bool varies;
} ls_form_number;

/* Text that is compared, and the number behind it that is read. */
typedef struct ls_form_piece {
    uint64_t mask; /* of the bytes of its last word that belong to it */
    uint32_t word; /* its first word of `words` */
    uint16_t nwords, length;
    int number; /* -1: none, the line ends */
} ls_form_piece;

typedef struct ls_line_form {
    int n;
    double *values;          /* [n] of the line that was read last */
    char *sample;            /* [nsample] the line that the form was taken from */
    ls_form_number *numbers; /* [n] */
    uint16_t nsample;
    int npieces;
    ls_form_piece *pieces; /* [npieces <= n + 1] */
    uint64_t *words;       /* the texts of the pieces, each filled up to whole words */
} ls_line_form;

/* Takes the form of a line [n] that was read as *line. False: a value in it is no number (so its
 * lines have no common form), or it is too long. The caller frees it. */
bool ls_line_form_of(const char *text, size_t n, const ls_step_line *line, ls_line_form *form_p);
void ls_line_form_free(ls_line_form *);

/* Reads a line [n] of this form, behind which LS_SPARE bytes can be read, into f->values: in the
 * order of the fields of the line that it was taken from. False: the line has another form, or a
 * number has changed for the first time. */
bool ls_line_form_read(ls_line_form *, const char *text, size_t n);

/* The same, for a line whose numbers may all be others: the form learns which they are. False: the
 * line has another form. */
bool ls_line_form_learn(ls_line_form *, const char *text, size_t n);

#endif
