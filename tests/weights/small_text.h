/* small_text.h - the keys of a GGUF file that small models have for text: a byte-level tokenizer of
 * 95 ASCII characters and the two bytes of an e with an accent, and a chat template. */
#ifndef LS_TEST_SMALL_TEXT_H
#define LS_TEST_SMALL_TEXT_H

#include "data/spelling.h"
#include "weights/small_model.h"

#define SMALL_CHAT "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
enum { SMALL_TOKENS = 97 }; /* from the space on; small models have more rows */

/* Returns the number of keys. */
static inline uint64_t small_put_text(ls_buf *b) {
    put_key_text(b, "tokenizer.ggml.model", "gpt2");
    put_key_text(b, "tokenizer.ggml.pre", "gpt-2");
    put_key_text(b, "tokenizer.chat_template", SMALL_CHAT);
    put_key(b, "tokenizer.ggml.tokens", ARRAY);
    put32(b, TEXT);
    put64(b, SMALL_TOKENS);
    for (int i = 0; i < SMALL_TOKENS; i++) {
        ls_buf spelt = {0};
        uint8_t byte = (uint8_t)(i < 95 ? ' ' + i : i == 95 ? 0xC3 : 0xA9);
        ls_spelling_write(&byte, 1, &spelt);
        put_name(b, spelt.data);
        ls_buf_free(&spelt);
    }
    return 4;
}

/* A GGUF file that is complete. */
static inline void small_write_whole(const small_model *m, const char *path) {
    small_tensor list[SMALL_TENSORS];
    int n = small_list(m, list);
    ls_buf text = {0};
    uint64_t ntext = small_put_text(&text);
    small_write_gguf_of(m, list, n, &text, ntext, path);
    ls_buf_free(&text);
}

#endif
