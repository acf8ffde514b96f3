/* print.c - see print.h. */
#include "base/print.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/escape.h"
#include "base/transcript.h"
#include "base/wrap.h"

static void print(ls_escape_kind kind, const char *text, size_t nbytes) {
    ls_buf out = {0};
    ls_buf_escape(&out, kind, text, nbytes);
    ls_print_own(out.data, out.len);
    ls_buf_free(&out);
}

void ls_print_text(const char *text, size_t nbytes) { print(LS_ESCAPE_TEXT, text, nbytes); }

void ls_print_highlighted(ls_highlight *h, const char *text, size_t nbytes) {
    ls_buf escaped = {0}, out = {0};
    ls_buf_escape(&escaped, LS_ESCAPE_TEXT, text, nbytes);
    ls_highlight_write(h, escaped.data, escaped.len, &out);
    ls_print_own(out.data, out.len);
    ls_buf_free(&escaped);
    ls_buf_free(&out);
}

void ls_print_own(const char *text, size_t nbytes) {
    fwrite(text, 1, nbytes, stdout);
    ls_transcript_add(text, nbytes);
}

void ls_print(const char *fmt, ...) {
    ls_buf text = {0};
    va_list args;
    va_start(args, fmt);
    ls_buf_vput(&text, fmt, args);
    va_end(args);
    ls_print_text(text.data, text.len);
    ls_buf_free(&text);
}

void ls_print_wrapped(const char *fmt, ...) {
    ls_buf text = {0}, lines = {0};
    va_list args;
    va_start(args, fmt);
    ls_buf_vput(&text, fmt, args);
    va_end(args);
    ls_buf_wrap(&lines, text.data, 0, 0);
    ls_print_text(lines.data, lines.len);
    ls_buf_free(&lines);
    ls_buf_free(&text);
}

void ls_print_json(ls_json *j) {
    ls_buf text = {0};
    ls_json_write(j, 0, &text);
    ls_buf_append(&text, "\n", 1);
    print(LS_ESCAPE_JSON, text.data, text.len);
    ls_buf_free(&text);
    ls_json_free(j);
}
