/* added_tokens.c - see added_tokens.h.
 *
 * The order in which names, white space and words count is that of Hugging Face's tokenizers,
 * AddedVocabulary: a name that is found, but is not recognised (it is special, or not a single
 * word), is passed over as a whole. Where a range of the text is plain, the search goes on with its
 * next byte instead, so that data can't hide a name that follows it.
 */
#include "data/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unicode.h"
#include "base/utf8.h"

enum { MOST_BYTES = 1024 };

/* ---- the tree of names ---- */

static uint32_t node_add(ls_name_tree *t, uint8_t byte) {
    t->nodes = ls_grow(t->nodes, t->n, sizeof *t->nodes);
    t->nodes[t->n] = (ls_name_node){.byte = byte};
    return t->n++;
}

/* The child of a node for a byte, or 0. */
static uint32_t child_of(const ls_name_tree *t, uint32_t node, uint8_t byte) {
    if (node == 0) return t->first[byte];
    uint32_t c = t->nodes[node].child;
    while (c && t->nodes[c].byte != byte) c = t->nodes[c].next;
    return c;
}

static ls_name_node *name_add(ls_name_tree *t, const char *name, size_t n) {
    uint32_t at = 0;
    if (!t->nodes) node_add(t, 0);
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)name[i];
        uint32_t child = child_of(t, at, byte);
        if (!child) {
            child = node_add(t, byte);
            t->nodes[child].next = t->nodes[at].child;
            t->nodes[at].child = child;
            if (at == 0) t->first[byte] = child;
        }
        at = child;
    }
    return &t->nodes[at];
}

/* The longest name at the beginning of s [n]: its token's index + 1, or 0. */
static uint32_t name_at(const ls_name_tree *t, const uint8_t *s, size_t n, size_t *nbytes_p) {
    uint32_t found = 0, at = 0;
    for (size_t i = 0; i < n && (at = child_of(t, at, s[i]));) {
        i++;
        if (!t->nodes[at].token) continue;
        found = t->nodes[at].token;
        *nbytes_p = i;
    }
    return found;
}

/* ---- the list ---- */

ls_status ls_added_tokens_add(ls_added_tokens *a, const ls_added_token *token, const char *pattern,
                              size_t npattern, const char *what, ls_error *e) {
    if (npattern == 0 || npattern > MOST_BYTES)
        return ls_fail(e, LS_EINVAL, "%s: added token %u has %zu bytes; 1 to %d are supported",
                       what, token->id, npattern, MOST_BYTES);
    ls_name_node *end = name_add(token->normalized ? &a->normalized : &a->raw, pattern, npattern);
    if (end->token)
        return ls_fail(e, LS_EINVAL, "%s: added tokens %u and %u have the same text, %.64s", what,
                       a->tokens[end->token - 1].id, token->id, pattern);
    a->tokens = ls_grow(a->tokens, a->n, sizeof *a->tokens);
    ls_added_token *t = &a->tokens[a->n++];
    *t = *token;
    t->content = ls_alloc(t->nbytes + 1);
    memcpy(t->content, token->content, t->nbytes);
    end->token = a->n;
    return LS_OK;
}

const ls_added_token *ls_added_tokens_find(const ls_added_tokens *a, const char *content,
                                           size_t n) {
    for (uint32_t i = 0; i < a->n; i++)
        if (a->tokens[i].nbytes == n && memcmp(a->tokens[i].content, content, n) == 0)
            return &a->tokens[i];
    return NULL;
}

void ls_added_tokens_free(ls_added_tokens *a) {
    for (uint32_t i = 0; i < a->n; i++) free(a->tokens[i].content);
    free(a->tokens);
    free(a->raw.nodes);
    free(a->normalized.nodes);
    *a = (ls_added_tokens){0};
}

/* ---- the text ---- */

/* The beginning of the character that ends at `end` > 0. */
static size_t before(const uint8_t *s, size_t end) {
    size_t at = end - 1;
    while (at > 0 && s[at] >> 6 == 2) at--;
    return at;
}

static uint32_t point_at(const uint8_t *s, size_t n, size_t at, size_t *next_p) {
    uint32_t point = 0;
    *next_p = at + ls_utf8_decode((const char *)s + at, n - at, &point);
    return point;
}

static bool is_single_word(const uint8_t *s, size_t n, ls_text_range m) {
    size_t next;
    if (m.from > 0 && ls_unicode_is_word(point_at(s, n, before(s, m.from), &next))) return false;
    return m.to == n || !ls_unicode_is_word(point_at(s, n, m.to, &next));
}

/* Widens a match by the white space that its token takes, but not to before `least`. */
static ls_text_range stripped(const ls_added_token *t, const uint8_t *s, size_t n, ls_text_range m,
                              size_t least) {
    size_t next;
    while (t->lstrip && m.from > least &&
           ls_unicode_is_space(point_at(s, n, before(s, m.from), &next)))
        m.from = before(s, m.from);
    while (t->rstrip && m.to < n && ls_unicode_is_space(point_at(s, n, m.to, &next))) m.to = next;
    return m;
}

static void append(ls_added_spans *out, size_t from, size_t to, uint32_t id) {
    out->spans = ls_grow(out->spans, out->n, sizeof *out->spans);
    out->spans[out->n++] = (ls_added_span){from, to, id};
}

/* Whether a match overlaps a plain range; *i: the first range that doesn't end before the match. */
static bool is_plain(const ls_added_query *q, ls_text_range m, size_t *i) {
    while (*i < q->nplain && q->plain[*i].to <= m.from) ++*i;
    return *i < q->nplain && q->plain[*i].from < m.to;
}

void ls_added_tokens_split(const ls_added_tokens *a, const uint8_t *s, size_t n,
                           const ls_added_query *q, ls_added_spans *out) {
    const ls_name_tree *names = q->normalized ? &a->normalized : &a->raw;
    size_t done = 0, plain = 0;
    for (size_t at = 0, nbytes = 0; names->nodes && at < n;) {
        uint32_t found = names->first[s[at]] ? name_at(names, s + at, n - at, &nbytes) : 0;
        if (!found) {
            at++;
            continue;
        }
        const ls_added_token *t = &a->tokens[found - 1];
        ls_text_range m = {at, at + nbytes};
        bool hidden = t->special && q->special && is_plain(q, m, &plain);
        at = hidden ? at + 1 : m.to;
        if (hidden || (t->special && !q->special)) continue;
        if (t->single_word && !is_single_word(s, n, m)) continue;
        m = stripped(t, s, n, m, done);
        if (done < m.from) append(out, done, m.from, LS_NO_TOKEN);
        append(out, m.from, m.to, t->id);
        if (done < m.to) done = m.to;
    }
    if (done < n) append(out, done, n, LS_NO_TOKEN);
}
