/* stream_text.h - a model's text on its way to standard output, as it is written. */
#ifndef LS_CLI_STREAM_TEXT_H
#define LS_CLI_STREAM_TEXT_H

#include <stdbool.h>

#include "base/mem.h"

/* A model writes bytes, and a pipe or a file gets them unchanged. On a terminal, control characters
 * are escaped, like all output of this program; there an incomplete character waits in `text` for
 * its last bytes. */
typedef struct cli_stream {
    bool to_terminal, begun;
    ls_buf text;
} cli_stream;

cli_stream cli_stream_open(void);
/* An ls_write_fn; arg: the stream. */
ls_status cli_stream_write(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *);
/* Writes what waits, and a line end. */
void cli_stream_end(cli_stream *);

#endif
