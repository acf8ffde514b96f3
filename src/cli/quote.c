/* quote.c - words of a command line that a user may paste into a shell. */
#include "base/shell_word.h"
#include "cli/cli.h"

void cli_quote(ls_buf *out, const char *word) {
    if (*word == '-') ls_buf_printf(out, "./");
    ls_shell_word(out, word);
}

char *cli_command_line(const ls_args *a) {
    ls_buf b = {0};
    for (int i = 0; i < a->argc; i++) {
        if (i) ls_buf_append(&b, " ", 1);
        ls_shell_word(&b, a->argv[i]);
    }
    return b.data ? b.data : ls_strdup("");
}
