/* shell_word.c - see shell_word.h. */
#include "base/shell_word.h"

#include <stdbool.h>
#include <string.h>

#include "base/escape.h"

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "%+,-./:=@_";

/* Has it characters that are escaped where it is printed? Quotes would keep the escapes as they
 * are. */
static bool is_escaped(const char *word) {
    ls_buf printed = {0};
    ls_buf_escape(&printed, LS_ESCAPE_LINE, word, strlen(word));
    bool same = printed.data && strcmp(printed.data, word) == 0;
    ls_buf_free(&printed);
    return !same;
}

/* In dollar quotes all other bytes than those of ASCII that print are written by their numbers. */
static void put_dollar_quoted(ls_buf *out, const char *word) {
    ls_buf_printf(out, "$'");
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        if (c < ' ' || c > '~')
            ls_buf_printf(out, "\\%03o", c);
        else
            ls_buf_printf(out, "%s%c", c == '\'' || c == '\\' ? "\\" : "", c);
    }
    ls_buf_printf(out, "'");
}

void ls_shell_word(ls_buf *out, const char *word) {
    if (*word && is_escaped(word)) {
        put_dollar_quoted(out, word);
        return;
    }
    if (*word && word[strspn(word, plain)] == 0) {
        ls_buf_printf(out, "%s", word);
        return;
    }
    ls_buf_printf(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            ls_buf_printf(out, "'\\''");
        else
            ls_buf_append(out, word, 1);
    }
    ls_buf_printf(out, "'");
}
