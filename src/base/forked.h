/* forked.h - what the child of a fork() must not share with its parent.
 *
 * A program may fork while it is a worker: Python's multiprocessing does, and so does a loader of
 * data. The child has copies of the parent's connections and of its counts of calls. If it used
 * them, the parent would get wrong sums or a lost connection. While a child (a writer of a
 * checkpoint, which waits for its disk) holds a socket open, nobody sees that the parent has died,
 * and another process can't have the parent's port. So an object notes ls_forks() when it is made,
 * and refuses its use where the number is another one; and descriptors that are given to
 * ls_fork_closes() are closed in the child.
 */
#ifndef LS_BASE_FORKED_H
#define LS_BASE_FORKED_H

#include <stdint.h>

/* Has another value in each child of fork() than in its parent. Any thread. */
uint32_t ls_forks(void);

/* From now on, children of fork() close their copy of the descriptor; -1 is fine. Any thread. */
void ls_fork_closes(int fd);
/* Closes a descriptor that was given, or was not; -1 is fine. Any thread. */
void ls_fork_close(int fd);

#endif
