/* tool_fuzz.c - calls of tools and thoughts in texts of a model: a form's digit, the parameters of
 * a tool "get" and a zero byte, and a text. What is read of its beginnings only grows. */
#include "chat/thought.h"
#include "chat/tool_form.h"
#include "fuzz.h"

#define LISTED(call)                                                                               \
    "{{ tools | tojson }}{% for m in messages %}{% for c in m.tool_calls %}" call                  \
    "{% endfor %}{% endfor %}"
#define OBJECT(arguments)                                                                          \
    "{\"name\": \"{{ c.function.name }}\", \"" arguments "\": {{ c.function.arguments | tojson "   \
    "}}}"

static const char *const templates[] = {
    LISTED("<tool_call>\n" OBJECT("arguments") "\n</tool_call>"),
    LISTED(OBJECT("parameters")),
    LISTED("[TOOL_CALLS] [" OBJECT("arguments") "]"),
    LISTED("[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"),
    LISTED("<tool_call>\n<function={{ c.function.name }}>\n<parameter=x>\ny\n</parameter>\n"
           "</function>\n</tool_call>"),
    LISTED("<tool_call>{{ c.function.name }}\n<arg_key>x</arg_key>\n<arg_value>y</arg_value>\n"
           "</tool_call>"),
    LISTED("<TOOLCALL>[" OBJECT("arguments") "]</TOOLCALL>"),
    LISTED("<function={{ c.function.name }}>{{ c.function.arguments | tojson }}</function>")};
enum { NFORMS = sizeof templates / sizeof *templates, LONGEST = 400 };

static const ls_tool_form *form_of(unsigned which) {
    static const ls_tool_form *forms[NFORMS];
    const char *text = templates[which];
    ls_chat_format f = {.bos = NULL};
    if (forms[which]) return forms[which];
    FUZZ_CHECK(ls_template_parse(text, strlen(text), "x", &f.template, NULL) == LS_OK);
    forms[which] = ls_tool_template_of(&f).form;
    FUZZ_CHECK(forms[which] && (which == 0 || forms[which] != forms[which - 1]));
    ls_chat_format_free(&f);
    return forms[which];
}

/* What was read of a text's beginning. */
typedef struct seen {
    size_t ncontent, ncalls, nafter, thought, rest;
    ls_buf arguments; /* of the last call */
} seen;

static void read_calls(const ls_tool_names *names, const char *text, size_t n, bool ended,
                       seen *s) {
    ls_tool_text t;
    ls_tool_text_read(names, text, n, ended, &t);
    FUZZ_CHECK(t.ncontent >= s->ncontent && t.ncontent <= n && t.n >= s->ncalls);
    FUZZ_CHECK(!ended || t.n || t.ncontent == n);
    FUZZ_CHECK(t.after.len >= s->nafter && (t.n || !t.after.len));
    s->nafter = t.after.len;
    if (t.n > s->ncalls) s->arguments.len = 0;
    s->ncontent = t.ncontent;
    s->ncalls = t.n;
    for (size_t i = 0; i < t.n; i++) {
        const ls_buf *now = &t.calls[i].arguments;
        ls_json *j = NULL;
        bool last = i + 1 == t.n;
        /* A call that another one follows is complete; texts are then JSON. */
        if (!last && names->form->key) {
            FUZZ_CHECK(ls_json_parse(now->data, now->len, "it", &j, NULL) == LS_OK);
            FUZZ_CHECK(ls_json_is_object(j));
        }
        ls_json_free(j);
        if (!last) continue;
        FUZZ_CHECK(now->len >= s->arguments.len);
        FUZZ_CHECK(!s->arguments.len ||
                   memcmp(now->data, s->arguments.data, s->arguments.len) == 0);
        s->arguments.len = 0;
        ls_buf_append(&s->arguments, now->data, now->len);
    }
    ls_tool_text_free(&t);
}

static void read_thought(const ls_tool_form *form, bool begun, const char *text, size_t n,
                         bool ended, seen *s) {
    static const ls_thought_form f = {"<think>", "</think>", {1, 2}};
    ls_thought_text t = ls_thought_read(&f, begun, form->open, text, n, ended);
    size_t rest = t.open ? 0 : n - t.rest;
    FUZZ_CHECK(t.from <= t.to && t.to <= t.rest && t.rest <= n);
    FUZZ_CHECK(t.to - t.from >= s->thought && rest >= s->rest);
    s->thought = t.to - t.from;
    s->rest = rest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    const char *types = (const char *)data + 1, *end = nbytes ? memchr(data, 0, nbytes) : NULL;
    ls_json *parameters = NULL;
    seen s = {0};
    if (!end || end < types) return 0;
    const char *text = end + 1;
    size_t n = nbytes - (size_t)(text - (const char *)data);
    if (n > LONGEST) n = LONGEST;
    if (ls_json_parse(types, (size_t)(end - types), "it", &parameters, NULL) != LS_OK) return 0;
    const ls_tool tools[] = {{"f", NULL}, {"get", parameters}};
    const ls_tool_names names = {form_of(data[0] % NFORMS), tools, 2};
    for (size_t i = 0; i <= n + 1; i++) {
        size_t k = i < n ? i : n;
        char *exact = malloc(k + 1); /* what is read beyond it is seen */
        for (size_t at = 0; at < k; at++) exact[at] = text[at] & 127; /* characters are whole */
        exact[k] = 'X';
        char *copy = realloc(exact, k ? k : 1);
        read_calls(&names, copy, k, i > n, &s);
        read_thought(names.form, data[0] & 128, copy, k, i > n, &s);
        free(copy);
    }
    ls_buf_free(&s.arguments);
    ls_json_free(parameters);
    return 0;
}
