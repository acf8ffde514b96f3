/* bpe_train.c - learns the merges of a byte-level BPE from a text.
 *
 * The text becomes a list of distinct words with counts. Each round merges, in all words, the most
 * frequent pair of neighbouring symbols; ties go to the lowest left id, then the lowest right id.
 * Overlapping occurrences count: "aaa" has (a, a) twice.
 *
 * The cost of a round is proportional to the words that it changes:
 *  - Each pair has its exact count and a list of the words where it occurs, or once did.
 *  - A heap holds (count, pair). When a count falls, its heap entry stays as it is; once it comes
 *    up with a count that is too high, it is put back with the current one. A count that rises gets
 *    a new entry.
 *
 * Two different merges may give the same bytes ("a" + "bc", "ab" + "c"); they share one token. A
 * pair that already has a merge may therefore come up again; it is merged but not listed twice.
 *
 * Sources: Sennrich, Haddow & Birch, "Neural machine translation of rare words with subword units",
 * ACL 2016, with its incremental counts; order and ties are those of Hugging Face's tokenizers,
 * BpeTrainer.
 */
#include <stdlib.h>
#include <string.h>

#include "data/bpe.h"
#include "data/spelling.h"

#define NONE UINT32_MAX
/* The most bytes of distinct words: so that every index below fits into 32 bits. */
#define MAX_SYMBOLS (UINT32_MAX / 4)

typedef struct pair {
    uint32_t a, b;
    uint32_t uses;  /* the head of its list in trainer.uses, or NONE */
    uint32_t round; /* the latest round that made new occurrences of it */
    uint64_t count;
} pair;

typedef struct use {
    uint32_t word, next; /* next: an index into trainer.uses, or NONE */
} use;

typedef struct entry {
    uint64_t count;
    uint32_t pair;
} entry;

typedef struct trainer {
    ls_tokenizer *t;
    const ls_words *words;
    uint64_t *counts;  /* [words->n] */
    uint32_t *symbols; /* those of word w begin at words->start[w] */
    uint32_t *lengths; /* [words->n] symbols left of each word */
    ls_pairs index;    /* (a, b) to its index in pairs */
    pair *pairs;       /* [index.n] */
    use *uses;         /* [nuses] */
    entry *heap;       /* [nheap] */
    uint32_t *risen;   /* [nrisen] pairs with new occurrences in this round */
    size_t pairs_cap, nuses, uses_cap, nheap, heap_cap, nrisen, risen_cap;
    uint32_t round;
} trainer;

/* Makes room for one more element. */
static void *grown(void *p, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return p;
    *cap = 2 * *cap + 1024;
    return ls_realloc(p, *cap * size);
}

static bool before(const trainer *r, entry x, entry y) {
    const pair *p = &r->pairs[x.pair], *q = &r->pairs[y.pair];
    if (x.count != y.count) return x.count > y.count;
    return p->a != q->a ? p->a < q->a : p->b < q->b;
}

static void heap_push(trainer *r, uint32_t p) {
    entry new = {r->pairs[p].count, p};
    r->heap = grown(r->heap, r->nheap, &r->heap_cap, sizeof *r->heap);
    size_t at = r->nheap++;
    for (; at > 0 && before(r, new, r->heap[(at - 1) / 2]); at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = new;
}

static entry heap_pop(trainer *r) {
    entry top = r->heap[0], last = r->heap[--r->nheap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < r->nheap && before(r, r->heap[child + 1], r->heap[child])) child++;
        if (child >= r->nheap || !before(r, r->heap[child], last)) break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return top;
}

static pair *pair_at(trainer *r, uint32_t a, uint32_t b) {
    size_t n = r->index.n;
    uint32_t i = ls_pairs_add(&r->index, a, b, (uint32_t)n);
    if (i == n) {
        r->pairs = grown(r->pairs, n, &r->pairs_cap, sizeof *r->pairs);
        r->pairs[i] = (pair){.a = a, .b = b, .uses = NONE};
    }
    return &r->pairs[i];
}

/* `word` has one occurrence fewer. */
static void pair_drop(trainer *r, uint32_t a, uint32_t b, uint32_t word) {
    pair_at(r, a, b)->count -= r->counts[word];
}

/* `word` has one more occurrence. Rounds begin at 1. */
static void pair_raise(trainer *r, uint32_t a, uint32_t b, uint32_t word) {
    pair *p = pair_at(r, a, b);
    p->count += r->counts[word];
    if (p->uses == NONE || r->uses[p->uses].word != word) {
        r->uses = grown(r->uses, r->nuses, &r->uses_cap, sizeof *r->uses);
        r->uses[r->nuses] = (use){word, p->uses};
        p->uses = (uint32_t)r->nuses++;
    }
    if (p->round == r->round) return;
    p->round = r->round;
    r->risen = grown(r->risen, r->nrisen, &r->risen_cap, sizeof *r->risen);
    r->risen[r->nrisen++] = (uint32_t)(p - r->pairs);
}

/* Ends a round: pairs whose count has risen go to the heap. */
static void round_end(trainer *r) {
    for (size_t i = 0; i < r->nrisen; i++) heap_push(r, r->risen[i]);
    r->nrisen = 0;
    r->round++;
}

/* Replaces each a, b by id, from left to right, and updates the neighbouring pairs. */
static void word_merge(trainer *r, uint32_t word, uint32_t a, uint32_t b, uint32_t id) {
    uint32_t *s = r->symbols + r->words->start[word], n = r->lengths[word], to = 0;
    for (uint32_t i = 0; i < n;) {
        if (s[i] != a || i + 1 == n || s[i + 1] != b) {
            s[to++] = s[i++];
            continue;
        }
        if (to > 0) {
            pair_drop(r, s[to - 1], a, word);
            pair_raise(r, s[to - 1], id, word);
        }
        if (i + 2 < n) {
            pair_drop(r, b, s[i + 2], word);
            pair_raise(r, id, s[i + 2], word);
        }
        s[to++] = id;
        i += 2;
    }
    r->lengths[word] = to;
}

/* The token of a's bytes followed by b's: a new one, unless an earlier merge made it. */
static uint32_t token_join(ls_tokenizer *t, uint32_t a, uint32_t b) {
    ls_buf joined = {0};
    size_t n = 0;
    bool fresh = false;
    const uint8_t *bytes = ls_words_at(&t->tokens, a, &n);
    ls_buf_append(&joined, bytes, n);
    bytes = ls_words_at(&t->tokens, b, &n);
    ls_buf_append(&joined, bytes, n);
    uint32_t id = ls_words_add(&t->tokens, (const uint8_t *)joined.data, joined.len, &fresh);
    ls_buf_free(&joined);
    return id;
}

static void pair_merge(trainer *r, uint32_t p) {
    uint32_t a = r->pairs[p].a, b = r->pairs[p].b, id = token_join(r->t, a, b);
    ls_bpe_add_merge(r->t, a, b, id);
    /* Merging a, b makes no new occurrence of (a, b): the list doesn't grow meanwhile. */
    for (uint32_t u = r->pairs[p].uses; u != NONE; u = r->uses[u].next)
        word_merge(r, r->uses[u].word, a, b, id);
    r->pairs[p].count = 0;
    r->pairs[p].uses = NONE;
    round_end(r);
}

/* nends: tokens of the vocabulary that come behind those that are learned. */
static ls_status merges_learn(trainer *r, const char *what, uint32_t vocab, uint32_t nends,
                              ls_error *e) {
    const uint32_t first = r->t->tokens.n;
    ls_bar bar = ls_bar_begin("training the tokenizer: tokens", vocab - nends - first);
    ls_status s = LS_OK;
    while (s == LS_OK && r->t->tokens.n + nends < vocab) {
        ls_bar_at(&bar, r->t->tokens.n - first);
        if (r->nheap == 0) {
            s = ls_fail(e, LS_EINVAL,
                        "%s: has only %u distinct tokens to learn; set model.vocab to at most "
                        "%u, or give more text",
                        what, r->t->tokens.n, r->t->tokens.n + nends);
            break;
        }
        entry top = heap_pop(r);
        uint64_t count = r->pairs[top.pair].count;
        if (count && count == top.count)
            pair_merge(r, top.pair);
        else if (count && count < top.count)
            heap_push(r, top.pair);
    }
    ls_bar_end(&bar);
    return s;
}

/* Splits the words into symbols, one a byte, and counts the pairs. */
static void words_split(trainer *r, const ls_text_cut *cut) {
    const ls_words *w = r->words;
    r->counts = LS_NEW_ARRAY(uint64_t, w->n);
    for (size_t i = 0; i < cut->n; i++)
        if (!(cut->order[i] & LS_CUT_TOKEN)) r->counts[cut->order[i]]++;
    r->lengths = LS_NEW_ARRAY(uint32_t, w->n);
    r->symbols = LS_NEW_ARRAY(uint32_t, w->n ? w->start[w->n] : 0);
    r->round = 1;
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t *s = r->symbols + w->start[i];
        r->lengths[i] = (uint32_t)(w->start[i + 1] - w->start[i]);
        for (uint32_t k = 0; k < r->lengths[i]; k++)
            s[k] = r->t->byte_token[w->bytes[w->start[i] + k]];
        for (uint32_t k = 0; k + 1 < r->lengths[i]; k++) pair_raise(r, s[k], s[k + 1], i);
    }
    round_end(r);
}

/* The 256 bytes, in the order of the characters that spell them. */
static void bytes_add(ls_tokenizer *t) {
    for (uint32_t c = 0; c < 512; c++) {
        int value = ls_spelling_byte(c);
        uint8_t byte = (uint8_t)value;
        bool fresh = false;
        if (value >= 0) t->byte_token[byte] = ls_words_add(&t->tokens, &byte, 1, &fresh);
    }
}

/* The token behind each document, which no text becomes. */
static ls_status add_end(ls_tokenizer *t, const char *what, ls_error *e) {
    static char name[] = LS_END_OF_TEXT; /* is copied */
    enum { N = sizeof name - 1 };
    bool fresh = false;
    ls_added_token end = {.content = name, .nbytes = N, .special = true};
    end.id = ls_words_add(&t->tokens, (const uint8_t *)name, N, &fresh);
    if (!fresh)
        return ls_fail(e, LS_EINVAL, "%s: has " LS_END_OF_TEXT " so often that it became a token",
                       what);
    t->kinds = LS_NEW_ARRAY(uint8_t, t->tokens.n);
    t->kinds[end.id] = LS_TOKEN_SPECIAL;
    return ls_added_tokens_add(&t->added, &end, name, N, what, e);
}

static void trainer_free(trainer *r) {
    ls_pairs_free(&r->index);
    free(r->counts);
    free(r->symbols);
    free(r->lengths);
    free(r->pairs);
    free(r->uses);
    free(r->heap);
    free(r->risen);
}

ls_status ls_tokenizer_train_cut(const ls_text_cut *cut, const char *what, uint32_t vocab,
                                 ls_tokenizer **t_p, ls_error *e) {
    const ls_words *words = &cut->words;
    uint32_t nends = cut->nmarks > 0;
    if (vocab < 256 + nends)
        return ls_fail(e, LS_EINVAL,
                       "model.vocab is %u; a byte-level tokenizer has at least %u tokens%s", vocab,
                       256 + nends, nends ? ", with that at the end of each document" : "");
    if (words->n && words->start[words->n] > MAX_SYMBOLS)
        return ls_fail(e, LS_EINVAL,
                       "%s: has over %u bytes of distinct words; train the tokenizer on a part of "
                       "it",
                       what, MAX_SYMBOLS);
    trainer r = {.t = ls_bpe_create(true), .words = words};
    bytes_add(r.t);
    words_split(&r, cut);
    ls_status s = ls_pretokenizer_add(&r.t->pretokenizer, LS_CUT_GPT2, NULL, what, e);
    if (s == LS_OK) s = merges_learn(&r, what, vocab, nends, e);
    if (s == LS_OK && nends) s = add_end(r.t, what, e);
    trainer_free(&r);
    if (s == LS_OK)
        *t_p = r.t;
    else
        ls_tokenizer_free(r.t);
    return s;
}
