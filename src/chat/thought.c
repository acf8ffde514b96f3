/* thought.c - see thought.h. */
#include "chat/thought.h"

#include <string.h>

#include "base/json.h"

ls_thought_form ls_thought_form_of(const ls_tokenizer *t) {
    static const char *const marks[][2] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const ls_thought_form f = {
            marks[i][0],
            marks[i][1],
            {ls_tokenizer_find(t, marks[i][0]), ls_tokenizer_find(t, marks[i][1])}};
        if (f.tokens[0] != LS_NO_TOKEN && f.tokens[1] != LS_NO_TOKEN) return f;
    }
    return (ls_thought_form){0};
}

bool ls_thought_is_open(const ls_thought_form *f, const uint32_t *tokens, int64_t n) {
    enum { LAST = 4 }; /* white space may follow the mark */
    for (int64_t i = n; f->open && i-- > 0 && i + LAST >= n;) {
        if (tokens[i] == f->tokens[1]) return false;
        if (tokens[i] == f->tokens[0]) return true;
    }
    return false;
}

/* The place of a word in text [n] from `at` on, or of what may be its beginning at the end. */
static size_t find(const char *word, const char *text, size_t n, size_t at, bool ended) {
    size_t full = strlen(word);
    for (; full && at < n; at++) {
        size_t left = n - at, k = left < full ? left : full;
        if (memcmp(text + at, word, k) == 0 && (k == full || !ended)) return at;
    }
    return n;
}

static size_t skip_space(const char *text, size_t n, size_t at) {
    while (at < n && ls_json_is_space(text[at])) at++;
    return at;
}

ls_thought_text ls_thought_read(const ls_thought_form *f, bool begun, const char *tool,
                                const char *text, size_t n, bool ended) {
    size_t at = skip_space(text, n, 0), open = f->open ? strlen(f->open) : 0;
    ls_thought_text t = {0};
    if (!open) return t;
    t.open = !ended && n - at < open && memcmp(text + at, f->open, n - at) == 0;
    if (t.open) return t;
    if (n - at >= open && memcmp(text + at, f->open, open) == 0)
        at = skip_space(text, n, at + open); /* also where the prompt has it already */
    else if (!begun)
        return t;
    size_t close = find(f->close, text, n, at, ended), call = find(tool, text, n, at, ended);
    bool closed = n - close >= strlen(f->close);
    t.from = at;
    t.to = t.rest = !closed && call < close ? call : close;
    t.open = !closed && !ended;
    if (closed) t.rest = skip_space(text, n, close + strlen(f->close));
    while (t.to > t.from && ls_json_is_space(text[t.to - 1])) t.to--;
    return t;
}
