/* nfa_product.h - what two expressions allow, or one of them alone. */
#ifndef LS_GRAMMAR_NFA_PRODUCT_H
#define LS_GRAMMAR_NFA_PRODUCT_H

#include "grammar/nfa.h"

/* The part that begins x, of LS_EXPRESSION_BOTH or LS_EXPRESSION_WITHOUT. */
uint32_t ls_nfa_add_product(ls_nfa *, const ls_expression *x, uint32_t next);

#endif
