/* nearest.h - what a mistyped word was meant to be. */
#ifndef LS_BASE_NEAREST_H
#define LS_BASE_NEAREST_H

#include <stdbool.h>

/* Letters that are inserted, left out, replaced, or swapped with their neighbour, to make `a` of
 * `b`; 99 where a word has 64 letters or more. */
int ls_edit_distance(const char *a, const char *b);

/* Whether `word` may be a typing error for `meant`: at most a third of the letters of the longer
 * word differ, and at most three. */
bool ls_is_near(const char *word, const char *meant);

#endif
