/* stop.h - signals that ask a run to stop (SIGINT, SIGTERM, SIGUSR1, SIGHUP), before anything waits
 * for them: while the run is planned, and its directory opened.
 *
 *     ls_stop_begin()    nothing is written yet: a signal ends this process, with exit code 75
 *     ls_stop_record()   something will be: a signal is recorded, and a second one ends this
 *                        process
 *     ls_stop_repeat()   this process blocks or handles the signals in another way: sends itself
 *                        the one that was recorded
 *     ls_stop_end()      they have their default action again
 *
 * One thread calls these functions; ls_stop_again() may be called in a handler. A signal that was
 * ignored before stays ignored.
 */
#ifndef LS_NET_LAUNCH_STOP_H
#define LS_NET_LAUNCH_STOP_H

#include <stdbool.h>
#include <stdint.h>

void ls_stop_begin(void);
void ls_stop_record(void);
void ls_stop_repeat(void);
void ls_stop_end(void);

/* Does this signal ask to end at once? It does if it comes half a second or more after the first:
 * terminals, wrappers and batch systems send several together, of several kinds, and mean one stop.
 * SIGHUP never does, and is not counted: a terminal that is closed may send it twice.
 *
 * *first_ns  when the first came; 0: none came yet */
bool ls_stop_again(int number, int64_t *first_ns);

#endif
