/* streams.c - the standard streams of a command: closed, full, or read by nobody. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

void cli_streams_open(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* The lowest number that is free is this one. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

/* What failed earlier, when the buffer was full, is remembered by ferror() alone. */
bool cli_streams_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    ls_log("standard output can't be written");
    return false;
}
