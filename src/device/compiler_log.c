/* compiler_log.c - see compiler_log.h. */
#include "device/compiler_log.h"

#include <string.h>

const char *ls_compiler_log_line(const char *log, int *length_p) {
    const char *error = strstr(log, "error"), *line = log + strspn(log, " \t\r\n");
    for (const char *c = log; error && c < error; c++)
        if (*c == '\n') line = c + 1;
    *length_p = (int)strcspn(line, "\r\n");
    return line;
}
