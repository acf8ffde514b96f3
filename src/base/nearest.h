/* nearest.h - how near a mistyped word is to one that was meant. */
#ifndef LS_BASE_NEAREST_H
#define LS_BASE_NEAREST_H

#include <stdbool.h>

/* The number of letters to insert, delete, replace or swap with their neighbour to turn `b` into
 * `a`; 99 if a word has 64 letters or more. */
int ls_edit_distance(const char *a, const char *b);

/* True if `word` may be a typing error for `meant`: at most three letters differ, and at most a
 * third of the letters of the longer word. */
bool ls_is_near(const char *word, const char *meant);

#endif
