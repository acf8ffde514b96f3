/* tokens_test.c - lockstep tokens: pieces, JSON, special tokens, saving, bad input. */
#include "base/json.h"
#include "cli/program.h"

#define SPLIT   "tests/fuzz/tokenizer-split.json"
#define PREPEND "tests/fuzz/tokenizer-prepend.json"

static void test_pieces(void **state) {
    (void)state;
    expect("tokens " SPLIT " low<|e|>", 0, "\"low\"\n");
    expect("tokens " SPLIT " low<|e|>", 0, "6 tokens of 8 bytes");
    expect("tokens " SPLIT " low<|e|> --special", 0, "  \"<|e|>\"\n2 tokens of 8 bytes");
    expect("tokens " SPLIT " low --ends", 0, "  \"<|e|>\"\n");
    expect("tokens " SPLIT " \xC3\xA9", 0, "\"\xC3\xA9\"\n1 token of 2 bytes");
    expect("tokens " SPLIT " \xC3\xA9\x7F", 0, "the text: 1 byte left out, for which");
    expect("tokens " PREPEND " low", 0, "\" low\"\n1 token of 3 bytes");
    expect("tokens " SPLIT " README.md", 0,
           "these are the tokens of the file's name; - <README.md reads the file");
}

static ls_json *json_of(const char *line) {
    ls_error e = {0};
    ls_json *j = NULL;
    char *output = output_of("%s", line);
    assert_ls_ok(ls_json_parse(output, strlen(output), "output", &j, &e), e);
    free(output);
    return j;
}

static int64_t integer(const ls_json *j) {
    int64_t value = -1;
    assert_true(ls_json_integer(j, &value));
    return value;
}

static void test_json(void **state) {
    (void)state;
    ls_json *j = json_of("tokens " SPLIT " low12 --json");
    const ls_json *ids = ls_json_get(j, "ids"), *pieces = ls_json_get(j, "pieces");
    assert_int_equal(ls_json_count(ids), 3); /* low, and the digits */
    assert_int_equal(ls_json_count(pieces), 3);
    assert_string_equal(ls_json_text(ls_json_at(pieces, 0)), "low");
    assert_int_equal(integer(ls_json_at(ids, 1)), '1' - '!');
    assert_int_equal(integer(ls_json_get(j, "bytes")), 5);
    assert_int_equal(integer(ls_json_get(j, "dropped")), 0);
    ls_json_free(j);
    j = json_of("tokens " SPLIT " --json");
    assert_string_equal(ls_json_text(ls_json_get(j, "kind")), "byte-level BPE");
    assert_int_equal(integer(ls_json_get(j, "merges")), 6);
    const ls_json *first = ls_json_at(ls_json_get(j, "added"), 0);
    assert_string_equal(ls_json_text(ls_json_get(first, "content")), "<|e|>");
    assert_true(ls_json_is_true(ls_json_get(first, "special")));
    ls_json_free(j);
}

static void test_about(void **state) {
    (void)state;
    expect("tokens " SPLIT, 0, "byte-level BPE: 108 tokens, 6 merges\nspecial:\n");
    expect("tokens " SPLIT, 0, "added, not special:\n     106  \"tool\"\n");
    expect("tokens " PREPEND, 0, "SentencePiece BPE: ");
}

/* A directory stands for the tokenizer.json in it. What is saved there is the same tokenizer. */
static void test_save(void **state) {
    (void)state;
    expect("tokens " PREPEND " --save @/tokenizer.json", 0, NULL);
    expect("tokens @ low<s> --special", 0, "  \" low\"\n       1  \"<s>\"\n2 tokens");
    expect("tokens " PREPEND " --save @/tokenizer.json", 1,
           "tokenizer.json: exists; give the name of a new file");
}

static void test_bad_input(void **state) {
    (void)state;
    expect_line("tokens", 2, "tokens: RUN|MODEL|FILE is missing; see");
    expect_line("tokens /none x", 1, "/none: can't be opened");
    expect_line("tokens @/none x", 1, "none: can't be opened");
    expect_line("tokens README.md x", 1, "README.md:1: is not valid JSON");
    expect_line("tokens " SPLIT " \xFF", 1, "the text: is not UTF-8 at byte 0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),    cmocka_unit_test(test_json),
        cmocka_unit_test(test_about),     cmocka_unit_test(test_save),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
