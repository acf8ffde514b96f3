/* answer_form.c - see answer_form.h. */
#include "serve/answer_form.h"

#include <string.h>

#include "grammar/regex.h"
#include "grammar/schema.h"
#include "serve/response_form.h"

typedef enum form_kind { FORM_REGEX, FORM_SCHEMA, FORM_OBJECT, FORM_CHOICE, FORM_CALLS } form_kind;

/* What is asked for, at one place of the body. */
typedef struct wanted_form {
    const char *field; /* NULL: nothing */
    form_kind kind;
    const ls_json *value;
} wanted_form;

typedef struct form_reader {
    const ls_json *body;
    const ls_tools *tools;
    wanted_form wanted;
    ls_error *e;
} form_reader;

/* Only one field may say it. */
static ls_status want(form_reader *r, wanted_form w) {
    if (r->wanted.field)
        return ls_fail(r->e, LS_EINVAL, "%s: %s already says which texts are wanted", w.field,
                       r->wanted.field);
    r->wanted = w;
    return LS_OK;
}

static ls_status read_response_format(form_reader *r) {
    const ls_json *of_response = ls_json_given(r->body, LS_RESPONSE_FORMAT), *schema = NULL;
    const char *field = of_response ? LS_RESPONSE_FORMAT : "response_format";
    const ls_json *j = ls_json_given(r->body, field);
    const char *type = ls_json_text(ls_json_get(j, "type"));
    if (!j || (type && strcmp(type, "text") == 0)) return LS_OK;
    r->wanted.field = field;
    if (type && strcmp(type, "json_object") == 0) {
        r->wanted.value = ls_json_given(j, "schema"); /* llama.cpp's and others' */
        r->wanted.kind = r->wanted.value ? FORM_SCHEMA : FORM_OBJECT;
        return LS_OK;
    }
    if (!type || strcmp(type, "json_schema") != 0)
        return ls_fail(r->e, LS_EINVAL, "%s: type: text, json_object or json_schema is expected",
                       field);
    schema = ls_json_get(of_response ? j : ls_json_get(j, "json_schema"), "schema");
    if (!schema)
        return ls_fail(r->e, LS_EINVAL, "%s: json_schema: an object with a schema is expected",
                       field);
    r->wanted.kind = FORM_SCHEMA;
    r->wanted.value = schema;
    return LS_OK;
}

static ls_status read_structured_member(form_reader *r, const char *key, const ls_json *value) {
    static const char field[] = "structured_outputs";
    static const char *const keys[] = {[FORM_REGEX] = "regex",
                                       [FORM_SCHEMA] = "json",
                                       [FORM_OBJECT] = "json_object",
                                       [FORM_CHOICE] = "choice"};
    if (ls_json_is_null(value)) return LS_OK;
    for (int kind = FORM_REGEX; kind <= FORM_CHOICE; kind++) {
        if (strcmp(key, keys[kind]) != 0) continue;
        if (kind == FORM_OBJECT && !ls_json_is_true(value)) return LS_OK;
        return want(r, (wanted_form){field, (form_kind)kind, value});
    }
    r->wanted.field = field;
    return ls_fail(r->e, LS_EINVAL, "%s: '%.40s' is not supported", field, key);
}

static ls_status read_structured(form_reader *r) {
    const ls_json *j = ls_json_given(r->body, "structured_outputs"), *value = NULL;
    const char *key = NULL;
    void *it = NULL;
    if (!j) return LS_OK;
    if (!ls_json_is_object(j)) {
        r->wanted.field = "structured_outputs";
        return ls_fail(r->e, LS_EINVAL, "structured_outputs: an object is expected");
    }
    while ((it = ls_json_next(j, it, &key, &value))) LS_TRY(read_structured_member(r, key, value));
    return LS_OK;
}

static ls_status read_guided(form_reader *r) {
    static const char *const fields[] = {[FORM_REGEX] = "guided_regex",
                                         [FORM_SCHEMA] = "guided_json",
                                         [FORM_OBJECT] = NULL,
                                         [FORM_CHOICE] = "guided_choice"};
    for (int kind = FORM_REGEX; kind <= FORM_CHOICE; kind++) {
        const ls_json *value = fields[kind] ? ls_json_given(r->body, fields[kind]) : NULL;
        if (value) LS_TRY(want(r, (wanted_form){fields[kind], (form_kind)kind, value}));
    }
    const ls_json *schema = ls_json_given(r->body, "json_schema"); /* llama.cpp's */
    return schema ? want(r, (wanted_form){"json_schema", FORM_SCHEMA, schema}) : LS_OK;
}

static ls_status read_tools(form_reader *r) {
    if (!r->tools->required) return LS_OK;
    return want(r, (wanted_form){"tool_choice", FORM_CALLS, NULL});
}

/* ---- grammars ---- */

static ls_status make_of_schema(const ls_json *schema, const ls_byte_set *bytes, ls_grammar **g_p,
                                ls_error *e) {
    const char *text = ls_json_text(schema);
    ls_json *j = NULL;
    if (!text) return ls_grammar_of_schema(schema, bytes, g_p, e);
    LS_TRY(ls_json_parse(text, strlen(text), "the schema", &j, e));
    ls_status s = ls_grammar_of_schema(j, bytes, g_p, e);
    ls_json_free(j);
    return s;
}

static ls_status make_of_choice(const ls_json *list, const ls_byte_set *bytes, ls_grammar **g_p,
                                ls_error *e) {
    ls_expressions pool = {0};
    const ls_expression *x = NULL;
    bool right = ls_json_is_array(list) && ls_json_count(list) > 0;
    for (size_t i = 0; right && i < ls_json_count(list); i++) {
        const char *text = ls_json_text(ls_json_at(list, i));
        right = text != NULL;
        if (right) x = ls_expression_or(&pool, x, ls_expression_text(&pool, text));
    }
    ls_status s = right ? ls_grammar_make(&x, 1, bytes, g_p, e)
                        : ls_fail(e, LS_EINVAL, "a list of texts is expected");
    ls_expressions_free(&pool);
    return s;
}

static ls_status make_grammar(const form_reader *r, const ls_token_tree *v, ls_grammar **g_p) {
    const ls_byte_set *bytes = &v->bytes;
    const ls_json *value = r->wanted.value;
    const char *regex = ls_json_text(value);
    ls_error why = {0};
    ls_status s = LS_OK;
    switch (r->wanted.kind) {
    case FORM_REGEX:
        s = regex ? ls_grammar_of_regex(regex, strlen(regex), bytes, g_p, &why)
                  : ls_fail(&why, LS_EINVAL, "a regular expression is expected");
        break;
    case FORM_SCHEMA: s = make_of_schema(value, bytes, g_p, &why); break;
    case FORM_OBJECT: s = ls_grammar_of_object(bytes, g_p, &why); break;
    case FORM_CALLS: s = ls_tools_grammar(r->tools, v, g_p, &why); break;
    case FORM_CHOICE: s = make_of_choice(value, bytes, g_p, &why); break;
    }
    return s == LS_OK ? s : ls_fail(r->e, s, "%s: %s", r->wanted.field, why.msg);
}

static ls_status find_constraint(const form_reader *r, ls_constraint_store *store,
                                 ls_constraint **c_p) {
    ls_grammar *g = NULL;
    ls_buf key = {0};
    ls_buf_printf(&key, "%d ", (int)r->wanted.kind);
    if (r->wanted.value) ls_json_write_exact(r->wanted.value, &key);
    if (r->wanted.kind == FORM_CALLS) ls_tools_key(r->tools, &key);
    *c_p = ls_constraint_store_find(store, key.data, key.len);
    ls_status s = *c_p ? LS_OK : make_grammar(r, ls_constraint_store_tokens(store), &g);
    if (s == LS_OK && !*c_p) *c_p = ls_constraint_store_add(store, key.data, key.len, g);
    ls_buf_free(&key);
    return s;
}

ls_status ls_answer_form_read(ls_constraint_store *store, const ls_json *body,
                              const ls_tools *tools, ls_constraint **c_p, const char **field_p,
                              ls_error *e) {
    form_reader r = {.body = body, .tools = tools, .e = e};
    ls_status s = read_response_format(&r);
    if (s == LS_OK) s = read_structured(&r);
    if (s == LS_OK) s = read_guided(&r);
    if (s == LS_OK) s = read_tools(&r);
    if (s == LS_OK && r.wanted.field) s = find_constraint(&r, store, c_p);
    *field_p = r.wanted.field;
    return s;
}
