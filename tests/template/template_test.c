/* template_test.c - Jinja templates: what they print, what they refuse, and their limits. */
#include "prints.h"

/* Line breaks and blanks around tags. */
static void test_white_space(void **state) {
    (void)state;
    prints("a\n {% if n %}  x\n {% endif %} y\n", "a\n  x\n y");
    prints("a\n\n", "a\n");
    prints("a\r\nb\rc", "a\nb\nc");
    prints("  {%- if 1 %}\n a{% endif %}\n\n", " a");
    prints("{%+ if 1 %} a {%+ endif +%}\n b", " a \n b");
    prints("\t {% if 1 +%}\nq{% endif %}", "\nq");
    prints("x {{- 1 -}} y {{ 2 }}\nz", "x1y 2\nz");
    prints("{# c #}\n   {# d #}\nk {#- e -#}  k", "kk");
    prints("{% raw %}{{ x }} {% y %}{% endraw %}\n z", "{{ x }} {% y %} z");
    prints("\xc2\xa0{%- if 1 -%}\xe2\x80\x89\n a{% endif %}", "a");
}

static void test_values(void **state) {
    (void)state;
    prints("{{ n//2 }} {{ -n//2 }} {{ -n%3 }} {{ n/2 }} {{ f }} {{ big }} {{ small }}",
           "3 -4 2 3.5 1.5 1e+20 1.25e-07");
    prints("{{ n ~ f ~ t ~ none ~ zz }} {{ 0.1+0.2 }} {{ 100.0 }} {{ 1e16 }}",
           "71.5TrueNone 0.30000000000000004 100.0 1e+16");
    prints("{{ [none, true, 1.5, 'it\\'s', {'k': 'v'}] }}",
           "[None, True, 1.5, \"it's\", {'k': 'v'}]");
    prints("{{ d|tojson }} {{ \"\\u00e9\\n\\\"\"|tojson }}",
           "{\"a\": 1, \"b\": [1, \"x\", null, true]} \"\xc3\xa9\\n\\\"\"");
    prints("{{ {'a': [1, {}], 'b': []}|tojson(indent=2) }}",
           "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    prints("{{ 'a' 'b' }}{{ '\\x41\\q\\\\' }}{{ '}}' }}{{ {'a': {'b': 1}}.a.b }}", "abA\\q\\}}1");
    prints("{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ not 1 == 2 }} {{ 1 if 0 else 2 if 0 else 3 }}",
           "True False True 3");
    prints("{{ 1 and 0 or 'x' }} {{ 'a' in s }} {{ 'q' not in s }} {{ 'a' in d }} {{ 2 in [1] }}",
           "x True True True False");
    prints("{{ (m[0].role == 'user') != (n % 2 == 0) }} {{ m[0] == m[0] }} {{ m[0] == m[1] }}",
           "True True False");
    prints("{{ 2 - -1 }} {{ 2 * 3 ~ 4 + 1 if false else 'x' * 3 }}", "3 xxx");
}

static void test_slices(void **state) {
    (void)state;
    prints("{{ m[::-1][0].role }} {{ m[1:]|length }} {{ m[-1:]|length }} {{ m[5:]|length }}",
           "assistant 1 1 0");
    prints("{{ 'h\xc3\xa9llo'[1:3] }} {{ 'h\xc3\xa9llo'[::-1] }} {{ 'abc'[-2] }} {{ [1,2][5] }}",
           "\xc3\xa9l oll\xc3\xa9h b ");
    prints("{{ [0,1,2,3,4][-2:] }}{{ [0,1,2,3,4][3:0:-2] }}{{ [0,1,2,3,4][:-9] }}",
           "[3, 4][3, 1][]");
}

static void test_loops(void **state) {
    (void)state;
    prints(
        "{% for x in m %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ x.role }}{% endfor %}",
        "1TrueFalseuser2FalseTrueassistant");
    prints("{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
           "a=1;b=[1, 'x', None, True];");
    prints("{% for x in s.split(',') if x %}{{ x }}{{ '+' if not loop.last }}{% endfor %}",
           "a+b+c");
    prints("{% for x in zz %}a{% else %}none{% endfor %}", "none");
    prints("{% set a = 1 %}{% for i in [1, 2] %}{{ a }}{% set a = 9 %}{% endfor %}{{ a }}", "111");
    prints(
        "{% set ns = namespace(a=1) %}{% for i in range(6) %}{% if i == 4 %}{% break %}{% endif %}"
        "{% if i == 1 %}{% continue %}{% endif %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
        "6");
    /* A loop that a namespace keeps is still there behind it. */
    prints("{% set ns = namespace() %}{% for i in [5, 6] %}{% set ns.l = loop %}{% endfor %}"
           "{{ ns.l.length }}{{ ns.l.previtem }}",
           "26");
}

static void test_tags(void **state) {
    (void)state;
    prints("{% if zz %}a{% elif n == 7 %}b{% else %}c{% endif %}", "b");
    prints("{% set x %}blk{{ n }}{% endset %}{{ x }}{% set a, b = 1, 2 %}{{ a + b }}", "blk73");
    prints("{%- macro f(a, b='q') -%}<{{ a }}|{{ b }}>{%- endmacro -%}{{ f(1) }}{{ f('x', b=2) }}",
           "<1|q><x|2>");
    prints("{% generation %}a{% endgeneration %}{{ strftime_now('%d %b %Y') }}", "a26 Jul 2024");
}

static void test_filters_and_tests(void **state) {
    (void)state;
    prints("{{ m[0].content|trim }}|{{ zz|default('dd') }}|{{ ''|default('e', true) }}|{{ "
           "zz|length }}",
           "Hi 'x' {\xc3\xa9}|dd|e|0");
    prints("{{ m|selectattr('role', 'equalto', 'user')|list|length }}"
           "{{ m|map(attribute='role')|join(', ') }}{{ ['a', 'B']|map('upper')|join }}"
           "{{ [1, 2, 3]|reject('odd')|list }}{{ [3, 4]|last }}{{ '5'|int + 1 }}",
           "1user, assistantAB[2]46");
    prints("{% for k, v in {'b': 1, 'A': 2, 'c': 0, 'B': 3}|dictsort %}{{ k }}{{ v }} {% endfor %}",
           "A2 b1 B3 c0 ");
    prints(
        "{% for k, v in {'b': 1, 'A': 2, 'c': 0, 'B': 3}|dictsort(true) %}{{ k }}{% endfor %}"
        "{% for k, v in {'b': 1, 'A': 2, 'c': 0, 'B': 3}|dictsort(by='value') %}{{ k }}{% endfor %}"
        "{% for k, v in {'b': 1, 'A': 2, 'c': 0, 'B': 3}|dictsort(reverse=true) %}{{ k }}{% endfor "
        "%}{{ {}|dictsort|length }}",
        "ABbccbABcbBA0");
    prints("{% for k, v in {'a': 1, 'b': 0, 'c': 1, 'd': 0, 'e': 1}|dictsort(false, 'value', true) "
           "%}{{ k }}{{ v }} {% endfor %}",
           "a1 c1 e1 b0 d0 ");
    prints("{{ n is defined }}{{ zz is not defined }}{{ n is number }}{{ s is string }}"
           "{{ d is mapping }}{{ m is iterable }}{{ m[1].n is none }}{{ t is true }}"
           "{{ n is divisibleby 7 }}{{ t is false }}",
           "TrueTrueTrueTrueTrueTrueTrueTrueTrueFalse");
}

static void test_methods(void **state) {
    (void)state;
    prints("{{ m[1].content.split('</think>')[-1].lstrip('\\n') }}|{{ ' a  b '.split() }}|"
           "{{ 'a b c'.split(' ', 1) }}|{{ 'xxaxx'.strip('x') }}|{{ 'a-b'.replace('-', '+') }}",
           "yes|['a', 'b']|['a', 'b c']|a|a+b");
    prints("{{ ' a  b c '.split(none, 1) }}{{ ' a '.split(none, 0) }}"
           "{{ ' a  b c '.rsplit(none, 1) }}{{ ' a '.rsplit(none, 0) }}{{ ' a '.split(none, 1) "
           "}}{{ ' a '.rsplit(none, 1) }}",
           "['a', 'b c ']['a '][' a  b', 'c'][' a']['a']['a']");
    prints("{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('c', 'd')) }}{{ 'abc'.find('c') }}"
           "{{ d.get('zz') }}{{ d.get('a') }}{{ 'hello wOrld'.title() }}",
           "TrueTrue2None1Hello World");
}

/* Each message has file, line and column. */
static void test_refused(void **state) {
    (void)state;
    refuses("a\n  {{ x.y }}", "x.jinja:2:7: \"x\" is not defined, so it has no \"y\"");
    refuses("{{ 'a' + 1 }}", "x.jinja:1:8: \"+\" is not possible with text and an integer");
    refuses("{{ raise_exception('no') }}", "refuses this conversation: no");
    refuses("{% if %}", "an expression is missing");
    refuses("{{ n", "}} is missing");
    refuses("{% if 1 %}", "{% endif %} is missing");
    refuses("{% zork %}", "not supported");
    refuses("{% break %}", "no loop around");
    refuses("{% include 'x' %}", "at \"include\"");
    refuses("{{ n|zork }}", "the filter \"zork\" is not supported");
    refuses("{{ {'a': 1}|dictsort(by='x') }}", "dictsort is by \"key\" or \"value\"");
    refuses("{{ {'a': 1, 'b': 'x'}|dictsort(by='value') }}", "x.jinja:1");
    refuses("{{ 'text'|dictsort }}", "has no keys");
    refuses("{{ n is zork }}", "the test \"zork\" is not supported");
    refuses("{{ m.append(1) }}", "the function or method \"append\" does not exist");
    refuses("{{ 1 / 0 }}", "division by zero");
    refuses("{{ zz|tojson }}", "can't be written as JSON");
    refuses("{% set n.x = 1 %}", "\"n\" is no namespace");
    refuses("{{ 9223372036854775807 + 1 }}", "exceeds 64 bits");
    refuses("{# a", "this comment has no end");
    refuses("{{ 'a }}", "this string has no end");
    refuses("{% raw %}", "{% endraw %} is missing");
    refuses("{{ '\\ud800' }}", "no character");
    refuses("{% set a, b = [1] %}", "2 variables can't take 1 values");
    refuses("\xff", "not UTF-8");
}

/* A template can't use up the machine. */
static void test_limits(void **state) {
    (void)state;
    refuses("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
            "the template ");
    refuses("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
            "{% endfor %}",
            "memory");
    refuses("{% set y = 'x' * 65536 %}{% for i in range(2000) %}{{ y }}{% endfor %}",
            "exceeds 64 MB");
    refuses("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep");
    refuses("{% set ns = namespace(x=1) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}"
            "{% endfor %}{{ ns.x }}",
            "deep");
    ls_buf deep = {0};
    for (int i = 0; i < 100000; i++) ls_buf_append(&deep, i < 50000 ? "(" : ")", 1);
    ls_buf text = {0};
    ls_buf_printf(&text, "{{ %s }}", deep.data);
    refuses(text.data, "nested too deeply");
    text.len = 0;
    ls_buf_printf(&text, "{{ 1");
    for (int i = 0; i < 1000; i++) ls_buf_append(&text, "+1", 2);
    ls_buf_append(&text, "}}", 2);
    refuses(text.data, "deep");
    ls_buf_free(&deep);
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_white_space), cmocka_unit_test(test_values),
        cmocka_unit_test(test_slices),      cmocka_unit_test(test_loops),
        cmocka_unit_test(test_tags),        cmocka_unit_test(test_filters_and_tests),
        cmocka_unit_test(test_methods),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
