/* tokenizer_parts.h - a tokenizer from the parts that a model file lists, such as the keys
 * tokenizer.ggml.* of GGUF. */
#ifndef LS_DATA_TOKENIZER_PARTS_H
#define LS_DATA_TOKENIZER_PARTS_H

#include "data/tokenizer.h"

/* Types of tokens, with GGUF's numbers. */
enum {
    LS_PART_NORMAL = 1,
    LS_PART_UNKNOWN,      /* for characters without a token; special */
    LS_PART_CONTROL,      /* special */
    LS_PART_USER_DEFINED, /* looked for in the text before all others */
    LS_PART_UNUSED,       /* no text becomes it */
    LS_PART_BYTE          /* "llama": <0x0A> */
};

typedef struct ls_part_text {
    const char *text; /* [n] */
    size_t n;
} ls_part_text;

/* All is borrowed during the call. */
typedef struct ls_tokenizer_parts {
    const char *model; /* "gpt2": byte-level BPE; "llama": SentencePiece's BPE */
    const char *pre;   /* gpt2: "gpt-2", "smollm", "llama-bpe", "qwen2" ...; how a text is cut */
    const ls_part_text *tokens; /* [n] spelt as spelling.h says; control and user-defined: text */
    const int32_t *types;       /* [n] NULL: all are normal */
    const float *scores;        /* [n] llama */
    size_t n;
    const ls_part_text *merges; /* [nmerges] gpt2: "a b" */
    size_t nmerges;
    int64_t bos, eos, unknown; /* ids; -1: none */
    bool add_bos, add_eos;     /* puts them around a text */
    bool take_space;           /* as in Phi-3: see ls_part_takes_space() */
    bool add_space_prefix;     /* llama: a space before the first word; GGUF's default is true */
} ls_tokenizer_parts;

/* Makes the tokenizer that Hugging Face's tokenizers has for the same model: "llama-bpe" and
 * "tekken" take words that are tokens without merging, "qwen2" normalizes to NFC. `what` names the
 * file. LS_EINVAL: model or pre is not one of those above, or a token, type, score, merge or id is
 * wrong; the message names it. */
ls_status ls_tokenizer_create(const ls_tokenizer_parts *, const char *what, ls_tokenizer **t_p,
                              ls_error *);

/* Does a special or user-defined token of Phi-3 drop the white space behind it? All do but <unk>,
 * <s> and <|endoftext|>. */
bool ls_part_takes_space(const char *text, size_t n);

/* The `pre` of a byte-level tokenizer; NULL: it cuts in a way that has no such name. */
const char *ls_tokenizer_pre(const ls_tokenizer *);

#endif
