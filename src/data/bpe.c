/* bpe.c - byte-pair encoding of words. See bpe.h for the invariants.
 *
 * Within a word, the pair of neighbours whose merge comes first in the list is merged, the leftmost
 * of equal ones, until no pair has a merge. The word is a linked list of symbols; a heap holds
 * (rank, place) of the possible merges. A heap entry that a merge made stale is recognised when it
 * comes up, since its place then has another rank. So a word of n bytes takes O(n log n), even one
 * made to be slow.
 *
 * Source: Sennrich, Haddow & Birch, "Neural machine translation of rare words with subword units",
 * ACL 2016; byte level: Radford et al., "Language models are unsupervised multitask learners",
 * 2019; bytes for unknown characters: Kudo & Richardson, "SentencePiece", EMNLP 2018.
 */
#include "data/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/spelling.h"

#define NONE LS_NO_TOKEN

typedef struct symbol {
    uint32_t id;         /* NONE: it was merged into the one before */
    uint32_t prev, next; /* indices in the word; NONE at its ends */
} symbol;

typedef struct encoder {
    const ls_tokenizer *t;
    uint32_t ascii_token[128]; /* SentencePiece: of each ASCII character, or NONE */
    symbol *symbols;           /* [symbols_cap] the current word has n */
    uint64_t *heap;            /* [2 * symbols_cap] rank << 32 | place; the least on top */
    size_t symbols_cap, n, nheap;
    uint32_t *ids; /* [nids] the tokens of the words so far */
    size_t nids, ids_cap;
    uint32_t dropped; /* bytes of the current word without a token */
} encoder;

ls_tokenizer *ls_bpe_create(bool byte_level) {
    ls_tokenizer *t = LS_NEW(ls_tokenizer);
    t->byte_level = byte_level;
    t->unknown = NONE;
    for (int i = 0; i < 256; i++) t->byte_token[i] = NONE;
    return t;
}

void ls_tokenizer_free(ls_tokenizer *t) {
    if (!t) return;
    ls_words_free(&t->tokens);
    ls_added_tokens_free(&t->added);
    ls_pretokenizer_free(&t->pretokenizer);
    ls_pairs_free(&t->ranks);
    free(t->kinds);
    free(t->merges);
    free(t);
}

ls_token_kind ls_bpe_kind(const ls_tokenizer *t, uint32_t id) {
    return t->kinds ? (ls_token_kind)t->kinds[id] : LS_TOKEN_NORMAL;
}

bool ls_bpe_may_merge(const ls_tokenizer *t, uint32_t id) {
    ls_token_kind kind = ls_bpe_kind(t, id);
    return kind == LS_TOKEN_NORMAL || kind == LS_TOKEN_ADDED;
}

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

/* ---- the heap ---- */

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

/* ---- a word's first symbols ---- */

static void symbol_add(encoder *c, uint32_t id) {
    uint32_t at = (uint32_t)c->n++;
    c->symbols[at] = (symbol){id, at ? at - 1 : NONE, at + 1};
}

static void unknown_add(encoder *c) {
    uint32_t id = c->t->unknown;
    if (id == NONE)
        c->dropped++;
    else if (!c->t->fuse_unknown || c->n == 0 || c->symbols[c->n - 1].id != id)
        symbol_add(c, id);
}

static void bytes_load(encoder *c, const uint8_t *word, size_t nbytes) {
    for (size_t i = 0; i < nbytes; i++) {
        uint32_t id = c->t->byte_token[word[i]];
        if (id != NONE)
            symbol_add(c, id);
        else
            unknown_add(c);
    }
}

/* The token of one character, or NONE. Special tokens are no characters. */
static uint32_t token_of_char(const ls_tokenizer *t, const uint8_t *s, size_t nbytes) {
    uint32_t id = ls_words_find(&t->tokens, s, nbytes);
    return id == NONE || ls_bpe_kind(t, id) == LS_TOKEN_NORMAL ? id : NONE;
}

static void chars_load(encoder *c, const uint8_t *word, size_t nbytes) {
    const ls_tokenizer *t = c->t;
    uint32_t point = 0;
    for (size_t at = 0, length; at < nbytes; at += length) {
        length = ls_utf8_decode((const char *)word + at, nbytes - at, &point);
        uint32_t id = length == 1 ? c->ascii_token[word[at]] : token_of_char(t, word + at, length);
        if (id != NONE)
            symbol_add(c, id);
        else if (t->byte_token[0] != NONE && word[at] == ' ')
            bytes_load(c, (const uint8_t *)LS_SPACE_MARK, sizeof LS_SPACE_MARK - 1);
        else if (t->byte_token[0] != NONE)
            bytes_load(c, word + at, length);
        else
            unknown_add(c);
    }
}

/* The most symbols that a byte of a word can become: a space without a token, three. */
static size_t widest(const ls_tokenizer *t) { return t->byte_level ? 1 : 3; }

/* The heap starts with fewer than n entries. A merge pops one and pushes at most two, and there are
 * fewer than n merges: 2n entries are enough. */
static void word_load(encoder *c, const uint8_t *word, size_t nbytes) {
    size_t most = widest(c->t) * nbytes;
    if (most > c->symbols_cap) {
        c->symbols_cap = most + 64; /* long words are met early */
        c->symbols = ls_realloc(c->symbols, c->symbols_cap * sizeof *c->symbols);
        c->heap = ls_realloc(c->heap, 2 * c->symbols_cap * sizeof *c->heap);
    }
    c->n = c->nheap = 0;
    c->dropped = 0;
    if (c->t->byte_level)
        bytes_load(c, word, nbytes);
    else
        chars_load(c, word, nbytes);
    if (c->n) c->symbols[c->n - 1].next = NONE;
    for (uint32_t i = 0; i < c->n; i++) merge_offer(c, i);
}

/* ---- words ---- */

static void id_append(encoder *c, uint32_t id) {
    if (c->nids == c->ids_cap) {
        c->ids_cap = 2 * c->ids_cap + 256;
        c->ids = ls_realloc(c->ids, c->ids_cap * sizeof *c->ids);
    }
    c->ids[c->nids++] = id;
}

static void merge_all(encoder *c) {
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
}

static void word_encode(encoder *c, const uint8_t *word, size_t nbytes) {
    if (c->t->ignore_merges) {
        uint32_t id = ls_words_find(&c->t->tokens, word, nbytes);
        if (id != NONE && ls_bpe_kind(c->t, id) == LS_TOKEN_NORMAL) {
            id_append(c, id);
            return;
        }
    }
    word_load(c, word, nbytes);
    merge_all(c);
    for (uint32_t at = c->n ? 0 : NONE; at != NONE; at = c->symbols[at].next)
        id_append(c, c->symbols[at].id);
}

static void dropped_set(ls_encoded *out, uint32_t i, uint32_t n, uint32_t dropped) {
    if (!dropped) return;
    if (!out->dropped) out->dropped = LS_NEW_ARRAY(uint32_t, n);
    out->dropped[i] = dropped;
}

ls_status ls_bpe_encode(const ls_tokenizer *t, const ls_words *words, const char *what,
                        ls_encoded *out_p, ls_error *e) {
    encoder c = {.t = t};
    ls_encoded out = {.ends = LS_NEW_ARRAY(size_t, words->n)};
    const size_t most = (NONE - 1) / widest(t);
    ls_status s = LS_OK;
    for (uint8_t i = 0; i < 128 && !t->byte_level; i++) c.ascii_token[i] = token_of_char(t, &i, 1);
    for (uint32_t i = 0; s == LS_OK && i < words->n; i++) {
        size_t nbytes = 0;
        const uint8_t *word = ls_words_at(words, i, &nbytes);
        if (nbytes > most)
            s = ls_fail(e, LS_EINVAL, "%s: has a word of %zu bytes; at most %zu can be encoded",
                        what, nbytes, most);
        if (s == LS_OK) word_encode(&c, word, nbytes);
        out.ends[i] = c.nids;
        dropped_set(&out, i, words->n, c.dropped);
        c.dropped = 0;
    }
    free(c.symbols);
    free(c.heap);
    out.ids = c.ids;
    if (s == LS_OK)
        *out_p = out;
    else
        ls_encoded_free(&out);
    return s;
}

void ls_encoded_free(ls_encoded *c) {
    free(c->ids);
    free(c->ends);
    free(c->dropped);
    *c = (ls_encoded){0};
}
