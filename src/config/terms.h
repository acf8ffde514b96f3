/* terms.h - a small language for tables about keys: what values the keys of a config have.
 *
 * Terms are alternatives between " or ", each of terms between "; ", all of which hold:
 *   KEY: a, b                 the key has one of these values
 *   KEY: other than a, b      it has none of them
 *   KEY > N                   a number is above N
 *   KEY                       the text or list is not empty
 *   no KEY                    it is empty
 *   KEY is a list             a key that may be a number has a list
 *   KEY has a unit            an amount of training is not in steps
 */
#ifndef LS_CONFIG_TERMS_H
#define LS_CONFIG_TERMS_H

#include "config/key.h"

typedef enum ls_term_is {
    LS_TERM_ONE_OF,
    LS_TERM_NONE_OF,
    LS_TERM_ABOVE,
    LS_TERM_SET,
    LS_TERM_UNSET,
    LS_TERM_LIST,
    LS_TERM_UNIT
} ls_term_is;

typedef struct ls_term {
    const ls_config_key *key;
    ls_term_is is;
    const char *text;  /* all of it, to `end` */
    const char *words; /* after the key, to `end`: "a, b", or a number */
    const char *end;
    bool alternative; /* the next term begins another alternative */
    char name[64];
} ls_term;

/* What counts for keys of the model that the files of model.from decide, before they are read. */
typedef enum ls_open_keys { LS_OPEN_MAY_HOLD, LS_OPEN_DO_NOT_HOLD, LS_NONE_IS_OPEN } ls_open_keys;

/* Reads the term at *text and moves *text behind it; false: there are no more. */
bool ls_term_read(const char **text, ls_term *t_p);
bool ls_term_holds(const ls_config *, const ls_term *, ls_open_keys);
/* Do all terms of one alternative hold? */
bool ls_terms_hold(const ls_config *, const char *terms, ls_open_keys);

/* Appends what the config has of the term's key: "model.kind: gpt2". */
void ls_term_put_value(const ls_config *, const ls_term *, ls_open_keys, ls_buf *);
/* Appends terms with " and " for "; ", and ", or " for " or ". */
void ls_terms_put(const char *terms, ls_buf *);

#endif
