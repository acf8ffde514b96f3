/* published_keys.h - the keys of a config.json, of which each is read, or known to change nothing,
 * or refused by its name.
 */
#ifndef LS_WEIGHTS_PUBLISHED_KEYS_H
#define LS_WEIGHTS_PUBLISHED_KEYS_H

#include "base/error.h"
#include "base/json.h"

enum { LS_PUBLISHED_KEYS = 96 };

typedef struct ls_published_keys {
    const ls_json *o; /* an object */
    const char *what; /* begins messages */
    ls_error *e;
    const char *seen[LS_PUBLISHED_KEYS]; /* keys that were asked for */
    int nseen;
} ls_published_keys;

/* The value; NULL: it is missing or null. */
const ls_json *ls_published_take(ls_published_keys *, const char *key);
ls_status ls_published_missing(const ls_published_keys *, const char *key);
/* LS_EINVAL: the key has another value than `want` says. */
ls_status ls_published_fail(const ls_published_keys *, const char *key, const char *want);

ls_status ls_published_size(ls_published_keys *, const char *key, int64_t *value_p);
ls_status ls_published_number(ls_published_keys *, const char *key, double *value_p);
/* *value_p stays if the key is missing or null. */
ls_status ls_published_size_if(ls_published_keys *, const char *key, int64_t *value_p);
ls_status ls_published_bool_if(ls_published_keys *, const char *key, bool *value_p);

/* Values that must be as given, or missing. */
ls_status ls_published_expect_text(ls_published_keys *, const char *key, const char *want);
ls_status ls_published_expect_bool(ls_published_keys *, const char *key, bool want);
ls_status ls_published_expect_one(ls_published_keys *, const char *key);

/* LS_EINVAL: the object has a key that was not taken, and that may change something. */
ls_status ls_published_refuse_unknown(const ls_published_keys *, const char *what_it_may_change);

#endif
