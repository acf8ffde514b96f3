/* schema_test.c - JSON schemas as grammars: texts that they allow and refuse, schemas that are
 * refused, and how large they may be. */
#include "grammar/schema.h"

#include "grammar/schema_texts.h"

static ls_status make(const char *schema, ls_grammar **g_p, ls_error *e) {
    ls_json *s = parsed(schema, strlen(schema));
    ls_status status = ls_grammar_of_schema(s, NULL, g_p, e);
    ls_json_free(s);
    return status;
}

static void test_allowed(void **state) {
    static const char *const cases[][3] = {
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2026-11-28\"", "\"2026-02-30\""},
        {"{\"type\":\"string\",\"format\":\"date\"}", "\"2024-02-29\"", "\"1900-02-29\""},
        {"{\"type\":\"string\",\"format\":\"date-time\"}", "\"2000-02-29T14:00:00Z\"",
         "\"2026-11-28\""},
        {"{\"type\":\"string\",\"format\":\"hostname\"}", "\"a-b.org\"", "\"xn--vek\""},
        {"{\"type\":\"string\",\"format\":\"uuid\"}", "\"123e4567-e89b-12d3-a456-426614174000\"",
         "\"123e4567\""},
        {"{\"type\":\"string\",\"format\":\"ipv4\"}", "\"127.0.0.1\"", "\"256.0.0.1\""},
        {"{\"type\":\"string\",\"format\":\"email\"}", "\"a.b@example.org\"", "\"a.b\""},
        {"{\"type\":\"string\",\"format\":\"email\"}", "\"a+b@x.y.museum\"", "\"a@localhost\""},
        {"{\"type\":\"string\",\"format\":\"uri\"}", "\"https://a.org/x\"", "\"a b\""},
        {"{\"type\":\"string\",\"pattern\":\"^(ab|c){3}d?$\",\"minLength\":3,\"maxLength\":7}",
         "\"abcabd\"", "\"abab\""},
        {"{\"type\":\"string\",\"format\":\"uri\",\"minLength\":1,\"maxLength\":2083}",
         "\"http://a\"", "\"a\""},
        {"{\"type\":\"string\",\"pattern\":\"^(ab|c)*d?$\",\"minLength\":2,\"maxLength\":4}",
         "\"abcd\"", "\"abcab\""},
        {"{\"type\":\"string\",\"pattern\":\"^(ab|c)*d?$\",\"minLength\":2}", "\"cccccab\"",
         "\"d\""},
        {"{\"type\":\"string\",\"pattern\":\"^a?$\",\"maxLength\":0}", "\"\"", "\"a\""},
        {"{\"type\":\"string\",\"pattern\":\"x\",\"maxLength\":3}", "\"\xf0\x9f\x98\x80x\\n\"",
         "\"abxc\""},
        {"{\"type\":\"string\",\"format\":\"email\",\"maxLength\":7}", "\"a@b.org\"",
         "\"aa@b.org\""},
        {"{\"type\":\"string\",\"maxLength\":2}", "\"\\n\xf0\x9f\x98\x80\"", "\"abc\""},
        {"{\"type\":\"object\"}", "{\"x\":[1,{}]}", "[]"},
        {"{}", "[1,\"a\",{\"b\":null}]", "[1,]"},
        {"{\"properties\":{\"a\":{\"type\":\"null\"}}}", "{}", "{\"b\":1}"},
        {"{\"required\":[\"a\"],\"additionalProperties\":true,\"type\":\"object\"}",
         "{\"a\":1,\"ab\":2}", "{\"b\":1}"},
        {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", "0.25", "1.01"},
        {"{\"type\":\"number\",\"exclusiveMinimum\":0}", "0.001", "0.0"},
        {"{\"type\":\"integer\",\"minimum\":-12,\"maximum\":205}", "-12", "206"},
        {"{\"type\":\"number\",\"exclusiveMaximum\":1}", "0.99999999999999",
         "0.99999999999999999"}, /* which is 1 as a double */
        {"{\"type\":\"number\",\"exclusiveMinimum\":100}", "100.000000000001",
         "100.00000000000000001"},
        {"{\"type\":\"integer\",\"minimum\":9007199254740993}", "9007199254740993",
         "9007199254740992"},
        {"{\"type\":\"integer\",\"maximum\":1e30}", "5", "5.5"},
        {"{\"type\":\"integer\",\"exclusiveMinimum\":2.5,\"minimum\":1}", "3", "2"},
        {"{\"const\":1.1234567890123}", "1.1234567890123", "1.12345679"},
        {"{\"const\":0.1}", "0.1", "0.10000000000000001"},
        {"{\"type\":\"string\",\"format\":\"duration\"}", "\"P1Y2M3DT4H\"", "\"P1D2M\""},
        {"{\"type\":\"string\",\"format\":\"ipv6\"}", "\"2001:db8::1\"", "\"1::2::3\""},
        {"{\"type\":\"string\",\"pattern\":\"^\\\\S.$\"}", "\"ab\"",
         "\"\xc2\xa0\""
         "b\""},
        {"{\"type\":\"string\",\"pattern\":\"^.$\"}", "\"a\"", "\"\\r\""},
        {"{\"type\":\"object\",\"properties\":{\"a\":false},\"additionalProperties\":true}",
         "{\"b\":1}", "{\"a\":1}"},
        {"{\"anyOf\":[false,{\"type\":\"null\"}]}", "null", "1"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":true}}", "1", "]"},
        /* Pointers within a schema that has an $id begin there. */
        {"{\"$id\":\"http://x/"
         "a\",\"properties\":{\"p\":{\"$id\":\"b\",\"type\":\"array\",\"items\":{"
         "\"$ref\":\"#/$defs/c\"},\"$defs\":{\"c\":{\"type\":\"integer\"}}},\"q\":{\"$ref\":"
         "\"#/$defs/c\"}},\"$defs\":{\"c\":{\"type\":\"string\"}}}",
         "{\"p\":[1],\"q\":\"a\"}", "{\"p\":[\"a\"]}"},
        {"{\"oneOf\":[{\"type\":\"string\"},{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}],"
         "\"$defs\":{\"n\":{\"anyOf\":[{\"type\":\"integer\"},{\"const\":true}]}}}",
         "true", "false"},
        {"{\"discriminator\":{\"propertyName\":\"k\"},\"oneOf\":["
         "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{}},\"required\":["
         "\"k\"]},"
         "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"b\",\"c\"]},\"y\":{}},"
         "\"required\":[\"k\"]}]}",
         "{\"k\":\"c\",\"y\":1}", "{\"k\":\"a\",\"y\":1}"},
        {"{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{}},\"required\":[\"a\"]},"
         "{\"type\":\"object\",\"properties\":{\"b\":{}},\"additionalProperties\":false}]}",
         "{\"b\":1}", "{\"a\":1,\"b\":1}"},
        {"{\"type\":\"array\",\"items\":false}", "[]", "[1]"},
        {"{\"allOf\":[{\"type\":\"null\"}]}", "null", "0"},
        {"{\"type\":\"number\",\"minimum\":0.5,\"maximum\":1.25}", "1.25", "1.2500001"},
        {"{\"type\":\"number\",\"minimum\":-0.5,\"maximum\":0.05}", "-0.49", "0.051"},
        {"{\"type\":\"number\",\"exclusiveMinimum\":0.1}", "0.100000000000001", "0.1000"},
        {"{\"type\":\"number\",\"exclusiveMaximum\":-0.25}", "-0.251", "-0.25"},
        {"{\"type\":\"number\",\"minimum\":1e-300}", "0.00000000000000001", "0.0"},
        {"{\"type\":\"integer\",\"maximum\":-2.5}", "-3", "-2"},
        {"{\"type\":\"number\",\"minimum\":3,\"exclusiveMinimum\":true}", "3.1", "3.0"},
        {"{\"type\":\"number\",\"multipleOf\":0.01,\"minimum\":0,\"maximum\":100}", "99.9",
         "0.005"},
        {"{\"type\":\"number\",\"multipleOf\":0.25}", "-2.75", "2.7"},
        {"{\"type\":\"integer\",\"multipleOf\":7,\"exclusiveMinimum\":-8}", "-7", "-14"},
        {"{\"type\":\"integer\",\"multipleOf\":2.5}", "15", "12"},
        {"{\"type\":\"integer\",\"multipleOf\":15}", "0", "-0"},
        {"{\"type\":\"number\",\"allOf\":[{\"multipleOf\":2},{\"multipleOf\":3}]}", "12", "3"},
        {"{\"patternProperties\":{\"^x-\":{\"type\":\"integer\"}}}", "{\"x-a\":1,\"x-\":2}",
         "{\"y\":1}"},
        {"{\"properties\":{\"x-a\":{\"minimum\":5}},\"patternProperties\":{\"^x-\":{\"type\":"
         "\"integer\"}},\"additionalProperties\":{\"type\":\"null\"}}",
         "{\"x-a\":5,\"x-b\":1,\"y\":null}", "{\"x-a\":4}"},
        {"{\"properties\":{\"x-a\":{\"minimum\":5}},\"patternProperties\":{\"^x-\":{\"type\":"
         "\"integer\"}},\"additionalProperties\":{\"type\":\"null\"}}",
         "{\"x\":null}", "{\"x-b\":null}"},
        {"{\"patternProperties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"minimum\":3}},"
         "\"additionalProperties\":false}",
         "{\"a\":1,\"b\":3.5,\"cab\":4}", "{\"ab\":1}"},
        {"{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[a-z]+$\",\"maxLength\":3}}",
         "{\"abc\":[]}", "{\"abcd\":[]}"},
        {"{\"propertyNames\":{\"enum\":[\"a\",\"b\"]},\"additionalProperties\":{\"type\":"
         "\"integer\"}}",
         "{\"b\":1}", "{\"c\":1}"},
        {"{\"properties\":{\"long\":{}},\"propertyNames\":{\"maxLength\":3}}", "{}",
         "{\"long\":1}"},
        {"{\"minProperties\":2,\"maxProperties\":3,\"properties\":{\"a\":{},\"b\":{},\"c\":{},"
         "\"d\":{}}}",
         "{\"b\":1,\"c\":1,\"d\":1}", "{\"b\":1}"},
        {"{\"minProperties\":1,\"maxProperties\":2,\"additionalProperties\":{\"type\":\"integer\"}"
         "}",
         "{\"b\":1,\"a\":1}", "{\"a\":1,\"b\":1,\"c\":1}"},
        {"{\"type\":\"object\",\"required\":[\"a\"]}", "{\"a\":[]}", "{}"},
        {"{\"type\":\"object\",\"properties\":{}}", "{}", "{\"a\":1}"},
        {"{\"allOf\":[{\"properties\":{\"a\":{\"minimum\":1}},\"required\":[\"a\"]},{"
         "\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{}}}]}",
         "{\"a\":1,\"b\":2}", "{\"a\":1.5}"},
        {"{\"$ref\":\"#/$defs/"
         "base\",\"properties\":{\"b\":{\"type\":\"null\"}},\"required\":[\"b\"],\"$defs\":{"
         "\"base\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}}}}}",
         "{\"b\":null,\"a\":null}", "{\"a\":null}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"anyOf\":[{\"required\":[\"a\"]}"
         ",{\"required\":[\"b\"]}]}",
         "{\"b\":1}", "{}"},
        {"{\"allOf\":[{\"type\":[\"string\",\"null\"]},{\"type\":[\"string\",\"integer\"]}],"
         "\"maxLength\":1}",
         "\"a\"", "null"},
        {"{\"enum\":[\"a\",\"abc\",7],\"type\":[\"string\",\"integer\"],\"maxLength\":2,"
         "\"minimum\":8}",
         "\"a\"", "\"abc\""},
        {"{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[3,4]}]}", "3", "1"},
        {"{\"$defs\":{\"t\":{\"allOf\":[{\"properties\":{\"next\":{\"$ref\":\"#/$defs/"
         "t\"}}},{\"maxProperties\":1}]}},\"$ref\":\"#/$defs/t\"}",
         "{\"next\":{\"next\":{}}}", "{\"next\":1}"},
        {"{\"allOf\":[{\"pattern\":\"^a\"},{\"pattern\":\"z$\"},{\"maxLength\":3}]}", "\"abz\"",
         "\"abbz\""},
        {"{\"format\":\"hostname\",\"pattern\":\"[.]org$\"}", "\"a.org\"", "\"a.com\""},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[\"a\",\"b\",\"c\"]},"
         "\"minItems\":2}",
         "[\"c\",\"a\"]", "[\"a\",\"a\"]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"boolean\"}}",
         "[false,true]", "[true,true]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,2,3,4,5,6,7,8,9]}}",
         "[1,4,9]", "[4,1]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":1}", "[{}]", "[1,1]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[1,1.0,2]}}", "[2,1]",
         "[1,1.0]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[{\"a\":1,\"b\":[2]},{\"b\":"
         "[2],"
         "\"a\":1},3]}}",
         "[3,{\"a\":1,\"b\":[2]}]", "[{\"a\":1,\"b\":[2]},{\"b\":[2],\"a\":1}]"},
        {"{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"enum\":[[1,23],[12,3]]}}",
         "[[12,3],[1,23]]", "[[1,23],[1,23]]"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"dependentRequired\":{"
         "\"a\":[\"c\"]}}",
         "{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}"},
        {"{\"properties\":{\"a\":{},\"b\":{}},\"dependencies\":{\"a\":\"b\"}}", "{\"b\":1}",
         "{\"a\":1}"},
        {"{\"properties\":{\"a\":{},\"b\":{\"type\":\"integer\"}},\"dependentSchemas\":{\"a\":{"
         "\"properties\":{\"b\":{\"minimum\":5}}}}}",
         "{\"a\":1,\"b\":7}", "{\"a\":1,\"b\":2}"},
        {"{\"properties\":{\"t\":{\"enum\":[\"x\",\"y\"]},\"v\":{}},\"required\":[\"t\",\"v\"],"
         "\"if\":{\"properties\":{\"t\":{\"const\":\"x\"}}},\"then\":{\"properties\":{\"v\":{"
         "\"type\":\"integer\"}}},\"else\":{\"properties\":{\"v\":{\"type\":\"null\"}}}}",
         "{\"t\":\"y\",\"v\":null}", "{\"t\":\"x\",\"v\":null}"},
        {"{\"properties\":{\"t\":{\"type\":\"string\"},\"v\":{}},\"if\":{\"required\":[\"v\"]},"
         "\"then\":{\"required\":[\"t\"]}}",
         "{\"t\":\"a\",\"v\":1}", "{\"v\":1}"},
        {"{\"type\":\"string\",\"maxLength\":3,\"not\":{\"enum\":[\"a\",\"abc\"]}}", "\"ab\"",
         "\"abc\""},
        {"{\"type\":[\"string\",\"integer\"],\"not\":{\"const\":3}}", "\"3\"", "3"},
        {"{\"not\":{\"type\":[\"object\",\"number\"]},\"anyOf\":[{\"type\":\"object\"},{\"type\":"
         "\"boolean\"},{\"const\":1}]}",
         "true", "1"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"not\":{\"required\":[\"a\","
         "\"b\"]}}",
         "{\"b\":1}", "{\"a\":1,\"b\":1}"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"not\":{\"anyOf\":[{"
         "\"required\":[\"a\"]},{\"not\":{\"required\":[\"b\"]}}]}}",
         "{\"b\":1}", "{}"},
        {"{\"const\":2,\"allOf\":[{\"enum\":[1,2]},{\"enum\":[2.0,3]}]}", "2", "1"},
        {"{\"type\":\"array\",\"items\":[{\"type\":\"null\"},{\"type\":\"integer\"}],"
         "\"additionalItems\":{\"type\":\"string\"}}",
         "[null,1,\"a\"]", "[null,1,2]"},
        {"{\"allOf\":[{\"items\":{\"type\":\"integer\"}},{\"items\":{\"minimum\":3},\"maxItems\":2}"
         "]}",
         "[3,4]", "[2]"},
        {"{\"type\":\"integer\",\"x-order\":3,\"markdownDescription\":\"a\",\"format\":\"int32\"}",
         "1", "1.5"},
        {"{\"$ref\":\"#/$defs/a%20b\",\"$defs\":{\"a b\":{\"type\":\"null\"}}}", "null", "1"},
        {"{\"type\":\"string\",\"contentEncoding\":\"base64\"}", "\"aGk=\"", "\"aGk\""},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"oneOf\":[{\"required\":[\"a\"]}"
         ",{\"required\":[\"b\"]}]}",
         "{\"b\":1}", "{\"a\":1,\"b\":1}"},
        {"{\"oneOf\":[{\"required\":[\"a\"],\"properties\":{\"b\":{}}},{\"required\":[\"b\"]}],"
         "\"properties\":{\"a\":{}}}",
         "{\"a\":1}", "\"a\""},
        {"{\"minLength\":2,\"minItems\":1}", "\"ab\"", "[]"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
         "\"additionalProperties\":false}",
         "{\"a\":{\"a\":{}}}", "{\"a\":1}"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_grammar *g = NULL;
        ls_error e = {0};
        if (make(cases[i][0], &g, &e) != LS_OK) fail_msg("%s: %s", cases[i][0], e.msg);
        ls_walker *w = ls_walker_new(g);
        if (!ls_walker_is_end(w, read_all(w, cases[i][1], strlen(cases[i][1]))))
            fail_msg("%s refuses %s", cases[i][0], cases[i][1]);
        if (ls_walker_is_end(w, read_all(w, cases[i][2], strlen(cases[i][2]))))
            fail_msg("%s allows %s", cases[i][0], cases[i][2]);
        ls_walker_free(w);
        ls_grammar_free(g);
    }
}

static void test_refused(void **state) {
    static const char *const cases[][2] = {
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
         "schemas 0 and 1 are not told"},
        {"{\"oneOf\":[{\"const\":1.0},{\"type\":\"integer\"}]}", "schemas 0 and 1 are not told"},
        {"{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"properties\":"
         "{\"k\":{\"const\":1}}},{\"type\":\"object\",\"properties\":{\"k\":{\"const\":2}}}]}",
         "schemas 1 and 2 are not told"},
        {"{\"oneOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#/$defs/x\"}]}", "not told apart"},
        {"{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/"
         "a\"},{\"$ref\":"
         "\"#/$defs/a\"},{\"type\":\"null\"}]}},\"oneOf\":[{\"$ref\":\"#/$defs/"
         "a\"},{\"const\":1}]}",
         "too large for its schemas"},
        {"{\"type\":[\"object\",\"string\"],\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]"
         "}]}",
         "schemas 0 and 1 are not told"},
        {"{\"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"anyOf\":[{\"minLength\":1},{"
         "\"type\":\"object\"}]}",
         "schemas 0 and 1 are not told"},
        {"{\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\",\"t\"],\"patternProperties\":{\"^"
         "t\":{}},\"additionalProperties\":false},{\"type\":\"object\",\"required\":[\"t\"]}]}",
         "schemas 0 and 1 are not told"},
        {"{\"anyOf\":[false]}", "no text is allowed"},
        {"{\"$ref\":\"#/$defs/a/$defs/b\",\"$defs\":{\"a\":{\"$id\":\"x\",\"$defs\":{\"b\":{}}}}}",
         "is not in the schema"},
        {"{\"type\":\"integer\",\"minimum\":1e18}", "no number"},
        {"{\"type\":\"string\",\"pattern\":\"[]a]\"}", "write \\]"},
        {"{\"properties\":{\"a\":{\"contains\":{}}}}", "at /properties/a: the keyword 'contains'"},
        {"{\"type\":\"text\"}", "type: null, boolean"},
        {"{\"type\":[]}", "type: null, boolean"},
        {"{\"$ref\":\"#/$defs/a\"}", "'#/$defs/a' is not in the schema"},
        {"{\"$ref\":\"https://x\"}", "is not in the schema"},
        {"{\"$ref\":\"#\"}", "refers to itself"},
        {"{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", "refers to itself"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}",
         "no text is allowed"},
        {"{\"type\":\"string\",\"pattern\":\"(\"}", "not closed"},
        {"{\"type\":\"string\",\"format\":\"color\"}", "'color' is not supported"},
        {"{\"type\":\"string\",\"minLength\":1000000}", "minLength: at most 5000"},
        {"{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}", "no text is allowed"},
        {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "larger than"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no number"},
        {"{\"type\":\"number\",\"multipleOf\":1234.5}", "multipleOf: 1234.5 has too many"},
        {"{\"type\":\"number\",\"multipleOf\":0}", "multipleOf: a number above 0"},
        {"{\"type\":\"array\",\"uniqueItems\":true}", "uniqueItems is supported for"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}",
         "'a' is not one of"},
        {"{\"type\":\"object\",\"additonalProperties\":false}", "is 'additionalProperties' meant"},
        {"{\"type\":\"string\",\"MaxLength\":3}", "is 'maxLength' meant"},
        {"{\"patternProperties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{},\"e\":{}}}", "at most 4"},
        {"{\"patternProperties\":{\"(\":{}}}", "patternProperties: character 1"},
        {"{\"allOf\":[]}", "allOf: a list"},
        {"{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"null\"}]}},\"$ref\":"
         "\"#/$defs/a\"}",
         "refers to itself"},
        {"{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "no text is allowed"},
        {"{\"not\":{\"pattern\":\"a\"}}", "the keyword 'not' is supported with"},
        {"{\"if\":{\"minimum\":3},\"then\":{\"type\":\"integer\"}}",
         "the keyword 'if' is supported with"},
        {"{\"dependencies\":{\"a\":3}}", "names or a schema are expected"},
        {"{\"dependentRequired\":[]}", "an object is expected"},
        {"{\"enum\":[]}", "no value"},
        {"{\"enum\":[1],\"type\":\"string\"}", "no value"},
        {"{\"const\":1,\"minimum\":2}", "no value"},
        {"{\"const\":[],\"minItems\":2}", "beside keywords about arrays"},
        {"[]", "an object is expected"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_grammar *g = NULL;
        ls_error e = {0};
        assert_ls_fails(make(cases[i][0], &g, &e), LS_EINVAL, cases[i][1], e);
    }
}

/* Values are nested as deeply as is allowed, and no deeper; a text that is there can be
 * completed. */
static void test_depth(void **state) {
    ls_grammar *g = NULL;
    ls_error e = {0};
    char text[300];
    (void)state;
    assert_ls_ok(ls_grammar_of_object(NULL, &g, &e), e);
    ls_walker *w = ls_walker_new(g);
    size_t n = 0;
    uint32_t at = ls_walker_step(w, LS_WALKER_START, '{');
    for (const char *key = "\"a\":"; *key; key++) at = ls_walker_step(w, at, (uint8_t)*key);
    while (n < sizeof text) {
        uint32_t next = ls_walker_step(w, at, '[');
        if (next == LS_WALKER_DEAD) break;
        at = next;
        n++;
    }
    assert_int_equal(n, LS_GRAMMAR_DEPTH);
    for (size_t i = 0; i < n; i++) at = ls_walker_step(w, at, ']');
    at = ls_walker_step(w, at, '}');
    assert_true(ls_walker_is_end(w, at));
    ls_walker_free(w);
    ls_grammar_free(g);
}

/* Tools that have too many members together are refused while they are read. */
static void test_many_members(void **state) {
    enum { TOOLS = 12, MEMBERS = 600 };
    static const ls_schema_marks marks = {"<k=", ">", "</k>"};
    ls_schema_text_part parts[TOOLS];
    ls_json *schemas[TOOLS];
    ls_grammar *g = NULL;
    ls_error e = {0};
    char before[] = "x", name[16];
    (void)state;
    for (int i = 0; i < TOOLS; i++) {
        ls_json *properties = ls_json_new_object();
        for (int k = 0; k < MEMBERS; k++) {
            snprintf(name, sizeof name, "k%d", k);
            ls_json_set(properties, name, ls_json_new_object());
        }
        schemas[i] = ls_json_new_object();
        ls_json_set(schemas[i], "properties", properties);
        parts[i] = (ls_schema_text_part){before, schemas[i], "y"};
    }
    const ls_schema_texts t = {parts, TOOLS, "", "", "", 1, &marks};
    assert_int_equal(ls_grammar_of_texts(&t, NULL, &g, &e), LS_EINVAL);
    assert_string_equal(e.msg, "the schema: it is too large");
    for (int i = 0; i < TOOLS; i++) ls_json_free(schemas[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allowed),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_depth),
                                       cmocka_unit_test(test_many_members)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
