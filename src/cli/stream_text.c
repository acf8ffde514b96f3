/* stream_text.c - see stream_text.h. */
#include "cli/stream_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "base/utf8.h"

cli_stream cli_stream_open(void) { return (cli_stream){.to_terminal = isatty(STDOUT_FILENO) == 1}; }

ls_status cli_stream_write(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    cli_stream *w = arg;
    w->begun = true;
    if (w->to_terminal) {
        ls_buf_append(&w->text, bytes, nbytes);
        size_t n = ls_utf8_complete(w->text.data, w->text.len), rest = w->text.len - n;
        ls_print_text(w->text.data, n);
        memmove(w->text.data, w->text.data + n, rest);
        w->text.len = rest;
    } else {
        fwrite(bytes, 1, nbytes, stdout);
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) return LS_OK;
    return ls_fail(e, LS_EIO, "standard output can't be written: %s", strerror(errno));
}

void cli_stream_end(cli_stream *w) {
    ls_print_text(w->text.data, w->text.len);
    ls_print("\n");
    fflush(stdout); /* before an error is logged; later output finds that it failed */
    ls_buf_free(&w->text);
}
