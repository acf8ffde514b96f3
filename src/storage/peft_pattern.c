/* peft_pattern.c - see peft_pattern.h. */
#include "storage/peft_pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/nfa.h"
#include "grammar/regex.h"

typedef struct entry {
    ls_nfa_matcher *matcher;
    double number;
} entry;

struct ls_peft_pattern {
    entry *list;
    size_t n;
};

/* Are there alternatives outside of brackets? */
static bool has_alternatives(const char *text) {
    int depth = 0;
    bool in_set = false;
    for (const char *c = text; *c; c++) {
        if (*c == '\\' && c[1])
            c++;
        else if (in_set)
            in_set = *c != ']';
        else if (*c == '[')
            in_set = true;
        else if (*c == '|' && !depth)
            return true;
        else
            depth += (*c == '(') - (*c == ')');
    }
    return false;
}

/* The name as a whole, or what follows a dot; ^ means its beginning. */
static ls_status compile(const char *key, const char *where, ls_nfa_matcher **m_p, ls_error *e) {
    ls_expressions pool = {0};
    const ls_expression *x = NULL;
    ls_error why = {0};
    bool is_first = *key == '^' && !has_alternatives(key);
    char *text = ls_format(is_first ? "(%s)" : "(.*\\.)?(%s)", key + is_first);
    ls_status s = ls_regex_read(&pool, text, strlen(text), &(ls_regex_options){0}, &x, &why);
    if (s == LS_OK)
        *m_p = ls_nfa_matcher_new(x);
    else
        s = ls_fail(e, s, "%s: '%.60s': %.120s", where, key, why.msg);
    free(text);
    ls_expressions_free(&pool);
    return s;
}

static bool take_number(const ls_json *value, bool whole, double *number_p) {
    int64_t rank = 0;
    bool is = whole ? ls_json_integer(value, &rank) : ls_json_number(value, number_p);
    if (whole) *number_p = (double)rank;
    return is && *number_p > 0 && *number_p <= (whole ? 65536 : HUGE_VAL);
}

static ls_status add(ls_peft_pattern *p, const char *key, const ls_json *value, bool whole,
                     const char *where, ls_error *e) {
    entry one = {0};
    if (!take_number(value, whole, &one.number))
        return ls_fail(e, LS_EINVAL, "%s: that of '%.60s' is not a %s above 0", where, key,
                       whole ? "rank, a whole number" : "number");
    LS_TRY(compile(key, where, &one.matcher, e));
    p->list = ls_grow(p->list, p->n, sizeof *p->list);
    p->list[p->n++] = one;
    return LS_OK;
}

ls_status ls_peft_pattern_read(const ls_json *object, bool whole, const char *where,
                               ls_peft_pattern **p_p, ls_error *e) {
    const char *key = NULL;
    const ls_json *value = NULL;
    if (object && !ls_json_is_null(object) && !ls_json_is_object(object))
        return ls_fail(e, LS_EINVAL, "%s: is not an object of names and numbers", where);
    ls_peft_pattern *p = LS_NEW(ls_peft_pattern);
    ls_status s = LS_OK;
    bool some = object && ls_json_is_object(object);
    for (void *it = NULL; some && s == LS_OK && (it = ls_json_next(object, it, &key, &value));)
        s = add(p, key, value, whole, where, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_peft_pattern_free(p);
    return s;
}

void ls_peft_pattern_free(ls_peft_pattern *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) ls_nfa_matcher_free(p->list[i].matcher);
    free(p->list);
    free(p);
}

double ls_peft_pattern_number(ls_peft_pattern *p, const char *module, double usual) {
    for (size_t i = 0; i < p->n; i++)
        if (ls_nfa_matches(p->list[i].matcher, module, strlen(module))) return p->list[i].number;
    return usual;
}

bool ls_peft_pattern_is_found(const ls_peft_pattern *p) {
    for (size_t i = 0; i < p->n; i++)
        if (ls_nfa_matcher_full(p->list[i].matcher)) return false;
    return true;
}
