/* tokenizer.c - encoding, and functions for all tokenizers. See bpe.h for the invariants.
 *
 * A text is cut into words (cut.h), and each distinct word is encoded once. Within a word, the pair
 * of neighbours whose merge comes first in the list is merged, the leftmost of equal ones, until no
 * pair has a merge. The word is a linked list of symbols; a heap holds (rank, place) of the
 * possible merges. A heap entry that a merge made stale is recognised when it comes up, since its
 * place then has another rank. So a word of n bytes takes O(n log n), even one made to be slow.
 *
 * Source: Sennrich, Haddow & Birch, "Neural machine translation of rare words with subword units",
 * ACL 2016; byte level: Radford et al., "Language models are unsupervised multitask learners",
 * 2019.
 */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/bpe.h"

enum { MAX_FILE = 64 << 20 };
#define NONE UINT32_MAX

typedef struct symbol {
    uint32_t id;         /* NONE: it was merged into the one before */
    uint32_t prev, next; /* indices in the word; NONE at its ends */
} symbol;

typedef struct id_list {
    uint32_t *ids; /* [n] */
    size_t n, cap;
} id_list;

typedef struct encoder {
    const ls_tokenizer *t;
    const char *what;
    symbol *symbols; /* [symbols_cap] the current word */
    uint64_t *heap;  /* [2 * symbols_cap] rank << 32 | place; the least on top */
    size_t symbols_cap, nheap;
    id_list encoded; /* the distinct words, one after the other */
} encoder;

bool ls_bpe_add_merge(ls_tokenizer *t, uint32_t a, uint32_t b, uint32_t id) {
    size_t before = t->ranks.n;
    ls_pairs_add(&t->ranks, a, b, t->nmerges);
    if (t->ranks.n == before) return false;
    if (t->nmerges == t->merges_cap) {
        t->merges_cap = 2 * t->merges_cap + 256;
        t->merges = ls_realloc(t->merges, t->merges_cap * sizeof *t->merges);
    }
    t->merges[t->nmerges++] = (ls_merge){a, b, id};
    return true;
}

/* 0..32 are the first 33 of the invisible bytes, 127..160 the next 34, 173 is the last. */
uint32_t ls_bpe_char_of_byte(uint8_t byte) {
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 256u + 33 + byte - 127u;
    return byte == 173 ? 256u + 67 : byte;
}

int ls_bpe_byte_of_char(uint32_t c) {
    uint32_t i = c - 256;
    if (c < 256) return ls_bpe_char_of_byte((uint8_t)c) == c ? (int)c : -1;
    if (i <= 32) return (int)i;
    if (i < 67) return (int)(i - 33 + 127);
    return i == 67 ? 173 : -1;
}

static void heap_push(encoder *c, uint64_t entry) {
    size_t at = c->nheap++;
    for (; at > 0 && c->heap[(at - 1) / 2] > entry; at = (at - 1) / 2)
        c->heap[at] = c->heap[(at - 1) / 2];
    c->heap[at] = entry;
}

static uint64_t heap_pop(encoder *c) {
    uint64_t top = c->heap[0], last = c->heap[--c->nheap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < c->nheap && c->heap[child + 1] < c->heap[child]) child++;
        if (child >= c->nheap || c->heap[child] >= last) break;
        c->heap[at] = c->heap[child];
        at = child;
    }
    c->heap[at] = last;
    return top;
}

/* The rank of the merge of the symbol at `at` with the next, or NONE. */
static uint32_t rank_at(const encoder *c, uint32_t at) {
    const symbol *s = &c->symbols[at];
    if (s->id == NONE || s->next == NONE) return NONE;
    return ls_pairs_get(&c->t->ranks, s->id, c->symbols[s->next].id);
}

static void merge_offer(encoder *c, uint32_t at) {
    uint32_t rank = at == NONE ? NONE : rank_at(c, at);
    if (rank != NONE) heap_push(c, (uint64_t)rank << 32 | at);
}

/* The heap starts with fewer than n entries. A merge pops one and pushes at most two, and there are
 * fewer than n merges: 2n entries are enough. */
static void word_load(encoder *c, const uint8_t *word, uint32_t n) {
    if (n > c->symbols_cap) {
        c->symbols_cap = (size_t)n + 64; /* long words are met early */
        c->symbols = ls_realloc(c->symbols, c->symbols_cap * sizeof *c->symbols);
        c->heap = ls_realloc(c->heap, 2 * c->symbols_cap * sizeof *c->heap);
    }
    c->nheap = 0;
    for (uint32_t i = 0; i < n; i++)
        c->symbols[i] =
            (symbol){c->t->byte_token[word[i]], i ? i - 1 : NONE, i + 1 < n ? i + 1 : NONE};
    for (uint32_t i = 0; i < n; i++) merge_offer(c, i);
}

static void list_append(id_list *l, const uint32_t *ids, size_t n) {
    if (l->n + n > l->cap) {
        l->cap = 2 * (l->n + n) + 256;
        l->ids = ls_realloc(l->ids, l->cap * sizeof *l->ids);
    }
    if (n) memcpy(l->ids + l->n, ids, n * sizeof *ids);
    l->n += n;
}

/* Appends the word's tokens to c->encoded. */
static ls_status word_encode(encoder *c, const uint8_t *word, size_t nbytes, ls_error *e) {
    if (nbytes >= NONE)
        return ls_fail(e, LS_EINVAL, "%s: has a word of %zu bytes; at most %u can be encoded",
                       c->what, nbytes, NONE - 1);
    word_load(c, word, (uint32_t)nbytes);
    while (c->nheap) {
        uint64_t entry = heap_pop(c);
        uint32_t at = (uint32_t)entry, rank = (uint32_t)(entry >> 32);
        if (rank_at(c, at) != rank) continue;
        symbol *s = &c->symbols[at], *right = &c->symbols[s->next];
        s->id = c->t->merges[rank].id;
        s->next = right->next;
        right->id = NONE;
        if (s->next != NONE) c->symbols[s->next].prev = at;
        merge_offer(c, s->prev);
        merge_offer(c, at);
    }
    for (uint32_t at = 0; at != NONE; at = c->symbols[at].next)
        list_append(&c->encoded, &c->symbols[at].id, 1);
    return LS_OK;
}

/* Word i has the tokens spans[i] .. spans[i + 1] of c->encoded. */
static ls_status words_encode(encoder *c, const ls_words *words, size_t *spans, ls_error *e) {
    for (uint32_t i = 0; i < words->n; i++) {
        size_t nbytes = 0;
        const uint8_t *word = ls_words_at(words, i, &nbytes);
        LS_TRY(word_encode(c, word, nbytes, e));
        spans[i + 1] = c->encoded.n;
    }
    return LS_OK;
}

ls_status ls_tokenizer_encode_cut(const ls_tokenizer *t, const ls_cut *cut, const char *what,
                                  ls_token_list *list_p, ls_error *e) {
    encoder c = {.t = t, .what = what};
    id_list out = {0};
    size_t *spans = LS_NEW_ARRAY(size_t, (size_t)cut->words.n + 1);
    ls_status s = words_encode(&c, &cut->words, spans, e);
    for (size_t i = 0; s == LS_OK && i < cut->n; i++) {
        const size_t *span = spans + cut->order[i];
        list_append(&out, c.encoded.ids + span[0], span[1] - span[0]);
    }
    free(spans);
    free(c.encoded.ids);
    free(c.symbols);
    free(c.heap);
    if (s != LS_OK) return s;
    *list_p = (ls_token_list){ls_realloc(out.ids, out.n * sizeof *out.ids), out.n};
    return LS_OK;
}

ls_status ls_tokenizer_encode(const ls_tokenizer *t, const uint8_t *text, size_t nbytes,
                              const char *what, ls_token_list *list_p, ls_error *e) {
    ls_cut cut;
    LS_TRY(ls_cut_make(text, nbytes, what, &cut, e));
    ls_status s = ls_tokenizer_encode_cut(t, &cut, what, list_p, e);
    ls_cut_free(&cut);
    return s;
}

ls_status ls_tokenizer_load(const char *path, ls_tokenizer **t_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, MAX_FILE, &text, e));
    ls_status s = ls_tokenizer_parse(text.data ? text.data : "", text.len, path, t_p, e);
    ls_buf_free(&text);
    return s;
}

const uint8_t *ls_tokenizer_bytes(const ls_tokenizer *t, uint32_t token, size_t *nbytes_p) {
    return ls_words_at(&t->tokens, token, nbytes_p);
}

uint32_t ls_tokenizer_vocab(const ls_tokenizer *t) { return t->tokens.n; }

void ls_tokenizer_free(ls_tokenizer *t) {
    if (!t) return;
    ls_words_free(&t->tokens);
    ls_pairs_free(&t->ranks);
    free(t->merges);
    free(t->added);
    free(t);
}
