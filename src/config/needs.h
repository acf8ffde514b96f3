/* needs.h - which keys act: what each needs of the others, as a table.
 *
 * A key that is written, in a config or by --set, and can't act is refused with what it needs. So a
 * config that trains has no words without meaning. What passes:
 *  - a value that says nothing: the default, where that is 0, the smallest number, an empty text,
 *    or a word such as `off`;
 *  - the keys of a run that was saved (ls_config_load_saved()): only newly written ones count;
 *  - a key of the file that acts in it, and no longer does by a --set: it is logged and gets its
 *    default. So are the keys of a file that has most keys, as those of runs; and, without a log,
 *    those of a search that takes, say, another optimizer.
 *
 * With model.from the keys of the model are not known before its files are read: a need of such a
 * key counts as met until then. What no config can say, such as the columns of the data, is decided
 * by the code that knows it, with ls_config_refuse_written().
 */
#ifndef LS_CONFIG_NEEDS_H
#define LS_CONFIG_NEEDS_H

#include "config/config.h"

/* What a key, or a group of keys, needs: terms (terms.h). Where several rows match a key, it needs
 * all of them. */
typedef struct ls_config_need {
    const char *key; /* "model.window", or all keys that begin so: "dpo.*" */
    const char *needs;
} ls_config_need;

extern const ls_config_need ls_config_needs[]; /* ends with {NULL, NULL} */

/* Was the key written, with a value that says something? */
bool ls_config_is_written(const ls_config *, const char *key);

/* Refuses a key that is written and can't act for a reason that is no other key: "files of
 * records". */
ls_status ls_config_refuse_written(const ls_config *, const char *key, const char *needs,
                                   ls_error *);

/* Appends what the key needs: "model.kind: mlp, cnn, vit"; nothing if it always acts. */
void ls_config_put_needs(const char *key, ls_buf *);

/* Refuses a key that is written and can't act. complete: the keys of the model are known. */
ls_status ls_config_check_needs(const ls_config *, bool complete, const char *where, ls_error *);

/* After a file was read: marks its keys that act in it. What is set later may turn them off. */
void ls_config_settle(ls_config *);

/* After that: gives those that don't act any more their defaults, so that nothing takes them for
 * settings, and appends a line on each to `notes`, which may be NULL. */
void ls_config_drop_idle(ls_config *, ls_buf *notes);

/* The keys of a saved run are not written anew. What was left out stays so. */
void ls_config_forget_written(ls_config *);

/* ---- what the program chooses where a key is left out ---- */

/* Is it neither written, nor saved, nor chosen? */
bool ls_config_leaves_out(const ls_config *, const char *key);
/* Was it left out until the program chose a value? */
bool ls_config_was_chosen(const ls_config *, const char *key);
void ls_config_note_chosen(ls_config *, const char *key);

#endif
