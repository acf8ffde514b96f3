/* sentencepiece_test.c - tokens of random texts by random vocabularies with scores, against
 * SentencePiece's algorithm written out: of all neighbours that form a token, merge those with the
 * highest score, the leftmost of equal ones. */
#include "data/sentencepiece.h"

#include "base/random.h"
#include "base/utf8.h"
#include "data/spelling.h"
#include "data/tokenizer_parts.h"
#include "test.h"

/* ---- the reference ---- */

enum { MOST_PIECES = 80, MOST_BYTES = 64, MOST_TEXT = 200, NSPECIAL = 3, FIRST = NSPECIAL + 256 };

typedef struct vocabulary {
    char text[FIRST + MOST_PIECES][MOST_BYTES]; /* spelt with U+2581 */
    float score[FIRST + MOST_PIECES];
    int type[FIRST + MOST_PIECES];
    int n;
} vocabulary;

static int piece_find(const vocabulary *v, const char *text, size_t n) {
    for (int i = FIRST; i < v->n; i++)
        if (strlen(v->text[i]) == n && memcmp(v->text[i], text, n) == 0) return i;
    return -1;
}

/* Tokens of a text, spelt with U+2581, to ids; returns their number. */
static int reference(const vocabulary *v, const char *text, uint32_t *ids) {
    size_t begin[MOST_TEXT + 1] = {0};
    int n = 0, nids = 0;
    uint32_t point;
    for (size_t at = 0; text[at]; begin[++n] = at)
        at += ls_utf8_decode(text + at, strlen(text + at), &point);
    for (;;) {
        int best = -1, best_id = -1;
        for (int i = 0; i + 1 < n; i++) {
            int id = piece_find(v, text + begin[i], begin[i + 2] - begin[i]);
            if (id >= 0 && (best < 0 || v->score[id] > v->score[best_id])) best = i, best_id = id;
        }
        if (best < 0) break;
        memmove(begin + best + 1, begin + best + 2, (size_t)(n - best - 1) * sizeof *begin);
        n--;
    }
    for (int i = 0; i < n; i++) {
        int id = piece_find(v, text + begin[i], begin[i + 1] - begin[i]);
        if (id >= 0) {
            ids[nids++] = (uint32_t)id;
            continue;
        }
        for (size_t at = begin[i]; at < begin[i + 1]; at++)
            ids[nids++] = NSPECIAL + (uint8_t)text[at];
    }
    return nids;
}

/* ---- vocabularies ---- */

static void piece_add(vocabulary *v, const char *a, const char *b) {
    int i = v->n;
    if (strlen(a) + strlen(b) >= MOST_BYTES) return;
    strcpy(v->text[i], a);
    strcat(v->text[i], b);
    if (piece_find(v, v->text[i], strlen(v->text[i])) >= 0) return;
    v->score[i] = (float)-i;
    v->type[i] = LS_PART_NORMAL;
    v->n++;
}

static uint32_t draw(uint64_t round, uint64_t i, uint32_t below) {
    uint32_t w[4];
    ls_random_words(12, LS_STREAM_SAMPLE, round, i, w);
    return w[0] % below;
}

/* Characters, and pieces that are each joined of two earlier ones, so that scores fall from a piece
 * to those that contain it, as training makes them. */
static void make_vocabulary(vocabulary *v, uint64_t round) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    static const char *const alphabets[][4] = {{"a", NULL},
                                               {"a", "b", NULL},
                                               {LS_SPACE_MARK, "a", "\xC3\xA9", NULL},
                                               {"a", "b", "c", NULL}};
    const char *const *alphabet = alphabets[round % 4];
    *v = (vocabulary){.n = 0};
    for (int i = 0; i < NSPECIAL; i++, v->n++) {
        strcpy(v->text[v->n], special[i]);
        v->type[v->n] = i == 0 ? LS_PART_UNKNOWN : LS_PART_CONTROL;
    }
    for (int i = 0; i < 256; i++, v->n++) {
        snprintf(v->text[v->n], MOST_BYTES, "<0x%02X>", (unsigned)i);
        v->type[v->n] = LS_PART_BYTE;
    }
    int letters = 0;
    for (; letters < 4 && alphabet[letters]; letters++) piece_add(v, "", alphabet[letters]);
    for (uint64_t i = 0; v->n < FIRST + letters + (int)(round % 30) && i < 500; i++) {
        uint32_t n = (uint32_t)(v->n - FIRST);
        piece_add(v, v->text[FIRST + draw(round, 2 * i, n)],
                  v->text[FIRST + draw(round, 2 * i + 1, n)]);
    }
    /* As in Mistral's vocabulary, runs of a character may have one score. */
    for (int i = FIRST; round / 4 % 2 && i < v->n; i++)
        if (strspn(v->text[i], "a") == strlen(v->text[i])) v->score[i] = -1e9f;
}

static ls_tokenizer *make(const vocabulary *v, bool prefix, ls_error *e) {
    static ls_part_text tokens[FIRST + MOST_PIECES];
    static int32_t types[FIRST + MOST_PIECES];
    ls_tokenizer *t = NULL;
    for (int i = 0; i < v->n; i++) {
        tokens[i] = (ls_part_text){v->text[i], strlen(v->text[i])};
        types[i] = v->type[i];
    }
    const ls_tokenizer_parts p = {.model = "llama",
                                  .tokens = tokens,
                                  .types = types,
                                  .scores = v->score,
                                  .n = (size_t)v->n,
                                  .bos = 1,
                                  .eos = 2,
                                  .unknown = 0,
                                  .add_bos = true,
                                  .add_space_prefix = prefix};
    return ls_tokenizer_create(&p, "m.gguf", &t, e) == LS_OK ? t : NULL;
}

static void check(const ls_tokenizer *t, const char *text, const uint32_t *want, int n) {
    ls_error e = {0};
    ls_token_list l;
    assert_ls_ok(ls_tokenizer_encode(t, (const uint8_t *)text, strlen(text),
                                     &(ls_encoding){.what = "text"}, &l, &e),
                 e);
    bool same = l.n == (size_t)n && memcmp(l.ids, want, l.n * sizeof *want) == 0;
    if (!same) fail_msg("\"%s\": %zu tokens, expected %d", text, l.n, n);
    free(l.ids);
}

/* A text of the vocabulary's characters and others, with spaces. */
static void make_text(const vocabulary *v, uint64_t round, char text[MOST_TEXT]) {
    static const char *const others[] = {" ", "a", "b", "x", "\xE6\x97\xA5", "\n"};
    *text = 0;
    uint64_t n = draw(round, 1000, 40);
    for (uint64_t i = 0; i < n; i++) {
        int id = FIRST + (int)draw(round, 1001 + i, (uint32_t)(v->n - FIRST));
        const char *more = draw(round, 2001 + i, 4) ? v->text[id] : others[draw(round, i, 6)];
        if (strlen(text) + 3 * strlen(more) < MOST_TEXT / 4) strcat(text, more);
    }
}

static void test_against_reference(void **state) {
    (void)state;
    vocabulary *v = LS_NEW(vocabulary);
    for (uint64_t round = 0; round < 400; round++) {
        ls_error e = {0};
        char text[MOST_TEXT], spelt[MOST_TEXT] = "";
        uint32_t want[MOST_TEXT];
        make_vocabulary(v, round);
        ls_tokenizer *t = make(v, false, &e);
        if (!t) fail_msg("%s", e.msg);
        for (uint64_t k = 0; k < 8; k++) {
            make_text(v, 8 * round + k, text);
            ls_buf marked = {0};
            ls_spelling_write_spaces((const uint8_t *)text, strlen(text), &marked);
            snprintf(spelt, sizeof spelt, "%s", marked.data ? marked.data : "");
            ls_buf_free(&marked);
            check(t, text, want, reference(v, spelt, want));
        }
        ls_tokenizer_free(t);
    }
    free(v);
}

/* The tokenizer.json that is written has the same tokens. */
static void test_written(void **state) {
    (void)state;
    vocabulary *v = LS_NEW(vocabulary);
    for (uint64_t round = 0; round < 40; round++) {
        ls_error e = {0};
        ls_buf json = {0}, again = {0};
        ls_tokenizer *u = NULL;
        char text[MOST_TEXT];
        make_vocabulary(v, round);
        ls_tokenizer *t = make(v, round % 2, &e);
        if (!t) fail_msg("%s", e.msg);
        ls_tokenizer_write(t, &json);
        assert_ls_ok(ls_tokenizer_parse(json.data, json.len, "t.json", &u, &e), e);
        ls_tokenizer_write(u, &again);
        assert_string_equal(json.data, again.data);
        for (uint64_t k = 0; k < 4; k++) {
            ls_token_list l;
            make_text(v, 8 * round + k, text);
            assert_ls_ok(ls_tokenizer_encode(t, (uint8_t *)text, strlen(text),
                                             &(ls_encoding){.what = "t"}, &l, &e),
                         e);
            check(u, text, l.ids, (int)l.n);
            free(l.ids);
        }
        ls_tokenizer_free(t);
        ls_tokenizer_free(u);
        ls_buf_free(&json);
        ls_buf_free(&again);
    }
    free(v);
}

static void check_normalized(ls_space_rule rule, bool is_first, const char *text,
                             const char *want) {
    ls_buf out = {0};
    bool changed =
        ls_sentencepiece_normalize(rule, (const uint8_t *)text, strlen(text), is_first, &out);
    assert_string_equal(changed ? out.data : text, want);
    ls_buf_free(&out);
}

static void test_spaces(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        check_normalized(LS_SPACE_AS_IS, first, "a" LS_SPACE_MARK "b", "a b");
        check_normalized(LS_SPACE_NEVER, first, "a", "a");
        check_normalized(LS_SPACE_PREPEND, first, "a", " a");
        check_normalized(LS_SPACE_PREPEND, first, " a", "  a");
        check_normalized(LS_SPACE_ALWAYS, first, "a", " a");
        check_normalized(LS_SPACE_ALWAYS, first, " a", " a");
        check_normalized(LS_SPACE_ALWAYS, first, LS_SPACE_MARK "a", " a");
        check_normalized(LS_SPACE_FIRST, first, "a", first ? " a" : "a");
        check_normalized(LS_SPACE_FIRST, first, " a", " a");
    }
}

static void check_refused(const vocabulary *v, const char *message) {
    ls_error e = {0};
    assert_null(make(v, true, &e));
    if (!strstr(e.msg, message)) fail_msg("'%s' does not say '%s'", e.msg, message);
}

static void test_refused(void **state) {
    (void)state;
    vocabulary *v = LS_NEW(vocabulary);
    make_vocabulary(v, 0); /* "a" alone */
    piece_add(v, "a", "b");
    piece_add(v, "a", "a");
    piece_add(v, "", "b");
    v->score[FIRST + 2] = v->score[FIRST + 1];
    check_refused(v, "m.gguf: tokens 261 and 260 have the same score, -260");
    v->score[FIRST + 1] = 0.0f / (float)(v->n - v->n);
    check_refused(v, "token 260 has a score that is not a number");
    v->score[FIRST + 1] = 1;
    strcpy(v->text[FIRST + 2], "a a");
    check_refused(v, "has a space");
    strcpy(v->text[FIRST + 2], "a\xFF");
    check_refused(v, "is not UTF-8");
    strcpy(v->text[FIRST + 2], "ab");
    check_refused(v, "tokens 260 and 261 stand for the same bytes");
    strcpy(v->text[FIRST + 2], "aa");
    v->type[NSPECIAL + 10] = LS_PART_UNUSED;
    check_refused(v, "<0x0A> is missing");
    strcpy(v->text[NSPECIAL + 10], "<0x0a>");
    v->type[NSPECIAL + 10] = LS_PART_BYTE;
    check_refused(v, "is not spelt as a byte");
    free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_reference),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
