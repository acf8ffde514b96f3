/* peft_pattern.h - rank_pattern and alpha_pattern of peft's adapter_config.json: regular
 * expressions of the ends of modules' names, and a number each.
 */
#ifndef LS_STORAGE_PEFT_PATTERN_H
#define LS_STORAGE_PEFT_PATTERN_H

#include "base/json.h"

typedef struct ls_peft_pattern ls_peft_pattern;

/* object: NULL or null is one without entries. whole: the numbers are ranks, else any above 0.
 * LS_EINVAL: it is no such object, or has an expression that grammar/regex.h does not read; `where`
 * is the file and the key. */
ls_status ls_peft_pattern_read(const ls_json *object, bool whole, const char *where,
                               ls_peft_pattern **p_p, ls_error *);
void ls_peft_pattern_free(ls_peft_pattern *); /* NULL is allowed */

/* The number of the first entry that matches all of the module's name, or what ends it at a dot;
 * else `usual`. As peft's get_pattern_key(). */
double ls_peft_pattern_number(ls_peft_pattern *, const char *module, double usual);
/* False: the last answers were not found out, since the expressions are too large. */
bool ls_peft_pattern_is_found(const ls_peft_pattern *);

#endif
