/* scope_test.c - variables of loops, macros and blocks, and what is decided before a template
 * runs. */
#include "prints.h"

/* A macro sees the variables around it; names are those that Jinja finds in the text. */
static void test_scopes(void **state) {
    (void)state;
    prints("{% for x in [1, 2] %}{% macro f() %}<{{ x }}{{ loop.index0 }}>{% endmacro %}{{ f() "
           "}}{% endfor %}",
           "<10><21>");
    prints("{% macro f(a, b=a) %}{{ a }}{{ b }}{{ y }}{% endmacro %}{% set y = 'Y' %}{{ f(1) }}{{ "
           "f(b=2, a=3) }}{{ f(*[4, 5]) }}{{ f(**{'a': 6}) }}",
           "11Y32Y45Y66Y");
    prints("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, k=3) }}{{ f.name }}",
           "(1, 2){'k': 3}f");
    prints("{% macro f(x) %}[{{ caller(x) }}]{% endmacro %}{% call(y) f(1) %}{{ y + 1 }}{{ n }}{% "
           "endcall %}",
           "[27]");
    prints(
        "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}",
        "FalseTrue");
    prints("{% for i in [1, 2] %}{{ n }}{% endfor %}{% set n = 3 %}{{ n }}", "3");
    prints("{% for i in [1] %}{{ n }}{% endfor %}{% if false %}{% set n = 3 %}{% endif %}{{ n }}",
           "77");
    prints("{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}{% filter "
           "upper|trim %} a{{ n }} {% endfilter %}",
           "211A7");
    prints("{% set x | trim | upper %} a{% set z = 1 %} {% endset %}{{ x }}{{ z is defined }}{% "
           "generation %}{% set q = 1 %}g{% endgeneration %}{{ q is defined }}",
           "AFalsegFalse");
    prints("{% for x in [[1, [2, 3]]] %}{% for a, (b, c) in [x] %}{{ a + b + c }}{{ loop.depth "
           "}}{% endfor %}{% endfor %}",
           "61");
    prints("{% for x in [[1, [2, [3]]], [4]] recursive %}{{ x[0] }}d{{ loop.depth }}{% if x[1] "
           "%}({{ loop([x[1]]) }}){% endif %}{% endfor %}",
           "1d1(2d2(3d3))4d1");
    prints("{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}{% "
           "for x in [1, 2, 3] if x != 2 %}{{ x }}{{ loop.length }}{% else %}no{% endfor %}",
           "TrueaFalsebTruea1232");
    prints("{% if n is defined and (n, 1) %}y{% endif %}{% if zz is defined: %}{% else %}n{% endif "
           "%}{{ zz is callable }}{{ d['items'] is defined }}{{ d.update is defined }}",
           "ynTrueTrueFalse");
}

/* Which names are refused is decided before a template runs, as in Jinja. */
static void test_refused(void **state) {
    (void)state;
    refuses("{% for x in [] %}{{ x|zork }}{% endfor %}", "the filter \"zork\" is not supported");
    prints("{% if zz %}{{ n|zork }}{% endif %}{{ 1 if true else n is zork }}", "1");
    refuses("{% if zz %}{% for x in [] %}{{ x is zork }}{% endfor %}{% endif %}",
            "the test \"zork\"");
    refuses("{% for x in [1] %}{% set loop = 2 %}{% endfor %}", "\"loop\" can't be set in a loop");
    refuses("{% set true = 1 %}", "this name can't be set");
    refuses("{% set a, = 1 %}", "a variable's name is missing");
    refuses("{% macro f(a, a) %}{% endmacro %}", "a parameter has this name");
    refuses("{% macro f(a=1, b) %}{% endmacro %}", "without a default");
    refuses("{% macro f(a) %}{% endmacro %}{{ f(1, b=2) }}", "has no argument \"b\"");
    refuses("{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "gets its argument \"a\" twice");
    refuses("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "takes 1 arguments, not 2");
    refuses("{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}", "no argument \"caller\"");
    refuses("{% call 1 %}{% endcall %}", "a call is missing");
    refuses("{{ dict(a=1, a=2) }}", "given twice");
    refuses("{{ dict(a=1, 2) }}", "can't stand behind the one before it");
    refuses("{{ dict(**5) }}", "behind ** stands a dict");
    refuses("{{ dict(*range(300)) }}", "at most 256 arguments");
    refuses("{% for x in [1] %}{{ loop(1) }}{% endfor %}", "only a loop that is recursive");
    refuses("{% for x in [1] %}{% set y %}{% break %}{% endset %}{% endfor %}", "no loop around");
    refuses("{% if 1 if 2 else 3 %}{% endif %}", "%} is missing");
    refuses("{{ 1 if n is odd if t else 2 }}", "put it in parentheses");
}

/* Neither many scopes nor many names take long. */
static void test_many_names(void **state) {
    (void)state;
    ls_buf text = {0};
    for (int i = 0; i < 13000; i++) ls_buf_printf(&text, "{%% set a%d = a%d %%}", i, i / 2);
    refuses(text.data, "steps");
    text.len = 0;
    for (int i = 0; i < 1200; i++) ls_buf_printf(&text, "{%% if n %%}{%% elif n %%}");
    refuses(text.data, "nested too deeply");
    text.len = 0;
    for (int i = 0; i < 2000; i++) ls_buf_printf(&text, "%s", i ? ".a" : "{{ n");
    ls_buf_printf(&text, " }}");
    refuses(text.data, "nested too deeply");
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
