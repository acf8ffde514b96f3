/* line_form.h - the form of a step's line: the text between its numbers.
 *
 * The lines of a run have few forms. A line of a known form is compared with it, and its numbers are read, without
 * looking at names: a third of the time of step_line.h, which reads the other lines. Both have equal results.
 */
#ifndef LS_WATCH_LINE_FORM_H
#define LS_WATCH_LINE_FORM_H

#include <stdint.h>

#include "watch/step_line.h"

typedef struct ls_line_form {
    int n;                                /* numbers */
    uint16_t lengths[LS_STEP_FIELDS + 1]; /* of the text before each number, and behind the last */
    char *text;                           /* these, one after the other */
} ls_line_form;

/* Takes the form of a line [n] that was read as *line. False: a value in it is no number (so its lines have no
 * common form), or it is too long. The caller frees it. */
bool ls_line_form_of(const char *text, size_t n, const ls_step_line *line, ls_line_form *form_p);
void ls_line_form_free(ls_line_form *);

/* Reads a line [n] of this form, behind which LS_SPARE bytes can be read: values [form->n], in the order of the fields of the line that it was taken from.
 * False: the line has another form. */
bool ls_line_form_read(const ls_line_form *, const char *text, size_t n, double *values);

#endif
