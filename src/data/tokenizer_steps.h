/* tokenizer_steps.h - the parts of a tokenizer.json that are not its vocabulary: normalizer,
 * pre_tokenizer, post_processor and decoder. For tokenizer_json.c. */
#ifndef LS_DATA_TOKENIZER_STEPS_H
#define LS_DATA_TOKENIZER_STEPS_H

#include "base/json.h"
#include "data/bpe.h"

enum { LS_SHOWN = 64 }; /* bytes of a value in a message, and a 0 */

/* The value as JSON; a long one is cut between characters. NULL is shown as null. */
const char *ls_json_show(const ls_json *, char shown[LS_SHOWN]);

/* LS_EINVAL unless the value of a key is one of two texts of JSON. `path` names the object in
 * messages, with a full stop at its end, or is empty. A missing key is like null. */
typedef struct ls_json_place {
    const char *what, *path;
    const ls_json *object;
} ls_json_place;
ls_status ls_json_expect(const ls_json_place *, const char *key, const char *value,
                         const char *or_value, ls_error *);
/* LS_EINVAL if the object has a key that is not in the list, which ends with NULL. */
ls_status ls_json_expect_keys(const ls_json_place *, const char *const *keys, ls_error *);

/* Reads normalizer, pre_tokenizer and decoder: *t_p is a tokenizer without tokens. */
ls_status ls_tokenizer_read_steps(const ls_json *root, const char *what, ls_tokenizer **t_p,
                                  ls_error *);
/* Reads post_processor; the tokenizer has its tokens. */
ls_status ls_tokenizer_read_ends(const ls_json *root, const char *what, ls_tokenizer *, ls_error *);

#endif
