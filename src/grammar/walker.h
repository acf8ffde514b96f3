/* walker.h - where texts stand in a grammar.
 *
 * A state is all that a text's bytes so far may be: pairs of a node and a frame, the calls that it
 * is within. States are made when they are first reached; equal ones are one, so that what has been
 * found out about a state holds for every text that reaches it. A frame says where to go on after a
 * call: the calls of one rule at one place share a frame, so their number stays small (a stack that
 * is a graph: Tomita, "An Efficient Augmented-Context-Free Parsing Algorithm", 1987).
 *
 * From each state but LS_WALKER_DEAD a complete text can be reached.
 */
#ifndef LS_GRAMMAR_WALKER_H
#define LS_GRAMMAR_WALKER_H

#include "grammar/grammar.h"

enum { LS_WALKER_DEAD = 0, LS_WALKER_START = 1 };

/* One thread at a time. */
typedef struct ls_walker ls_walker;

/* The grammar must outlive it. */
ls_walker *ls_walker_new(const ls_grammar *);
void ls_walker_free(ls_walker *); /* NULL is allowed */

/* The state after one more byte. */
uint32_t ls_walker_step(ls_walker *, uint32_t state, uint8_t byte);
bool ls_walker_is_end(const ls_walker *, uint32_t state); /* is the text complete? */

size_t ls_walker_nbytes(const ls_walker *);
/* Drops all states: numbers that were given are no longer valid. */
void ls_walker_clear(ls_walker *);

#endif
