/* filters_test.c - values, filters, methods and formats. */
#include "prints.h"

/* A tuple is no list; what many filters return is an iterator. */
static void test_tuples(void **state) {
    (void)state;
    prints("{{ (1, 'a') }}{{ (1,) }}{{ () }}{{ 1, 2 }}{{ (1, 2) == [1, 2] }}{{ d.items()|list }}",
           "(1, 'a')(1,)()(1, 2)False[('a', 1), ('b', [1, 'x', None, True])]");
    prints("{% for x in [1, 2], 'b' %}{{ x }};{% endfor %}{% set a = 1, %}{{ a }}{% set (b, c) = "
           "'xy' %}{{ c ~ b }}",
           "[1, 2];b;(1,)yx");
    prints("{{ m|selectattr('zz')|list }}{{ 'full' if m|selectattr('zz') else 'empty' }}{{ "
           "m|selectattr('zz') is iterable }}",
           "[]fullTrue");
    prints("{% set g = [1, 2, 3]|map('string') %}{{ g|first }}{{ g|join('+') }}{{ g|join }}|{{ 2 "
           "in ([1, 2, 3]|reject('odd')) }}",
           "12+3|True");
    prints("{{ [3, 1]|reverse|list }}{{ 'abc'|reverse }}{{ d.keys()|list }}{{ d.keys() is sequence "
           "}}{{ range(3)|list }}{{ range(3)[1] }}",
           "[1, 3]cba['a', 'b']False[0, 1, 2]1");
    prints("{{ {1: 'a', true: 'b', 1.0: 'c', none: 'd'} }}{{ {'a': 1, 'b': 2, 'a': 3} }}{{ 1 in "
           "{1: 2} }}",
           "{1: 'c', None: 'd'}{'a': 3, 'b': 2}True");
    prints("{{ [1, 2] < [1, 3] }}{{ (1, 'b') > (1, 'a') }}{{ [zz, none, 'x'|safe] }}",
           "TrueTrue[Undefined, None, Markup('x')]");
}

/* Attributes of filters may have dots, and defaults. */
static void test_keys(void **state) {
    (void)state;
    prints("{{ [{'a': {'b': 1}}, {'a': {'b': 2}}]|map(attribute='a.b')|list }}{{ [[1, "
           "[5]]]|map(attribute='1.0')|list }}",
           "[1, 2][5]");
    prints("{{ m|map(attribute='n', default='-')|join }}{{ [{'k': 'b'}, {'k': "
           "'A'}]|sort(attribute='k')|map(attribute='k')|join }}",
           "-NoneAb");
    prints("{{ [{'k': 1}, {'k': 5}]|sum(attribute='k') }}{{ [{'k': 1}, {'k': "
           "5}]|max(attribute='k') }}{{ m|join('|', attribute='role') }}",
           "6{'k': 5}user|assistant");
    prints("{{ ['b', 'A', 'c']|sort }}{{ ['b', 'A']|sort(case_sensitive=true) }}{{ [3, 1, "
           "2]|sort(reverse=true) }}{{ ['B', 'a']|min }}{{ ['a', 'A', 'b']|unique|list }}",
           "['A', 'b', 'c']['A', 'b'][3, 2, 1]a['a', 'b']");
    prints("{{ [1, 2, 3, 4]|select('gt', 2)|list }}{{ [1, 2]|select('==', 2)|list }}{{ [[1, 2], "
           "[3]]|map('sum')|list }}{{ [1, 2, 3]|batch(2, 0)|list }}",
           "[3, 4][2][3, 3][[1, 2], [3, 0]]");
    prints("{{ {'b': 1, 'a': [1.5, none]}|tojson(sort_keys=true) }}{{ "
           "'\xc3\xa9\xf0\x9f\x98\x80'|tojson(ensure_ascii=true) }}{{ [1, {'k': "
           "2}]|tojson(separators=(',', ':')) }}{{ {1: 2, none: true}|tojson }}",
           "{\"a\": [1.5, null], \"b\": 1}\"\\u00e9\\ud83d\\ude00\"[1,{\"k\":2}]{\"1\": 2, "
           "\"null\": true}");
    prints("{{ [1, []]|tojson(indent='\\t') }}{{ (1, 'x')|tojson(true, 1) }}",
           "[\n\t1,\n\t[]\n][\n 1,\n \"x\"\n]");
}

static void test_numbers(void **state) {
    (void)state;
    prints("{{ '3.7'|int }}{{ ' 42 '|int }}{{ '1_0'|int }}{{ 'x'|int(5) }}{{ none|int }}{{ "
           "'1e3'|int }}{{ 'x'|float(2) }}{{ '1.5'|float }}{{ -3|abs }}",
           "3421050100021.53");
    prints("{{ 2.5|round }}{{ 3.5|round }}{{ 2.675|round(2) }}{{ 7|round }}{{ 1.21|round(1, "
           "'ceil') }}{{ 7|round(0, 'floor') }}",
           "2.04.02.6771.37.0");
    prints("{{ 2 ** 3 ** 2 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 % 2 }} {{ -7.5 // 2 }} {{ -7 % 3 "
           "}} {{ 1_000 }} {{ -0.0 }} {{ +true }}",
           "64 0.5 4 1.5 -4.0 2 1000 -0.0 1");
    prints("{{ 9007199254740993 == 9007199254740992.0 }}{{ 1 == true }}{{ true + 1 }}{{ 3 * 'ab' "
           "}}{{ [0] * 2 }}",
           "FalseTrue2ababab[0, 0]");
}

static void test_formats(void **state) {
    (void)state;
    prints("{{ '%s is %d, %.2f%%' % ('x', 3, 2.345) }}{{ '%5s|%-5s|' % ('a', 'b') }}{{ '%05d %x "
           "%r' % (42, 255, 'q') }}{{ '%(a)s' % {'a': 1} }}",
           "x is 3, 2.35%    a|b    |00042 ff 'q'1");
    prints("{{ '%s' % none }}{{ '%s-%s'|format(1, 'x') }}{{ '%(k)s'|format(k='v') }}", "None1-xv");
    prints("{{ '{} {}'.format(1, 'a') }}{{ '{1}{0}'.format('a', 'b') }}{{ '{a.role} "
           "{b[0]}'.format(a=m[0], b=[1]) }}{{ '{{{}}}'.format(1) }}",
           "1 abauser 1{1}");
    prints("{{ '{:>6}|{:<6}|{:^6}|{:*^7}'.format('ab', 'cd', 'ef', 'g') }}{{ '{:05d} {:+} {:,} "
           "{:x} {:.3f} {:e} {:%}'.format(42, 3, 1234567, 255, 1.5, 12345.678, 0.25) }}{{ "
           "'{!r}'.format('a') }}",
           "    ab|cd    |  ef  |***g***00042 +3 1,234,567 ff 1.500 1.234568e+04 25.000000%'a'");
}

static void test_texts(void **state) {
    (void)state;
    prints("{{ 'a-b (c) it\\'s'|title }}|{{ \"it's a-b\".title() }}|{{ '\xc3\x89'|lower }}{{ "
           "'stra\xc3\x9f\xc3\xa9'.upper() if false }}{{ '\xc3\xa9"
           "a'|capitalize }}",
           "A-B (C) It's|It'S A-B|\xc3\xa9\xc3\x89"
           "a");
    prints(
        "{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a=b=c'.partition('=') }}{{ 'l1\\nl2\\r\\nl3'.splitlines() "
        "}}{{ 'abcabc'.rfind('b') }}{{ 'abcabc'.find('b', 2) }}{{ 'aXbX'.count('X') }}",
        "['a,b', 'c']('a', '=', 'b=c')['l1', 'l2', 'l3']442");
    prints("{{ 'abc'.replace('', '-') }}{{ 'aaa'.replace('a', 'b', 2) }}{{ 'x1'|replace(1, 2) }}{{ "
           "'ab'.center(5, '*') }}{{ '-7'.zfill(4) }}{{ 'abc'.removeprefix('a') }}{{ "
           "'Ab'.swapcase() }}",
           "-a-b-c-bbax2**ab*-007bcaB");
    prints("{{ 'a\\n\\nb'|indent(2) }}|{{ 'a\\nb'|indent('> ', true) }}|{{ 'hello world "
           "foo'|truncate(11, false, '!', 0) }}|{{ '<a&b>'|e }}{{ ('<'|safe) + '<' }}{{ ('<'|safe) "
           "~ '<' }}",
           "a\n\n  b|> a\n> b|hello!|&lt;a&amp;b&gt;<&lt;<<");
    prints("{{ 'ab1'.isalnum() }}{{ '12'.isdigit() }}{{ ' '.isspace() }}{{ 'AB'.isupper() }}{{ 'a' "
           "is lower }}{{ ['\\u200b', '\\xa0', '\xc3\xa9'] }}",
           "TrueTrueTrueTrueTrue['\\u200b', '\\xa0', '\xc3\xa9']");
}

/* Arguments have the names that Jinja and Python give them. */
static void test_refused(void **state) {
    (void)state;
    refuses("{{ 'a'|replace('a', by='b') }}", "\"replace\" lacks its argument \"new\"");
    refuses("{{ 'a'|trim(what='b') }}", "\"trim\" has no argument of the name \"what\"");
    refuses("{{ 'a'|trim('a', chars='b') }}", "\"trim\" gets its argument \"chars\" twice");
    refuses("{{ 'a'|upper(1) }}", "\"upper\" takes at most 0 arguments, not 1");
    refuses("{{ 'a'.strip(chars='a') }}", "\"strip\" has no argument of the name \"chars\"");
    refuses("{{ m|map(attribute='a', x=1)|list }}", "map() takes");
    refuses("{{ m|sort }}", "a dict and a dict can't be compared");
    refuses("{{ [1]|map('zork')|list }}", "the filter \"zork\" is not supported");
    refuses("{{ n|random }}", "the filter \"random\" is not supported");
    refuses("{{ 'a'.encode() }}", "the method or member \"encode\" of text is not supported");
    refuses("{{ n.real }}", "the method or member \"real\" of an integer is not supported");
    refuses("{{ range(2) }}", "a range can't be printed");
    refuses("{{ m|map('length') }}", "an iterator can't be printed");
    refuses("{{ m|select|length }}", "an iterator has no length");
    refuses("{{ m|select|tojson }}", "an iterator can't be written as JSON");
    refuses("{{ 'stra\xc3\x9f\x65'|upper }}", "the case of \"\xc3\x9f\" is not supported");
    refuses("{{ '\xc3\xa9'.isalpha() }}", "beyond ASCII");
    refuses("{{ ('<'|safe).replace('a', 'b') }}", "marked as safe");
    refuses("{{ 10 ** 30 }}", "exceeds 64 bits");
    refuses("{{ '%s %s' % 'a' }}", "takes more values");
    refuses("{{ '%s' % ('a', 'b') }}", "does not take all values");
    refuses("{{ '%d' % 'a' }}", "%d takes a number, not text");
    refuses("{{ '{} {1}'.format(1, 2) }}", "all have numbers, or none");
    refuses("{{ '{:d}'.format('a') }}", "not possible with text");
    refuses("{{ '{:{}}'.format(1, 2) }}", "fields inside it");
    refuses("{{ cycler(1) }}", "\"cycler\" is not supported");
    refuses("{{ strftime_now('%f') }}", "format of a date");
    refuses("{{ namespace(_x=1) }}", "underscore");
    refuses("{{ 0x10 }}", "only decimal numbers");
}

/* Work is counted, and texts are limited, whatever makes them. */
static void test_limits(void **state) {
    (void)state;
    refuses("{{ '%999999999s' % 'a' }}", "exceeds 64 MB");
    refuses("{{ '{:>999999999}'.format('a') }}", "exceeds 64 MB");
    refuses("{{ 'a'.center(99999999999) }}", "exceeds 64 MB");
    refuses("{{ ('a' * 1000 * 2000)|replace('a', 'b' * 60) }}", "exceeds 64 MB");
    refuses("{{ ('a' * 1000 * 2000).rfind('a' * 1000 * 1000 ~ 'b') }}", "steps");
    refuses("{{ ('a' * 1000 * 2000).strip('b' * 1000 * 200 ~ 'a') }}", "steps");
    refuses("{{ range(99999)|map('string')|unique|list }}", "steps");
    refuses("{{ [1, 2, 3] * 99999999 }}", "exceeds 64 MB");
    refuses("{{ ('\n' * 1000 * 2000)|indent(60, blank=true) }}", "exceeds 64 MB");
    refuses("{{ [[1] * 9000]|tojson(indent='x' * 60000) }}", "exceeds 64 MB");
    refuses("{{ m|truncate(1) }}", "truncate takes text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tuples),  cmocka_unit_test(test_keys),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_texts),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
