/* small_chat.h - a tokenizer of bytes with two special tokens, <|a|> (256) and <|r|> (257), and a
 * template that puts each message between them. */
#ifndef LS_TEST_SMALL_CHAT_H
#define LS_TEST_SMALL_CHAT_H

#include "data/small_tokenizer.h"

#define PLAIN                                                                                      \
    "{% for m in messages %}<|a|>{{ m.role }}\n{{ m.content|trim }}<|r|>{% endfor %}"              \
    "{% if add_generation_prompt %}<|a|>assistant\n{% endif %}"

/* post_processor: JSON; NULL: nothing is put before a text. */
static inline ls_tokenizer *small_chat_tokenizer_with(const char *post_processor) {
    static const char *const none[] = {NULL};
    const small_tokenizer s = {
        .pre_tokenizer = SMALL_BYTE_LEVEL,
        .post_processor = post_processor,
        .tokens = none,
        .merges = none,
        .added = "[{\"id\": 256, \"content\": \"<|a|>\", \"special\": true}, {\"id\": 257, "
                 "\"content\": \"<|r|>\", \"special\": true}]"};
    char *json = small_json(&s);
    ls_tokenizer *t = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_tokenizer_parse(json, strlen(json), "t", &t, &e), e);
    free(json);
    return t;
}

static inline ls_tokenizer *small_chat_tokenizer(void) { return small_chat_tokenizer_with(NULL); }

#endif
