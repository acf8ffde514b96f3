/* answer_form.c - see answer_form.h. */
#include "serve/answer_form.h"

#include <string.h>

/* What is asked for, at one place of the body. */
typedef struct wanted_form {
    const char *field;
    const ls_json *regex; /* NULL: none */
} wanted_form;

typedef struct form_reader {
    const ls_json *body;
    wanted_form wanted;
    ls_error *e;
} form_reader;

static const ls_json *given(const ls_json *object, const char *field) {
    const ls_json *j = ls_json_get(object, field);
    return j && !ls_json_is_null(j) ? j : NULL;
}

/* Only one field may say it. */
static ls_status want(form_reader *r, wanted_form w) {
    if (r->wanted.field)
        return ls_fail(r->e, LS_EINVAL, "%s: %s already says which texts are wanted", w.field,
                       r->wanted.field);
    r->wanted = w;
    return LS_OK;
}

static ls_status read_response_format(form_reader *r) {
    const ls_json *j = given(r->body, "response_format");
    const char *type = ls_json_text(ls_json_get(j, "type"));
    if (!j || (type && strcmp(type, "text") == 0)) return LS_OK;
    r->wanted.field = "response_format";
    return ls_fail(r->e, LS_EINVAL, "response_format: only {\"type\": \"text\"} is supported");
}

static ls_status read_structured(form_reader *r) {
    static const char field[] = "structured_outputs";
    const ls_json *j = given(r->body, field), *value = NULL;
    const char *key = NULL;
    void *it = NULL;
    if (!j) return LS_OK;
    if (!ls_json_is_object(j)) {
        r->wanted.field = field;
        return ls_fail(r->e, LS_EINVAL, "%s: an object is expected", field);
    }
    while ((it = ls_json_next(j, it, &key, &value))) {
        if (ls_json_is_null(value)) continue;
        if (strcmp(key, "regex") == 0) {
            LS_TRY(want(r, (wanted_form){.field = field, .regex = value}));
            continue;
        }
        r->wanted.field = field;
        return ls_fail(r->e, LS_EINVAL, "%s: '%.40s' is not supported", field, key);
    }
    return LS_OK;
}

static ls_status read_guided(form_reader *r) {
    const ls_json *regex = given(r->body, "guided_regex");
    return regex ? want(r, (wanted_form){.field = "guided_regex", .regex = regex}) : LS_OK;
}

static ls_status make_grammar(const form_reader *r, const ls_byte_set *bytes, ls_grammar **g_p) {
    const char *regex = ls_json_text(r->wanted.regex);
    ls_error why = {0};
    if (!regex)
        return ls_fail(r->e, LS_EINVAL, "%s: a regular expression is expected", r->wanted.field);
    ls_status s = ls_grammar_of_regex(regex, strlen(regex), bytes, g_p, &why);
    return s == LS_OK ? s : ls_fail(r->e, s, "%s: %s", r->wanted.field, why.msg);
}

static ls_status find_constraint(const form_reader *r, ls_constraint_store *store,
                                 ls_constraint **c_p) {
    ls_grammar *g = NULL;
    ls_buf key = {0};
    ls_json_write(r->wanted.regex, 0, &key);
    *c_p = ls_constraint_store_find(store, key.data, key.len);
    ls_status s = *c_p ? LS_OK : make_grammar(r, &ls_constraint_store_vocabulary(store)->bytes, &g);
    if (s == LS_OK && !*c_p) *c_p = ls_constraint_store_add(store, key.data, key.len, g);
    ls_buf_free(&key);
    return s;
}

ls_status ls_answer_form_read(ls_constraint_store *store, const ls_json *body, ls_constraint **c_p,
                              const char **field_p, ls_error *e) {
    form_reader r = {.body = body, .e = e};
    ls_status s = read_response_format(&r);
    if (s == LS_OK) s = read_structured(&r);
    if (s == LS_OK) s = read_guided(&r);
    if (s == LS_OK && r.wanted.field) s = find_constraint(&r, store, c_p);
    *field_p = r.wanted.field;
    return s;
}
