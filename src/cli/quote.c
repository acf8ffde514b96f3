/* quote.c - words of a command line that a user may paste into a shell (POSIX, 2.2). */
#include <string.h>

#include "cli/cli.h"

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "%+,-./:=@_";

static void put_word(ls_buf *out, const char *word) {
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

void cli_quote(ls_buf *out, const char *word) {
    if (*word == '-') ls_buf_printf(out, "./");
    put_word(out, word);
}

char *cli_command_line(const ls_args *a) {
    ls_buf b = {0};
    for (int i = 0; i < a->argc; i++) {
        if (i) ls_buf_append(&b, " ", 1);
        put_word(&b, a->argv[i]);
    }
    return b.data ? b.data : ls_strdup("");
}
