/* stack.h - where another process is in its program: the functions of its first thread. */
#ifndef LS_NET_LAUNCH_STACK_H
#define LS_NET_LAUNCH_STACK_H

#include <stddef.h>
#include <sys/types.h>

/* "inner < outer < main" of a process that this one may trace (a child), running or stopped; the
 * innermost `most` functions. "" where it can't be had. The process is as before. */
void ls_stack_text(pid_t, int most, char *text, size_t nbytes);

#endif
