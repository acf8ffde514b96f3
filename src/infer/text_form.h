/* text_form.h - the form that a generated text must have: JSON that a schema allows, any JSON
 * object, or a text that a regular expression matches. */
#ifndef LS_INFER_TEXT_FORM_H
#define LS_INFER_TEXT_FORM_H

#include "base/json.h"
#include "grammar/constraint.h"
#include "infer/generate.h"

/* What is asked for; at most one of them. */
typedef struct ls_text_form_options {
    const char *schema_file, *regex; /* NULL: none */
    bool object;
} ls_text_form_options;

typedef struct ls_text_form {
    ls_json *schema;   /* } NULL: it is none of this kind */
    const char *regex; /* } the options' */
    bool object;
    ls_token_tree *tree;
    ls_constraint
        *constraint; /* of a model's tokens; NULL: not yet prepared, or any text is allowed */
} ls_text_form;

/* False: any text is allowed, as with NULL. */
bool ls_text_form_is_given(const ls_text_form *);

/* Reads the file. LS_EINVAL: it is damaged, or two forms are asked for. The form must be freed in
 * any case. */
ls_status ls_text_form_read(const ls_text_form_options *, ls_text_form *f_p, ls_error *);
/* Makes the constraint for this model, which must outlive it. LS_EINVAL: the form can't be
 * enforced. */
ls_status ls_text_form_prepare(ls_text_form *, const ls_trained *, ls_error *);
void ls_text_form_free(ls_text_form *);

/* Checks a text that another program has written. LS_EINVAL: it is not JSON, or does not match. */
ls_status ls_text_form_check(const ls_text_form *, const char *text, size_t n, ls_error *);

#endif
