/* edit_line.h - lines that a person types at a terminal, with editing and history: libedit, which
 * is loaded when it is first used. The one place that knows it.
 *
 * What is pasted comes as lines that belong together: terminals mark its beginning and its end
 * ("bracketed paste").
 */
#ifndef LS_CLI_EDIT_LINE_H
#define LS_CLI_EDIT_LINE_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

typedef struct cli_editor cli_editor;

typedef enum cli_line_end {
    CLI_LINE_DONE,
    CLI_LINE_PASTED,      /* the paste goes on: the next line belongs to this one */
    CLI_LINE_INTERRUPTED, /* what was typed is dropped */
    CLI_LINE_NONE         /* the input has ended */
} cli_line_end;

/* open: the signals that are let through while it waits, an interrupt among them; its handler sets
 * *interrupted. Both must outlive the editor. LS_EIO: libedit is not there. */
ls_status cli_editor_open(const sigset_t *open, volatile sig_atomic_t *interrupted,
                          cli_editor **d_p, ls_error *);
void cli_editor_close(cli_editor *); /* NULL is fine */

/* Reads a line; the text, without its line break, is valid until the next call. */
cli_line_end cli_editor_read(cli_editor *, const char *prompt, const char **text_p);

#endif
