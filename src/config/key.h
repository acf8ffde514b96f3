/* key.h - a key of a config: a row of the table (keys.c), and what is asked of it. */
#ifndef LS_CONFIG_KEY_H
#define LS_CONFIG_KEY_H

#include "config/config.h"

typedef enum ls_config_key_type {
    LS_KEY_INTEGER,
    LS_KEY_REAL,
    LS_KEY_TEXT,
    LS_KEY_LIST, /* a text per line */
    LS_KEY_MAPS, /* a list of maps: one per line, as base/yaml.h reads it */
    LS_KEY_TREE, /* an ls_config_tree */
    LS_KEY_SPAN, /* an ls_config_span: a number of steps, "2000 samples", "0.5 epochs", "auto" */
    LS_KEY_CHOICE
} ls_config_key_type;

/* May a run that is resumed have another value?
 *
 *  FIXED    no: the run would be another one. What is trained (model, lora, data), what its state
 *           consists of (optim.optimizer, ema, groups, freeze_step, types), which samples a step
 *           takes (batch, seed, virtual workers), and the order of sums.
 *  STEERED  yes: a number or a curve by which the next steps change the same state. They have the
 *           bits of the new value, so the change is recorded with its step (report/history.h).
 *  FREE     yes: it can't affect the bits, but for train.steps and parallel.reduce
 *           (differences.c). */
typedef enum ls_config_key_resumed {
    LS_KEY_FIXED,
    LS_KEY_STEERED,
    LS_KEY_FREE
} ls_config_key_resumed;

enum { LS_KEY_LOW, LS_KEY_HIGH, LS_KEY_USUAL }; /* a number's limits and its default */

typedef struct ls_config_key {
    const char *name;
    ls_config_key_type type;
    size_t offset;              /* in ls_config */
    int64_t whole[3];           /* integer, choice: lowest, highest, default */
    double real[3];             /* real, span: the same */
    const char *const *choices; /* [.., NULL] choice: the words, each at its enum's value; integer,
                                 * span: the word for LS_AUTO, or NULL */
    ls_config_key_resumed resumed;
    const char *help;
} ls_config_key;

enum { LS_NCONFIG_KEYS = 234 };
extern const ls_config_key *const ls_config_keys; /* [LS_NCONFIG_KEYS] */
/* From now on these keys [n] of a program come after those of the table (own.c). */
void ls_config_key_use_own(const ls_config_key *keys, int n);
/* All keys: those of the table, then those of a program. NULL after the last one. */
const ls_config_key *ls_config_key_at(int i);
int ls_config_key_index(const ls_config_key *);

/* NULL: there is no such key. A name may be that of two keys: one of them has a tree. */
const ls_config_key *ls_config_key_find(const char *name);
const ls_config_key *ls_config_key_find_tree(const char *name);
/* The value of a key of type integer or choice. */
int64_t ls_config_key_whole(const ls_config *, const ls_config_key *);
/* Gives the key the value that it has in another config. */
void ls_config_key_copy(ls_config *to, const ls_config *from, const ls_config_key *);
/* Is its value a text: of type text, list, maps or tree? */
bool ls_config_key_is_text(const ls_config_key *);
const char *ls_config_key_text(const ls_config *, const ls_config_key *);
/* Is it the one of two keys with its name that is not set? */
bool ls_config_key_is_hidden(const ls_config *, const ls_config_key *);

bool ls_config_key_is_group(const char *name);
/* Appends the groups in the order of the table: "model, data, ...". */
void ls_config_key_list_groups(ls_buf *);

enum { LS_KEY_RANGE = 96 };
/* The words for units of a span: [ls_span_unit], NULL. */
extern const char *const ls_config_span_units[];
/* "lowest to highest", for a number. */
void ls_config_key_write_range(const ls_config_key *, char text[LS_KEY_RANGE]);

/* Is a number within its limits, or the default? True for keys of other types. */
bool ls_config_key_in_range(const ls_config *, const ls_config_key *);

/* Gives it its default. */
void ls_config_key_reset(ls_config *, const ls_config_key *);

/* Sets the key from a text; `where` begins messages. */
ls_status ls_config_key_set(ls_config *, const ls_config_key *, const char *where,
                            const char *value, ls_error *);

/* Does the key have the same value in both? Trees may be written in other lines. */
bool ls_config_key_is_equal(const ls_config *, const ls_config *, const ls_config_key *);

/* on and true: 1; off and false: 0; another word: -1. */
int ls_config_truth(const char *word);

/* Appends the key's value as a scalar of YAML. */
void ls_config_key_write(const ls_config *, const ls_config_key *, ls_buf *);

#endif
