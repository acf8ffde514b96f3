/* prints.h - what a template prints with the variables below, or why it is refused. What is
 * expected was printed by Jinja 3.1 in the environment of apply_chat_template(). */
#ifndef LS_TEST_TEMPLATE_PRINTS_H
#define LS_TEST_TEMPLATE_PRINTS_H

#include "template/template.h"

#include "test.h"

static const char GLOBALS[] =
    "{\"m\": [{\"role\": \"user\", \"content\": \" Hi 'x' {\\u00e9} \"},"
    "         {\"role\": \"assistant\", \"content\": \"ok</think>\\n\\nyes\", \"n\": null}],"
    " \"n\": 7, \"f\": 1.5, \"big\": 1e20, \"small\": 1.25e-7, \"t\": true,"
    " \"d\": {\"a\": 1, \"b\": [1, \"x\", null, true]}, \"s\": \"a,b,,c\"}";

static const struct tm DATE = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26};

static inline ls_status render(const char *text, ls_buf *out, ls_error *e) {
    ls_template *t = NULL;
    ls_json *globals = NULL;
    assert_ls_ok(ls_json_parse(GLOBALS, sizeof GLOBALS - 1, "globals", &globals, e), *e);
    ls_status s = ls_template_parse(text, strlen(text), "x.jinja", &t, e);
    if (s == LS_OK) s = ls_template_render(t, globals, &DATE, out, e);
    ls_template_free(t);
    ls_json_free(globals);
    return s;
}

static inline void prints(const char *text, const char *want) {
    ls_buf out = {0};
    ls_error e = {0};
    assert_ls_ok(render(text, &out, &e), e);
    assert_string_equal(out.data ? out.data : "", want);
    ls_buf_free(&out);
}

static inline void refuses(const char *text, const char *says) {
    ls_buf out = {0};
    ls_error e;
    assert_ls_fails(render(text, &out, &e), LS_EINVAL, says, e);
    ls_buf_free(&out);
}

#endif
