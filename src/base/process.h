/* process.h - other processes of this host, by what /proc says of them.
 *
 * A process may end at any time, and its number may later be that of another process: what is read
 * here was true a moment ago. Any thread.
 */
#ifndef LS_BASE_PROCESS_H
#define LS_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Does the process have this file open? Processes of other users don't show their files: for them,
 * was it there at this time (seconds since 1970)? A process that has ended but was not waited for
 * is not. */
bool ls_process_has_file(int pid, const struct stat *file, double at_s);

/* Does a process with this number exist that was there at this time? */
bool ls_process_was_there(int pid, double at_s);

/* The command line of this process, with words quoted for a shell; "": it can't be read. free()
 * it. */
char *ls_process_own_command(void);

/* Resident bytes of a process, of which it counts its part where others share them; -1: not known.
 * The kernel walks through its pages, which takes milliseconds. */
int64_t ls_process_proportional_nbytes(int pid);
/* Processor time that the process has used; NaN: not known. */
double ls_process_cpu_s(int pid);

/* Resident bytes of the processes that one command has become: those above and beside this one with
 * the same command line in the same directory (its supervisor, or workers of a launcher), and all
 * below them. Memory that they share counts once, as far as it shows. -1: it can't be read. */
int64_t ls_process_command_nbytes(int pid);

#endif
