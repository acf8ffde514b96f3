/* config_name.c - see cli.h. */
#include <string.h>

#include "cli/cli.h"

char *cli_config_name(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return ls_format("%.*s", (int)(dot && dot != base ? dot - base : (long)strlen(base)), base);
}
