/* streams.c - the standard streams of a command: closed, full, or without a reader. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

void cli_streams_open(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        /* open() returns the lowest free number, which is fd. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

/* An earlier write that failed when the buffer was full shows in ferror() only. */
bool cli_streams_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    ls_log("standard output can't be written");
    return false;
}
