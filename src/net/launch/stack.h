/* stack.h - the call stack of another process's first thread, as text. */
#ifndef LS_NET_LAUNCH_STACK_H
#define LS_NET_LAUNCH_STACK_H

#include <stddef.h>
#include <sys/types.h>

/* "inner < outer < main": the innermost `most` functions of a process that this one may trace (a
 * child), running or stopped. "" if the stack can't be read. The process continues as before. */
void ls_stack_text(pid_t, int most, char *text, size_t nbytes);

#endif
