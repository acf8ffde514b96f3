/* rendering.c - see rendering.h.
 *
 * A conversation that has names of special tokens is rendered twice: as it is, and with a mark
 * before and after each name. Without its marks the second text must be the first one; then the
 * marks are where the template has written what is between them. A mark is a word of small letters
 * and digits that the first text lacks: templates leave it as it is, also as JSON.
 *
 * A name can also arise where two texts meet that each have a part of it. So the beginning of a
 * name at a text's end and the end of a name at its beginning are marked as well, unless the
 * template writes something else for that.
 */
#include "chat/rendering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct marker {
    const ls_added_tokens *added;
    bool first[256], last[256]; /* bytes that special names begin and end with */
    bool parts;                 /* parts of names at the ends of texts are marked, too */
    bool any;                   /* something was marked */
    char open[24], close[24];
} marker;

static marker marker_new(const ls_tokenizer *t, bool parts) {
    marker m = {.added = ls_tokenizer_added(t), .parts = parts};
    for (uint32_t i = 0; i < m.added->n; i++) {
        const ls_added_token *a = &m.added->tokens[i];
        if (!a->special || !a->nbytes) continue;
        m.first[(uint8_t)a->content[0]] = true;
        m.last[(uint8_t)a->content[a->nbytes - 1]] = true;
    }
    return m;
}

/* Chooses marks that the text lacks. */
static void choose_marks(marker *m, const ls_buf *text) {
    bool there = true;
    for (unsigned i = 0; there; i++) {
        snprintf(m->open, sizeof m->open, "qx%ubqx", i);
        snprintf(m->close, sizeof m->close, "qx%ueqx", i);
        there = text->len && (memmem(text->data, text->len, m->open, strlen(m->open)) ||
                              memmem(text->data, text->len, m->close, strlen(m->close)));
    }
}

/* ---- a text ---- */

/* The end of the longest special name at s[at]; with `parts`, of what may be the beginning of one.
 * 0: there is none. */
static size_t name_end(const marker *m, const char *s, size_t n, size_t at) {
    size_t most = 0;
    if (!m->first[(uint8_t)s[at]]) return 0;
    for (uint32_t i = 0; i < m->added->n; i++) {
        const ls_added_token *a = &m->added->tokens[i];
        bool whole = a->nbytes <= n - at;
        size_t length = whole ? a->nbytes : n - at;
        if (!a->special || (!whole && !m->parts) || at + length <= most) continue;
        if (memcmp(s + at, a->content, length) == 0) most = at + length;
    }
    return most;
}

/* How many bytes at the beginning may be the end of a special name. */
static size_t tail_of_name(const marker *m, const char *s, size_t n) {
    size_t most = 0;
    for (uint32_t i = 0; m->parts && i < m->added->n; i++) {
        const ls_added_token *a = &m->added->tokens[i];
        for (size_t k = most + 1; a->special && k < a->nbytes && k <= n; k++)
            if (m->last[(uint8_t)s[k - 1]] && memcmp(s, a->content + a->nbytes - k, k) == 0)
                most = k;
    }
    return most;
}

/* Appends the text with its marks. Returns whether it has any. */
static bool mark_text(const marker *m, const char *s, ls_buf *out) {
    size_t n = strlen(s), to = tail_of_name(m, s, n);
    bool is_open = to > 0, any = is_open;
    if (is_open) ls_buf_append(out, m->open, strlen(m->open));
    for (size_t at = 0; at < n; at++) {
        if (is_open && at == to) {
            ls_buf_append(out, m->close, strlen(m->close));
            is_open = false;
        }
        size_t end = name_end(m, s, n, at);
        if (end && !is_open) ls_buf_append(out, m->open, strlen(m->open));
        is_open = is_open || end;
        any = any || end;
        if (end > to) to = end;
        ls_buf_append(out, s + at, 1);
    }
    if (is_open) ls_buf_append(out, m->close, strlen(m->close));
    return any;
}

/* ---- messages and tools ---- */

/* A copy of the value with marks in all of its texts and keys. */
static ls_json *marked(marker *m, const ls_json *j);

static ls_json *marked_text(marker *m, const ls_json *j) {
    ls_buf text = {0};
    bool any = mark_text(m, ls_json_text(j), &text);
    ls_buf_append(&text, "", 1);
    ls_json *copy = any ? ls_json_new_text(text.data) : ls_json_share(j);
    m->any = m->any || any;
    ls_buf_free(&text);
    return copy;
}

static ls_json *marked_list(marker *m, const ls_json *j, size_t n) {
    ls_json *copy = ls_json_new_array();
    for (size_t i = 0; i < n; i++) ls_json_push(copy, marked(m, ls_json_at(j, i)));
    return copy;
}

static ls_json *marked_object(marker *m, const ls_json *j) {
    ls_json *copy = ls_json_new_object();
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(j, NULL, &key, &value); it;
         it = ls_json_next(j, it, &key, &value)) {
        ls_buf text = {0};
        bool any = mark_text(m, key, &text);
        ls_buf_append(&text, "", 1);
        m->any = m->any || any;
        ls_json_set(copy, text.data, marked(m, value));
        ls_buf_free(&text);
    }
    return copy;
}

static ls_json *marked(marker *m, const ls_json *j) {
    if (ls_json_text(j)) return marked_text(m, j);
    if (ls_json_is_array(j)) return marked_list(m, j, ls_json_count(j));
    return ls_json_is_object(j) ? marked_object(m, j) : ls_json_share(j);
}

/* ---- the marked text ---- */

static void add_range(ls_chat_rendering *r, size_t from, size_t to) {
    if (from == to) return;
    r->plain = ls_grow(r->plain, r->nplain, sizeof *r->plain);
    r->plain[r->nplain++] = (ls_text_range){from, to};
}

/* Skips the mark at *at_p. */
static bool skip(const ls_buf *text, size_t *at_p, const char *mark) {
    size_t n = strlen(mark);
    if (text->len - *at_p < n || memcmp(text->data + *at_p, mark, n) != 0) return false;
    *at_p += n;
    return true;
}

/* Sets r->plain. False: without its marks the text is another one. */
static bool find_marks(const marker *m, const ls_buf *text, ls_chat_rendering *r) {
    size_t at = 0, n = 0, from = 0;
    bool is_open = false, right = true;
    while (right && at < text->len) {
        if (skip(text, &at, m->open)) {
            right = !is_open;
            is_open = true;
            from = n;
        } else if (skip(text, &at, m->close)) {
            right = is_open;
            is_open = false;
            add_range(r, from, n);
        } else {
            right = n < r->text.len && r->text.data[n++] == text->data[at++];
        }
    }
    right = right && !is_open && n == r->text.len;
    if (!right) r->nplain = 0;
    return right;
}

/* Sets r->plain. False: the template writes another text where there are marks. */
static bool find_plain(const ls_chat_format *f, const ls_chat_text *t, bool parts,
                       ls_chat_rendering *r) {
    marker m = marker_new(f->tokenizer, parts);
    ls_chat_text other = *t;
    ls_buf text = {0};
    ls_error why = {0};
    choose_marks(&m, &r->text);
    ls_json *messages = marked_list(&m, t->messages, t->n);
    ls_json *tools = t->tools ? marked(&m, t->tools) : NULL;
    other.messages = messages;
    other.tools = tools;
    bool right =
        !m.any || (ls_chat_write(f, &other, &text, &why) == LS_OK && find_marks(&m, &text, r));
    ls_json_free(messages);
    ls_json_free(tools);
    ls_buf_free(&text);
    return right;
}

/* Names the first message that has the name of a special token. */
static ls_status fail_changed(const ls_chat_format *f, const ls_chat_text *t, ls_error *e) {
    marker m = marker_new(f->tokenizer, false);
    size_t i = 0;
    for (; i < t->n && !m.any; i++) ls_json_free(marked(&m, ls_json_at(t->messages, i)));
    if (!m.any)
        return ls_fail(e, LS_EINVAL,
                       "\"tools\" has the name of a special token, and the template changes what "
                       "it writes because of it; remove the name");
    return ls_fail(e, LS_EINVAL,
                   "message %zu has the name of a special token, and the template changes what it "
                   "writes because of it; remove the name",
                   i);
}

/* Cuts what stands behind the last message's content, which templates may write without the white
 * space around it. */
static ls_status cut(const ls_chat_text *t, ls_chat_rendering *r, ls_error *e) {
    const char *content = ls_json_text(ls_json_get(ls_json_at(t->messages, t->n - 1), "content"));
    size_t n = content ? strlen(content) : 0, end = 0;
    while (n && ls_json_is_space(content[n - 1])) n--;
    while (n && ls_json_is_space(*content)) content++, n--;
    for (size_t at = r->text.len; n && at >= n && !end; at--)
        if (memcmp(r->text.data + at - n, content, n) == 0) end = at;
    if (!end)
        return ls_fail(e, LS_EINVAL, "the chat template does not write the last message's content");
    for (; content[n] && end < r->text.len && r->text.data[end] == content[n]; n++) end++;
    r->text.len = end;
    while (r->nplain && r->plain[r->nplain - 1].from >= end) r->nplain--;
    return LS_OK;
}

ls_status ls_chat_render(const ls_chat_format *f, const ls_chat_text *t, ls_chat_rendering *r_p,
                         ls_error *e) {
    ls_chat_rendering r = {0};
    ls_status s = ls_chat_write(f, t, &r.text, e);
    if (s == LS_OK && !find_plain(f, t, true, &r) && !find_plain(f, t, false, &r))
        s = fail_changed(f, t, e);
    if (s == LS_OK && t->continues) s = cut(t, &r, e);
    if (s == LS_OK)
        *r_p = r;
    else
        ls_chat_rendering_free(&r);
    return s;
}

void ls_chat_rendering_free(ls_chat_rendering *r) {
    ls_buf_free(&r->text);
    free(r->plain);
    *r = (ls_chat_rendering){0};
}
