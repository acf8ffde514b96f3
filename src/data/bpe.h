/* bpe.h - the internals of a tokenizer, for the files that build, write and use one.
 *
 * There are two kinds. A byte-level tokenizer (GPT-2, Llama 3, Qwen) merges from single bytes. A
 * SentencePiece tokenizer (Llama 2, Mistral) merges from characters; a character without a token
 * becomes its bytes, each a token of its own, or the unknown token. Its tokens hold a space where
 * the vocabulary spells U+2581, and U+2581 in a text becomes a space.
 *
 * Invariants:
 *  (1) No two tokens have the same key in `tokens`; each key has at least one byte. The key of a
 *      single byte of SentencePiece is 0xFF, which no text has, and the byte; of all other tokens
 *      it is the bytes that the token stands for.
 *  (2) Every text can be encoded. Byte-level: bytes that the vocabulary doesn't have become the
 *      unknown token, or are left out if there is none. SentencePiece: byte_token[] is complete, or
 *      `unknown` is set.
 *  (3) Merge i turns neighbours a, b into `id`, whose bytes are those of a followed by those of b.
 *      All three may be merged. No two merges have the same (a, b); ranks maps (a, b) to i.
 */
#ifndef LS_DATA_BPE_H
#define LS_DATA_BPE_H

#include <stdbool.h>

#include "data/added_tokens.h"
#include "data/pairs.h"
#include "data/text_cut.h"
#include "data/tokenizer.h"

typedef struct ls_merge {
    uint32_t a, b, id;
} ls_merge;

typedef enum ls_token_kind {
    LS_TOKEN_NORMAL,
    LS_TOKEN_BYTE,    /* SentencePiece: stands for a single byte */
    LS_TOKEN_ADDED,   /* in `added`, and not special */
    LS_TOKEN_SPECIAL, /* in `added`, and special */
    LS_TOKEN_UNUSED   /* no text becomes it */
} ls_token_kind;

/* How SentencePiece's spaces come about. A space before the text's first word makes that a word
 * like all others. */
typedef enum ls_space_rule {
    LS_SPACE_AS_IS,   /* a normalizer spells spaces, and adds none */
    LS_SPACE_PREPEND, /* a normalizer puts a space before every piece of text */
    LS_SPACE_NEVER,   /* a pre-tokenizer spells spaces, and adds none */
    LS_SPACE_FIRST,   /* ... and puts one before the text unless it begins with one */
    LS_SPACE_ALWAYS   /* ... before every piece that does not begin with one */
} ls_space_rule;

enum { LS_MAX_ENDS = 16 };

/* Tokens that are put at one end of a text. */
typedef struct ls_end_tokens {
    uint32_t ids[LS_MAX_ENDS]; /* [n] */
    int n;
} ls_end_tokens;

struct ls_tokenizer {
    ls_words tokens; /* by id: their keys */
    uint8_t *kinds;  /* [tokens.n] of ls_token_kind; NULL: all are normal */
    ls_added_tokens added;

    bool byte_level;          /* else SentencePiece */
    bool ignore_merges;       /* a word that is a token needs no merges */
    uint32_t byte_token[256]; /* of each single byte, or LS_NO_TOKEN */
    uint32_t unknown;         /* for characters without a token, or LS_NO_TOKEN */
    bool fuse_unknown;        /* one for a run of them */

    ls_merge *merges; /* [nmerges] in order of priority */
    uint32_t nmerges;
    size_t merges_cap;
    ls_pairs ranks;

    bool compose;         /* the text is normalized to NFC */
    ls_space_rule spaces; /* SentencePiece */
    ls_pretokenizer pretokenizer;
    ls_end_tokens begin, end; /* put before and after a text */
    bool strip;               /* decoders drop a space at the beginning of the text */
};

/* A byte-level tokenizer without tokens, or a SentencePiece one. */
ls_tokenizer *ls_bpe_create(bool byte_level);

/* The kind of a token. */
ls_token_kind ls_bpe_kind(const ls_tokenizer *, uint32_t id);

/* May merges have the token? So may normal ones, and added ones: of a word that is added and is in
 * the vocabulary anyway. Special ones never come from a text's own characters. */
bool ls_bpe_may_merge(const ls_tokenizer *, uint32_t id);

/* Appends the token as files of its kind spell it (spelling.h). */
void ls_tokenizer_spell(const ls_tokenizer *, uint32_t id, ls_buf *out);

/* Appends a merge. Returns false and does nothing if (a, b) has one already. */
bool ls_bpe_add_merge(ls_tokenizer *, uint32_t a, uint32_t b, uint32_t id);

/* The tokens of each word of a cut. */
typedef struct ls_encoded {
    uint32_t *ids;     /* the words' tokens, one word after the other */
    size_t *ends;      /* [nwords] where a word's tokens end in ids */
    uint32_t *dropped; /* [nwords] bytes of the word that have no token; NULL: all have */
} ls_encoded;

/* LS_EINVAL: a word has more than 2^32 - 2 bytes; `what` names the text. */
ls_status ls_bpe_encode(const ls_tokenizer *, const ls_words *, const char *what, ls_encoded *out_p,
                        ls_error *);
void ls_encoded_free(ls_encoded *);

#endif
