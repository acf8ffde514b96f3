/* tokenizer_kinds_test.c - tokenizers as published models have them: small files of each kind, with
 * tokens worked out by hand, and what is refused. */
#include "base/json.h"
#include "data/pretokens.h"
#include "small_tokenizer.h"

static ls_tokenizer *parse(const char *json) {
    ls_error e = {0};
    ls_tokenizer *t = NULL;
    assert_ls_ok(ls_tokenizer_parse(json, strlen(json), "t.json", &t, &e), e);
    return t;
}

static ls_tokenizer *make(const small_tokenizer *s) {
    char *json = small_json(s);
    ls_tokenizer *t = parse(json);
    free(json);
    return t;
}

/* The tokens of a text as "piece|piece|", with <id> for an added one. */
static void check_as(const ls_tokenizer *t, const char *text, const ls_encoding *how,
                     const char *want) {
    ls_error e = {0};
    ls_token_list l;
    ls_buf got = {0};
    ls_buf_append(&got, "", 0);
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)text, strlen(text), how, &l, &e), e);
    for (size_t i = 0; i < l.n; i++) {
        size_t n = 0;
        const uint8_t *bytes = ls_tokenizer_bytes(t, l.ids[i], &n);
        const ls_added_tokens *added = ls_tokenizer_added(t);
        for (uint32_t k = 0; k < added->n; k++)
            if (added->tokens[k].id == l.ids[i]) ls_buf_printf(&got, "<%u>", l.ids[i]), n = 0;
        ls_buf_append(&got, bytes, n);
        ls_buf_append(&got, "|", 1);
    }
    if (strcmp(got.data, want) != 0) fail_msg("\"%s\": \"%s\", not \"%s\"", text, got.data, want);
    ls_buf_free(&got);
    free(l.ids);
}

static void check(const ls_tokenizer *t, const char *text, const char *want) {
    check_as(t, text, &(ls_encoding){.what = "text"}, want);
}

static void check_decodes(const ls_tokenizer *t, const char *text, bool skip_special,
                          const char *want) {
    ls_error e = {0};
    ls_token_list l;
    ls_buf out = {0};
    ls_decoding d = {.tokenizer = t, .skip_special = skip_special};
    const ls_encoding how = {.what = "text", .special = true, .begin = true, .end = true};
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)text, strlen(text), &how, &l, &e), e);
    for (size_t i = 0; i < l.n; i++) ls_decoding_add(&d, l.ids[i], &out);
    ls_decoding_end(&d, &out);
    assert_string_equal(out.data ? out.data : "", want);
    ls_buf_free(&out);
    free(l.ids);
}

/* ---- byte-level ---- */

static const char *const english[] = {
    "he", "ll", "hell", "hello", "\xC4\xA0h", "\xC4\xA0hello", "12", "123", "\xC3\x83\xC2\xA9",
    NULL};
static const char *const english_merges[] = {
    "h e", "l l", "he ll", "hell o", "\xC4\xA0 hello", "1 2", "12 3", "\xC3\x83 \xC2\xA9", NULL};

#define DIGITS                                                                                     \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": "  \
    "true}, " SMALL_BYTE_LEVEL "]}"
#define SPLIT(pattern)                                                                             \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": " pattern     \
    ", \"behavior\": \"Isolated\", \"invert\": false}, " SMALL_BYTES_ONLY "]}"
#define LLAMA3                                                                                     \
    SPLIT("{\"Regex\": \"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"    \
          "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"            \
          "\\\\s+(?!\\\\S)|\\\\s+\"}")

static void test_gpt2_and_smollm(void **state) {
    (void)state;
    small_tokenizer s = {
        .pre_tokenizer = SMALL_BYTE_LEVEL, .tokens = english, .merges = english_merges};
    ls_tokenizer *t = make(&s);
    check(t, "hello hello 1234", "hello| hello| |123|4|");
    ls_tokenizer_free(t);
    s.pre_tokenizer = DIGITS;
    t = make(&s);
    check(t, "hello hello 1234", "hello| hello| |1|2|3|4|");
    ls_tokenizer_free(t);
}

static void test_llama3(void **state) {
    (void)state;
    small_tokenizer s = {.pre_tokenizer = LLAMA3,
                         .post_processor =
                             "{\"type\": \"Sequence\", \"processors\": [" SMALL_BYTE_LEVEL
                             ", " SMALL_TEMPLATE("<bos>", "265") "]}",
                         .added = "[{\"id\": 265, \"content\": \"<bos>\", \"special\": true}]",
                         .model = "\"ignore_merges\": true, ",
                         .tokens = english,
                         .merges = english_merges};
    ls_tokenizer *t = make(&s);
    check(t, "hello hello (1234)", "hello| hello| |(|123|4|)|");
    check(t, " h", " h|"); /* no merge makes it, but it is a token */
    check(t, " hx", " |h|x|");
    check(t, "x'LL", "x|'|L|L|");
    check_as(t, "he", &(ls_encoding){.what = "t", .begin = true}, "<265>|he|");
    check_as(t, "he", &(ls_encoding){.what = "t", .end = true}, "he|");
    check_as(t, "", &(ls_encoding){.what = "t", .begin = true}, "<265>|");
    check(t, "<bos>", "<|b|o|s|>|");
    ls_tokenizer_free(t);
}

/* An expression that matches all of any text, as some files have it: what is between is removed. */
static void test_split_inverted(void **state) {
    (void)state;
    small_tokenizer s = {
        .model = "\"ignore_merges\": true, ", .tokens = english, .merges = english_merges};
    ls_buf step = {0}, regex = {0};
    ls_json *j = ls_json_new_text(LS_REGEX_LLAMA3);
    ls_json_write(j, 0, &regex);
    ls_json_free(j);
    ls_buf_printf(&step,
                  "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
                  "\"pattern\": {\"Regex\": %s}, \"behavior\": \"Removed\", \"invert\": "
                  "true}, " SMALL_BYTES_ONLY "]}",
                  regex.data);
    s.pre_tokenizer = step.data;
    ls_tokenizer *t = make(&s);
    check(t, "hello hello (1234)", "hello| hello| |(|123|4|)|");
    ls_tokenizer_free(t);
    ls_buf_free(&step);
    ls_buf_free(&regex);
}

static void test_qwen(void **state) {
    (void)state;
    const small_tokenizer s = {.normalizer = "{\"type\": \"NFC\"}",
                               .pre_tokenizer = SMALL_BYTE_LEVEL,
                               .tokens = english,
                               .merges = english_merges};
    ls_tokenizer *t = make(&s);
    check(t, "e\xCC\x81", "\xC3\xA9|");
    check(t, "\xC3\xA9 hello", "\xC3\xA9| hello|");
    check_decodes(t, "e\xCC\x81", false, "\xC3\xA9");
    ls_tokenizer_free(t);
}

static void test_split_text(void **state) {
    (void)state;
    small_tokenizer s = {.pre_tokenizer = SPLIT("{\"String\": \"ll.\"}"),
                         .tokens = english,
                         .merges = english_merges};
    ls_tokenizer *t = make(&s);
    check(t, "hellohell.o", "hello|he|ll|.|o|"); /* the words are hellohe, ll. and o */
    ls_tokenizer_free(t);
    s.pre_tokenizer = SMALL_BYTES_ONLY; /* a text is one word */
    t = make(&s);
    check(t, "hello 12 hello", "hello| |12| hello|");
    ls_tokenizer_free(t);
}

/* A vocabulary without some bytes leaves them out, and says how many. */
static void test_missing_bytes(void **state) {
    (void)state;
    const small_tokenizer s = {
        .pre_tokenizer = SMALL_BYTES_ONLY, .tokens = english, .merges = english_merges};
    char *json = small_json(&s), *at = strstr(json, "\"\xC4\x84\": 4,"); /* byte 4 */
    ls_error e = {0};
    ls_token_list l;
    assert_non_null(at);
    memcpy(at, "\"!!\": 4,", 8); /* another token instead, of as many bytes */
    ls_tokenizer *t = parse(json);
    check(t,
          "h\x04"
          "e\x04\x04 \x04",
          "he| |"); /* the neighbours of what is left out merge */
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)"\x04 \x04", 3,
                                     &(ls_encoding){.what = "t"}, &l, &e),
                 e);
    assert_int_equal(l.dropped, 2);
    free(l.ids);
    ls_tokenizer_free(t);
    at = strstr(json, "\"BPE\", ");
    assert_non_null(at);
    ls_buf unknown = {0};
    ls_buf_append(&unknown, json, (size_t)(at - json) + 7);
    ls_buf_printf(&unknown, "\"unk_token\": \"he\", %s", at + 7);
    t = parse(unknown.data);
    check(t, "a\x04\x04", "a|he|he|");
    ls_tokenizer_free(t);
    ls_buf_free(&unknown);
    free(json);
}

/* ---- added tokens ---- */

#define ADDED(id, content, flags)                                                                  \
    "{\"id\": " id ", \"content\": \"" content "\", \"single_word\": false, " flags "}"

static void test_added_tokens(void **state) {
    (void)state;
    const small_tokenizer s = {
        .pre_tokenizer = SMALL_BYTE_LEVEL,
        .tokens = english,
        .merges = english_merges,
        .added = "[" ADDED("265", "<|a|>", "\"special\": true") ", " ADDED(
            "266", "<tool>", "\"special\": false") ", " ADDED("267", "<|r|>",
                                                              "\"rstrip\": true") "]"};
    const ls_encoding special = {.what = "text", .special = true};
    ls_tokenizer *t = make(&s);
    check(t, "he<|a|>he<tool>he", "he|<|||a|||>|he|<266>|he|");
    check_as(t, "he<|a|>he<tool>he", &special, "he|<265>|he|<266>|he|");
    check_as(t, "<|r|> \n hello", &special, "<267>|hello|");
    const ls_text_range plain[] = {{5, 10}};
    const ls_encoding chat = {.what = "text", .special = true, .plain = plain, .nplain = 1};
    check_as(t, "<|a|><|a|><|a|>", &chat, "<265>|<|||a|||>|<265>|");
    assert_int_equal(ls_tokenizer_find(t, "<|r|>"), 267);
    assert_int_equal(ls_tokenizer_find(t, "he"), LS_NO_TOKEN);
    check_decodes(t, "he<|a|>he<tool>", false, "he<|a|>he<tool>");
    check_decodes(t, "he<|a|>he<tool>", true, "hehe<tool>");
    ls_tokenizer_free(t);
}

/* A word that is added, though it is a token of merges: found first, or made by merges where it is
 * no single word. */
static void test_added_words(void **state) {
    (void)state;
    static const char entry[] = "[{\"id\": 258, \"content\": \"hell\", \"single_word\": %s, "
                                "\"special\": false}]";
    static const char *const wanted[] = {"<258>|o| |s|<258>| |<258>|", "hello| |s|<258>| |<258>|"};
    for (int single = 0; single < 2; single++) {
        char *added = ls_format(entry, single ? "true" : "false");
        const small_tokenizer s = {.pre_tokenizer = SMALL_BYTE_LEVEL,
                                   .added = added,
                                   .tokens = english,
                                   .merges = english_merges};
        ls_tokenizer *t = make(&s);
        check(t, "hello shell hell", wanted[single]);
        ls_buf json = {0};
        ls_tokenizer_write(t, &json);
        ls_tokenizer_free(t);
        t = parse(json.data);
        check(t, "hello shell hell", wanted[single]);
        ls_buf_free(&json);
        ls_tokenizer_free(t);
        free(added);
    }
}

/* Normalized names match what the normalizer makes of the text. */
static void test_normalized_names(void **state) {
    (void)state;
    small_tokenizer s = {
        .normalizer = "{\"type\": \"NFC\"}",
        .pre_tokenizer = SMALL_BYTE_LEVEL,
        .added =
            "[" ADDED("256", "e\xCC\x81!", "\"special\": true, \"normalized\": true") ", " ADDED(
                "257", "e\xCC\x81?", "\"special\": true, \"normalized\": false") "]"};
    const ls_encoding special = {.what = "text", .special = true};
    ls_tokenizer *t = make(&s);
    check_as(t, "\xC3\xA9!e\xCC\x81!", &special, "<256>|<256>|");
    check_as(t, "\xC3\xA9?e\xCC\x81?", &special, "\xC3|\xA9|?|<257>|");
    const ls_text_range plain[] = {{0, 1}};
    check_as(t, "e\xCC\x81!",
             &(ls_encoding){.what = "t", .special = true, .plain = plain, .nplain = 1},
             "\xC3|\xA9|!|");
    /* A name beside a plain range stays a token, wherever the normalizer moves it. */
    const ls_text_range middle[] = {{4, 8}};
    check_as(t, "e\xCC\x81!e\xCC\x81!e\xCC\x81!",
             &(ls_encoding){.what = "t", .special = true, .plain = middle, .nplain = 1},
             "<256>|\xC3|\xA9|!|<256>|");
    ls_tokenizer_free(t);
}

/* ---- SentencePiece ---- */

#define M LS_SPACE_MARK
static const char *const pieces[] = {M,      "h",     "e",       "l", "o",     "x", "he", "ll",
                                     "hell", "hello", M "hello", M M, M M M M, "<", NULL};
static const char *const piece_merges[] = {"h e",      "l l",   "he ll",     "hell o",
                                           M " hello", M " " M, M M " " M M, NULL};
#define SPECIALS                                                                                   \
    "[" ADDED("0", "<unk>", "\"special\": true") ", " ADDED(                                       \
        "1", "<s>", "\"special\": true") ", " ADDED("2", "</s>", "\"special\": true") "]"

#define SMALL_SPLIT(behavior, invert)                                                              \
    "{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": \"" behavior            \
    "\", \"invert\": " invert "}"

static void check_refused(const small_tokenizer *s, const char *message);

static small_tokenizer llama2(void) {
    return (small_tokenizer){
        .normalizer = SMALL_PREPEND,
        .post_processor = SMALL_TEMPLATE("<s>", "1"),
        .decoder = SMALL_DECODER,
        .added = SPECIALS,
        .model = "\"unk_token\": \"<unk>\", \"fuse_unk\": true, \"byte_fallback\": true, ",
        .sentencepiece = true,
        .tokens = pieces,
        .merges = piece_merges};
}

static void test_llama2(void **state) {
    (void)state;
    const small_tokenizer s = llama2();
    const ls_encoding special = {.what = "text", .special = true, .begin = true};
    ls_tokenizer *t = make(&s);
    check(t, "hello hello", " hello| hello|");
    check(t, " hello", " | hello|"); /* the space before the text is added to that in it */
    check(t, "hello    x", " hello|    |x|");
    check(t, "hell\xC3\xA9", " |hell|\xC3|\xA9|");
    check(t, "x\n<0x0A>", " |x|\n|<|0|x|0|A|>|");
    check(t, M "hello", " | hello|");
    check(t, "", "");
    check_as(t, "hello<s>hello", &special, "<1>| hello|<1>| hello|");
    check_as(t, "<s> hello", &special, "<1>|<1>| | hello|");
    check(t, "<s>", " |<|s|>|");
    check_decodes(t, "hello hello", true, "hello hello");
    check_decodes(t, " hello", true, " hello");
    check_decodes(t, "hello", false, "<s> hello");
    check_decodes(t, "\xF0\x9F\x98\x80", true, "\xF0\x9F\x98\x80");
    ls_tokenizer_free(t);
}

/* No space before a text; a split at spaces, of which the normalizer leaves none. */
static void test_gemma(void **state) {
    (void)state;
    small_tokenizer s = llama2();
    s.normalizer = SMALL_REPLACE;
    s.pre_tokenizer = SMALL_SPLIT("MergedWithPrevious", "false");
    s.decoder = "{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": "
                "{\"String\": \"" LS_SPACE_MARK "\"}, \"content\": \" \"}, {\"type\": "
                "\"ByteFallback\"}, {\"type\": \"Fuse\"}]}";
    ls_tokenizer *t = make(&s);
    check(t, "hello hello", "hello| hello|");
    check(t, " hello    x", " hello|    |x|");
    check_decodes(t, " hello", true, " hello");
    ls_tokenizer_free(t);
    s.pre_tokenizer = SMALL_SPLIT("MergedWithNext", "false");
    check_refused(&s, "behavior is \"MergedWithNext\"");
    s.pre_tokenizer = SMALL_SPLIT("MergedWithPrevious", "true");
    check_refused(&s, "behavior is \"MergedWithPrevious\"");
    s.normalizer = NULL;
    s.pre_tokenizer = SMALL_SPLIT("MergedWithPrevious", "false");
    check_refused(&s, "behavior is \"MergedWithPrevious\"");
}

static void test_metaspace(void **state) {
    (void)state;
    const ls_encoding special = {.what = "text", .special = true};
    small_tokenizer s = llama2();
    s.normalizer = NULL;
    s.pre_tokenizer = SMALL_METASPACE("first", "false");
    ls_tokenizer *t = make(&s);
    check(t, "hello hello", " hello| hello|");
    check(t, " hello", " hello|");
    check_as(t, "hello<s>hello", &special, " hello|<1>|hello|");
    check_as(t, "<s>hello", &special, "<1>|hello|");
    check(t, "hello    x", " hello|    |x|");
    ls_tokenizer_free(t);
    s.pre_tokenizer = SMALL_METASPACE("always", "true");
    t = make(&s);
    check_as(t, "hello<s>hello  x", &special, " hello|<1>| hello| | |x|");
    ls_tokenizer_free(t);
    s.pre_tokenizer = SMALL_METASPACE("never", "false");
    t = make(&s);
    check(t, "hello hello", "hello| hello|");
    ls_tokenizer_free(t);
    /* Older files do not say it. */
    s.pre_tokenizer = "{\"type\": \"Metaspace\", \"replacement\": \"" LS_SPACE_MARK
                      "\", \"add_prefix_space\": true}";
    t = make(&s);
    check_as(t, "hello<s>hello  x", &special, " hello|<1>| hello| | |x|");
    ls_tokenizer_free(t);
}

/* Without tokens for bytes, a character becomes the unknown token; a run of them becomes one. */
static void test_unknown(void **state) {
    (void)state;
    small_tokenizer s = llama2();
    s.model = "\"unk_token\": \"<unk>\", \"fuse_unk\": true, ";
    ls_tokenizer *t = make(&s);
    check(t, "hell\xC3\xA9\xC3\xA9x\xC3\xA9", " |hell|<0>|x|<0>|");
    ls_tokenizer_free(t);
    s.model = "\"unk_token\": \"<unk>\", ";
    t = make(&s);
    check(t, "\xC3\xA9\xC3\xA9", " |<0>|<0>|");
    ls_tokenizer_free(t);
}

/* Where merges join a space to what comes before it, a text is not cut at spaces. */
static void test_merges_across_spaces(void **state) {
    (void)state;
    static const char *const tokens[] = {M, "a", "a" M, "a" M "a", NULL};
    static const char *const merges[] = {"a " M, "a" M " a", NULL};
    small_tokenizer s = llama2();
    s.tokens = tokens;
    s.merges = merges;
    ls_tokenizer *t = make(&s);
    check(t, "a a a", " |a |a a|");
    ls_tokenizer_free(t);
}

/* ---- all ---- */

/* Each kind is written so that reading and writing it again gives the same text. */
static void test_written(void **state) {
    (void)state;
    small_tokenizer kinds[7] = {llama2(), llama2(), llama2(), llama2()};
    kinds[1].normalizer = SMALL_REPLACE;
    kinds[2].normalizer = NULL;
    kinds[2].pre_tokenizer = SMALL_METASPACE("first", "false");
    kinds[3].normalizer = NULL;
    kinds[3].pre_tokenizer = SMALL_METASPACE("always", "true");
    for (int i = 4; i < 7; i++) {
        kinds[i] = (small_tokenizer){.tokens = english, .merges = english_merges};
        kinds[i].pre_tokenizer = i == 4 ? SMALL_BYTE_LEVEL : i == 5 ? DIGITS : LLAMA3;
        kinds[i].normalizer = i == 6 ? "{\"type\": \"NFC\"}" : NULL;
        kinds[i].model = i == 6 ? "\"ignore_merges\": true, " : NULL;
        kinds[i].added = "[" ADDED("265", "<|a|>", "\"special\": true, \"lstrip\": true") "]";
    }
    for (int i = 0; i < 7; i++) {
        ls_buf once = {0}, twice = {0};
        ls_tokenizer *t = make(&kinds[i]);
        ls_tokenizer_write(t, &once);
        ls_tokenizer *u = parse(once.data);
        ls_tokenizer_write(u, &twice);
        assert_string_equal(once.data, twice.data);
        if (i < 4)
            check(u, "hello \xC3\xA9", i == 1 ? "hello| |\xC3|\xA9|" : " hello| |\xC3|\xA9|");
        else
            check(u, "12hello", i == 5 ? "1|2|hello|" : "12|hello|");
        ls_tokenizer_free(t);
        ls_tokenizer_free(u);
        ls_buf_free(&once);
        ls_buf_free(&twice);
    }
}

/* Characters come out whole, however tokens divide them; other bytes come out as they are. */
static void test_decoding_by_token(void **state) {
    (void)state;
    const small_tokenizer s = {.pre_tokenizer = SMALL_BYTE_LEVEL};
    static const struct {
        uint8_t byte;
        const char *out;
    } steps[] = {{'a', "a"},
                 {0xE6, ""},
                 {0x97, ""},
                 {0xA5, "\xE6\x97\xA5"},
                 {0xC3, ""},
                 {'b', "\xC3"
                       "b"},
                 {0x80, "\x80"},
                 {0xF0, ""},
                 {0x9F, ""},
                 {0xC3, "\xF0\x9F"},
                 {0xA9, "\xC3\xA9"},
                 {0xFF, "\xFF"},
                 {0xE6, ""}};
    ls_tokenizer *t = make(&s);
    ls_decoding d = {.tokenizer = t};
    ls_buf out = {0};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        out.len = 0;
        ls_decoding_add(&d, steps[i].byte, &out);
        ls_buf_append(&out, "", 0);
        assert_string_equal(out.data, steps[i].out);
    }
    ls_decoding_add(&d, 1000000, &out); /* no token: nothing */
    out.len = 0;
    ls_decoding_end(&d, &out);
    assert_string_equal(out.data, "\xE6");
    ls_buf_free(&out);
    ls_tokenizer_free(t);
}

static void check_refused(const small_tokenizer *s, const char *message) {
    ls_error e;
    ls_tokenizer *t = NULL;
    char *json = small_json(s);
    assert_ls_fails(ls_tokenizer_parse(json, strlen(json), "t.json", &t, &e), LS_EINVAL, message,
                    e);
    assert_memory_equal(e.msg, "t.json: ", 8);
    free(json);
}

static void test_refused_byte_level(void **state) {
    (void)state;
    static const char *const normalizers[][2] = {
        {"{\"type\": \"Lowercase\"}", "normalizer.type is \"Lowercase\""},
        {"{\"type\": \"NFC\", \"form\": 1}", "normalizer.form is not supported"},
        {"5", "normalizer.type is null"},
        {SMALL_REPLACE, "normalizer: Replace with ByteLevel"},
        {"{\"type\": \"Prepend\", \"prepend\": \"" M "\"}", "Prepend without Replace"},
        {"{\"type\": \"Sequence\"}", "normalizer.normalizers is missing"},
        {"{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Strip\"}]}",
         "normalizer.normalizers[1].type is \"Strip\""},
    };
    static const char *const pretokenizers[][2] = {
        {SPLIT("{\"Regex\": \"\\\\w+\"}"), "pre_tokenizer.pretokenizers[0].pattern: the expression "
                                           "has \\w at byte 0"},
        {SPLIT("{\"Regex\": \"(a\"}"), "is not a regular expression"},
        {SPLIT("{\"Regex\": \"a\", \"String\": \"b\"}"), "pattern is {"},
        {SPLIT("\"a\""), "pattern is \"a\"; expected a Regex or a String"},
        {SPLIT("{\"String\": \"\"}"), "can match an empty text"},
        {"{\"type\": \"Sequence\", \"pretokenizers\": [" SMALL_BYTE_LEVEL ", " SMALL_BYTE_LEVEL
         "]}",
         "pretokenizers[1].type is \"ByteLevel\", which is not supported here"},
        {"{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
         "\"individual_digits\": 1}]}",
         "individual_digits is 1"},
        {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Removed\", "
         "\"invert\": false}",
         "pre_tokenizer.behavior is \"Removed\"; only \"Isolated\" is supported"},
        {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Removed\", "
         "\"invert\": true}",
         "pre_tokenizer.behavior is \"Removed\"; only \"Isolated\" is supported"},
        {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": \"Isolated\", "
         "\"invert\": true}",
         "pre_tokenizer.invert is true"},
        {"{\"type\": \"Whitespace\"}", "pre_tokenizer.type is \"Whitespace\""},
    };
    for (size_t i = 0; i < sizeof normalizers / sizeof *normalizers; i++)
        check_refused(
            &(small_tokenizer){.normalizer = normalizers[i][0], .pre_tokenizer = SMALL_BYTE_LEVEL},
            normalizers[i][1]);
    for (size_t i = 0; i < sizeof pretokenizers / sizeof *pretokenizers; i++)
        check_refused(&(small_tokenizer){.pre_tokenizer = pretokenizers[i][0]},
                      pretokenizers[i][1]);
    small_tokenizer s = {.pre_tokenizer = SMALL_BYTE_LEVEL, .decoder = SMALL_DECODER};
    check_refused(&s, "decoder.decoders[0].type is \"Replace\"");
    s.decoder = NULL;
    s.model = "\"byte_fallback\": true, ";
    check_refused(&s, "model.byte_fallback is true");
    s.model = "\"cache\": 1, ";
    check_refused(&s, "model.cache is not supported");
    s.model = "\"fuse_unk\": \"yes\", ";
    check_refused(&s, "model.fuse_unk is \"yes\"");
}

static void test_refused_sequences(void **state) {
    (void)state;
    ls_buf nested = {0};
    for (int i = 0; i < 6; i++)
        ls_buf_printf(&nested, "{\"type\": \"Sequence\", \"normalizers\": [");
    ls_buf_printf(&nested, "{\"type\": \"NFC\"}");
    for (int i = 0; i < 6; i++) ls_buf_printf(&nested, "]}");
    check_refused(&(small_tokenizer){.normalizer = nested.data, .pre_tokenizer = SMALL_BYTE_LEVEL},
                  "nested too deeply");
    nested.len = 0;
    ls_buf_printf(&nested, "{\"type\": \"Sequence\", \"pretokenizers\": [");
    for (int i = 0; i < 7; i++)
        ls_buf_printf(&nested, "{\"type\": \"Digits\", \"individual_digits\": true}, ");
    ls_buf_printf(&nested, SMALL_BYTE_LEVEL "]}");
    check_refused(&(small_tokenizer){.pre_tokenizer = nested.data}, "more than 6 steps");
    ls_buf_free(&nested);
}

static void test_refused_ends(void **state) {
    (void)state;
    static const char *const ends[][2] = {
        {"{\"type\": \"BertProcessing\"}", "post_processor.type is \"BertProcessing\""},
        {SMALL_TEMPLATE("he", "256"), "an id of \"he\" is no token"},
        {SMALL_TEMPLATE("he", "-1"), "an id of \"he\" is no token"},
        {SMALL_TEMPLATE("he", ""), "has no 1 to 16 ids"},
        {SMALL_TEMPLATE("he", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"), "has no 1 to 16 ids"},
        {"{\"type\": \"TemplateProcessing\", \"single\": []}", "one Sequence A"},
        {"{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"B\"}}]}",
         "one Sequence A"},
        {"{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\"}}, "
         "{\"Sequence\": {\"id\": \"A\"}}]}",
         "one Sequence A"},
        {"{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"x\"}}]}",
         "has no 1 to 16 ids for \"x\""},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        check_refused(
            &(small_tokenizer){.pre_tokenizer = SMALL_BYTE_LEVEL, .post_processor = ends[i][0]},
            ends[i][1]);
}

static void test_refused_added(void **state) {
    (void)state;
    static const char *const added[][2] = {
        {"[" ADDED("256", "<x>", "\"lstrip\": 1") "]", "added_tokens[0].lstrip is 1"},
        {"[" ADDED("256", "<x>", "\"color\": 1") "]", "added_tokens[0].color is not supported"},
        {"[" ADDED("256", "", "\"special\": true") "]", "has 0 bytes"},
    };
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        check_refused(&(small_tokenizer){.pre_tokenizer = SMALL_BYTE_LEVEL, .added = added[i][0]},
                      added[i][1]);
}

static void test_refused_sentencepiece(void **state) {
    (void)state;
    static const char *const spaced[] = {M, "a b", NULL}, *const merges[] = {"< 0x0A>", NULL};
    small_tokenizer s = llama2();
    s.decoder = NULL;
    check_refused(&s, "decoder: only Replace, ByteFallback, Fuse and Strip");
    s.decoder = SMALL_BYTE_LEVEL;
    check_refused(&s, "decoder.type is \"ByteLevel\"");
    s = llama2();
    s.pre_tokenizer = SMALL_METASPACE("first", "false");
    check_refused(&s, "pre_tokenizer: only null");
    s.normalizer = "{\"type\": \"NFC\"}";
    check_refused(&s, "NFC without ByteLevel");
    s.normalizer = NULL;
    s.pre_tokenizer = SMALL_METASPACE("last", "false");
    check_refused(&s, "prepend_scheme is \"last\"");
    s = llama2();
    s.tokens = spaced;
    s.merges = NULL;
    check_refused(&s, "has a space, which SentencePiece spells as U+2581");
    s = llama2();
    s.merges = merges;
    check_refused(&s, "model.merges[0]");
    s = llama2();
    s.model = "\"unk_token\": \"<none>\", \"byte_fallback\": true, ";
    check_refused(&s, "model.unk_token is \"<none>\", which is no token");
    s.model = NULL;
    check_refused(&s, "need byte tokens");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_and_smollm),
        cmocka_unit_test(test_llama3),
        cmocka_unit_test(test_split_inverted),
        cmocka_unit_test(test_qwen),
        cmocka_unit_test(test_split_text),
        cmocka_unit_test(test_missing_bytes),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_added_words),
        cmocka_unit_test(test_normalized_names),
        cmocka_unit_test(test_llama2),
        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_metaspace),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_merges_across_spaces),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_decoding_by_token),
        cmocka_unit_test(test_refused_byte_level),
        cmocka_unit_test(test_refused_sequences),
        cmocka_unit_test(test_refused_ends),
        cmocka_unit_test(test_refused_added),
        cmocka_unit_test(test_refused_sentencepiece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
