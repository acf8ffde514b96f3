/* answer_form.h - which texts a request wants: a regular expression.
 *
 *     {"guided_regex": "..."}, {"structured_outputs": {"regex": "..."}}     vLLM's fields
 */
#ifndef LS_SERVE_ANSWER_FORM_H
#define LS_SERVE_ANSWER_FORM_H

#include "base/json.h"
#include "grammar/constraint_store.h"

/* The constraint that body's fields ask for, in use once more; NULL: none. LS_EINVAL: it is damaged or
 * not supported; *field_p is the field. */
ls_status ls_answer_form_read(ls_constraint_store *, const ls_json *body, ls_constraint **c_p,
                              const char **field_p, ls_error *);

#endif
