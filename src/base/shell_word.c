/* shell_word.c - see shell_word.h. */
#include "base/shell_word.h"

#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "%+,-./:=@_";

void ls_shell_word(ls_buf *out, const char *word) {
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
