/* answer_form.h - which texts a request wants: JSON, by a schema or not, or what a regular
 * expression matches.
 *
 *     {"response_format": {"type": "json_object"}}                                   OpenAI's
 *     {"response_format": {"type": "json_schema", "json_schema": {"schema": {...}}}}
 *     {"text": {"format": {"type": "json_schema", "schema": {...}}}}                 of responses
 *     {"structured_outputs": {"regex", "json", "json_object" or "choice": ...}}      vLLM's
 *     {"guided_regex": "..."}, {"guided_json": {...}}                                its older ones
 */
#ifndef LS_SERVE_ANSWER_FORM_H
#define LS_SERVE_ANSWER_FORM_H

#include "base/json.h"
#include "grammar/constraint_store.h"
#include "serve/tools.h"

/* The constraint that body's fields or required tools ask for, with one more user in the store;
 * NULL: none. LS_EINVAL: a field, *field_p, is damaged or not supported. */
ls_status ls_answer_form_read(ls_constraint_store *, const ls_json *body, const ls_tools *,
                              ls_constraint **c_p, const char **field_p, ls_error *);

#endif
