/* vocabulary.c - see vocabulary.h. */
#include "data/vocabulary.h"

#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "data/sentencepiece.h"
#include "data/spelling.h"

/* Appends the key of a token; returns what is wrong with its spelling, or NULL. */
static const char *key_of(const ls_tokenizer *t, ls_token_kind kind, const char *text, size_t n,
                          ls_buf *key) {
    bool plain = kind == LS_TOKEN_ADDED || kind == LS_TOKEN_SPECIAL;
    if (kind == LS_TOKEN_BYTE) {
        int value = ls_spelling_single_byte(text, n);
        const uint8_t bytes[2] = {0xFF, (uint8_t)value};
        ls_buf_append(key, bytes, 2);
        return value < 0 ? "is not spelt as a byte, like <0x0A>" : NULL;
    }
    if (t->byte_level && !plain)
        return ls_spelling_read(text, n, key) ? NULL : "is not spelt in GPT-2's byte alphabet";
    if (!ls_utf8_is_valid(text, n) || memchr(text, 0, n)) return "is not UTF-8 text";
    if (!plain && memchr(text, ' ', n)) return "has a space, which SentencePiece spells as U+2581";
    if (t->byte_level)
        ls_buf_append(key, text, n);
    else
        ls_spelling_read_spaces(text, n, key);
    return NULL;
}

ls_status ls_vocabulary_add(ls_tokenizer *t, const char *text, size_t n, const char *what,
                            ls_error *e) {
    uint32_t id = t->tokens.n, at = id;
    ls_token_kind kind = ls_bpe_kind(t, id);
    ls_buf key = {0};
    bool fresh = false;
    const char *wrong = n ? key_of(t, kind, text, n, &key) : "is empty";
    if (!wrong) at = ls_words_add(&t->tokens, (const uint8_t *)key.data, key.len, &fresh);
    if (fresh && t->byte_level && key.len == 1) t->byte_token[(uint8_t)key.data[0]] = id;
    if (fresh && kind == LS_TOKEN_BYTE) t->byte_token[(uint8_t)key.data[1]] = id;
    ls_buf_free(&key);
    int shown = n < 48 ? (int)n : 48;
    if (wrong)
        return ls_fail(e, LS_EINVAL, "%s: token \"%.*s\" (id %u) %s", what, shown, text, id, wrong);
    if (!fresh)
        return ls_fail(e, LS_EINVAL, "%s: tokens %u and %u stand for the same bytes, \"%.*s\"",
                       what, at, id, shown, text);
    return LS_OK;
}

/* What is looked for in the text: of a normalized token, its content as it is in a normalized
 * text. */
ls_status ls_vocabulary_name(ls_tokenizer *t, const ls_added_token *token, const char *what,
                             ls_error *e) {
    const uint8_t *text = (const uint8_t *)token->content;
    ls_buf pattern = {0};
    bool changed = false;
    if (token->normalized && !t->byte_level && t->spaces <= LS_SPACE_PREPEND)
        changed = ls_sentencepiece_normalize(t->spaces, text, token->nbytes, true, &pattern);
    else if (token->normalized && t->compose)
        changed = ls_unicode_compose(text, token->nbytes, &pattern);
    if (!changed) ls_buf_append(&pattern, text, token->nbytes);
    ls_status s = ls_added_tokens_add(&t->added, token, pattern.data, pattern.len, what, e);
    ls_buf_free(&pattern);
    return s;
}

/* Bytes that texts have all the time must have tokens. The others, such as control characters, may
 * lack them: SmolLM2's tokenizer has none for 21 bytes. */
static ls_status check_bytes(const ls_tokenizer *t, const char *what, ls_error *e) {
    for (unsigned byte = ' '; byte < 127; byte++)
        if (t->byte_token[byte] == LS_NO_TOKEN)
            return ls_fail(e, LS_EINVAL, "%s: the vocabulary has no token for byte 0x%02X", what,
                           byte);
    return LS_OK;
}

static ls_status check_fallback(const ls_tokenizer *t, const char *what, ls_error *e) {
    unsigned missing = 0, first = 0;
    for (unsigned byte = 256; byte-- > 0;)
        if (t->byte_token[byte] == LS_NO_TOKEN) missing++, first = byte;
    if (missing == 256 && t->unknown != LS_NO_TOKEN) return LS_OK;
    if (missing)
        return ls_fail(e, LS_EINVAL,
                       "%s: characters without a token need byte tokens, of which <0x%02X> is "
                       "missing, or an unknown token",
                       what, first);
    return LS_OK;
}

ls_status ls_vocabulary_finish(ls_tokenizer *t, const char *what, ls_error *e) {
    if (t->byte_level) return check_bytes(t, what, e);
    LS_TRY(check_fallback(t, what, e));
    if (t->pretokenizer.nsteps || !ls_sentencepiece_may_cut(t)) return LS_OK;
    return ls_pretokenizer_add(&t->pretokenizer, LS_CUT_SPACES, NULL, what, e);
}
