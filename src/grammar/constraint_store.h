/* constraint_store.h - constraints of requests: what one request has found out about a grammar's
 * states, the next one with the same grammar finds.
 *
 * Any threads may call; those that are in use are not touched.
 */
#ifndef LS_GRAMMAR_CONSTRAINT_STORE_H
#define LS_GRAMMAR_CONSTRAINT_STORE_H

#include "grammar/constraint.h"

enum { LS_STORED_CONSTRAINTS = 32 }; /* that nobody uses */

typedef struct ls_constraint_store ls_constraint_store;

/* Of the tokens below V, which the tokenizer, which must outlive it, has. */
ls_constraint_store *ls_constraint_store_new(const ls_tokenizer *, uint32_t V);
void ls_constraint_store_free(ls_constraint_store *); /* NULL is allowed; none may be in use */

/* Made when it is first asked for. */
const ls_token_tree *ls_constraint_store_tokens(ls_constraint_store *);

/* The constraint of this key [n], in use once more; NULL: it is not there. */
ls_constraint *ls_constraint_store_find(ls_constraint_store *, const char *key, size_t n);
/* Adds one, in use once. Takes the grammar. */
ls_constraint *ls_constraint_store_add(ls_constraint_store *, const char *key, size_t n,
                                       ls_grammar *);
/* In use once less. NULL is allowed. */
void ls_constraint_store_give(ls_constraint_store *, ls_constraint *);

#endif
