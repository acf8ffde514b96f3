/* text_form.c - see text_form.h. */
#include "infer/text_form.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "grammar/schema.h"
#include "grammar/walker.h"

enum { MOST_SCHEMA = 1 << 20 };

bool ls_text_form_is_given(const ls_text_form *f) {
    return f && (f->regex || f->object || f->schema);
}

ls_status ls_text_form_read(const ls_text_form_options *o, ls_text_form *f_p, ls_error *e) {
    *f_p = (ls_text_form){.regex = o->regex, .object = o->object};
    if ((o->schema_file != NULL) + (o->regex != NULL) + o->object > 1)
        return ls_fail(e, LS_EINVAL,
                       "give one of --json-schema, --json-object and --regex, not several");
    if (o->regex) return ls_utf8_check(o->regex, strlen(o->regex), "--regex", e);
    if (!o->schema_file) return LS_OK;
    LS_TRY(ls_json_read(o->schema_file, MOST_SCHEMA, &f_p->schema, e));
    if (f_p->schema) return LS_OK;
    return ls_fail(e, LS_EIO, "%s: does not exist", o->schema_file);
}

static ls_status make_grammar(const ls_text_form *f, const ls_byte_set *bytes, ls_grammar **g_p,
                              ls_error *e) {
    ls_error why = {0};
    ls_status s = f->regex    ? ls_grammar_of_regex(f->regex, strlen(f->regex), bytes, g_p, &why)
                  : f->object ? ls_grammar_of_object(bytes, g_p, &why)
                              : ls_grammar_of_schema(f->schema, bytes, g_p, &why);
    if (s == LS_OK) return LS_OK;
    return ls_fail(e, s, "%s: %s",
                   f->regex    ? "--regex"
                   : f->object ? "--json-object"
                               : "--json-schema",
                   why.msg);
}

ls_status ls_text_form_prepare(ls_text_form *f, const ls_trained *t, ls_error *e) {
    ls_grammar *g = NULL;
    if (!ls_text_form_is_given(f)) return LS_OK;
    LS_TRY(ls_trained_needs_text(t, "a text's form", e));
    f->tree = ls_token_tree_new(t->tokenizer, (uint32_t)ls_trained_ntokens(t));
    LS_TRY(make_grammar(f, &f->tree->bytes, &g, e));
    f->constraint = ls_constraint_new(f->tree, g);
    return LS_OK;
}

void ls_text_form_free(ls_text_form *f) {
    ls_constraint_free(f->constraint);
    ls_token_tree_free(f->tree);
    ls_json_free(f->schema);
    *f = (ls_text_form){0};
}

/* ---- texts of others ---- */

static bool is_matched(const ls_grammar *g, const char *text, size_t n) {
    ls_walker *w = ls_walker_new(g);
    uint32_t state = LS_WALKER_START;
    for (size_t i = 0; i < n; i++) state = ls_walker_step(w, state, (uint8_t)text[i]);
    bool matched = ls_walker_is_end(w, state);
    ls_walker_free(w);
    return matched;
}

ls_status ls_text_form_check(const ls_text_form *f, const char *text, size_t n, ls_error *e) {
    ls_json *j = NULL;
    ls_grammar *g = NULL;
    if (!ls_text_form_is_given(f)) return LS_OK;
    if (f->regex) {
        LS_TRY(make_grammar(f, NULL, &g, e));
        bool matched = is_matched(g, text, n);
        ls_grammar_free(g);
        return matched ? LS_OK : ls_fail(e, LS_EINVAL, "--regex does not match it");
    }
    LS_TRY(ls_json_parse_value(text, n, "the answer", &j, e));
    bool right = !f->object || ls_json_is_object(j);
    ls_json_free(j);
    return right ? LS_OK : ls_fail(e, LS_EINVAL, "the answer is no JSON object");
}
