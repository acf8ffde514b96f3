/* chat_fuzz.c - lines of conversations, behind a template and a zero byte. */
#include "chat/chat_lines.h"
#include "fuzz.h"

static ls_tokenizer *make_tokenizer(void) {
    static const char text[] = "a tokenizer of bytes";
    ls_tokenizer *t = NULL;
    ls_text_cut cut;
    FUZZ_CHECK(ls_text_cut_make((const uint8_t *)text, sizeof text - 1, "x", &cut, NULL) == LS_OK);
    FUZZ_CHECK(ls_tokenizer_train_cut(&cut, "x", 256, &t, NULL) == LS_OK);
    ls_text_cut_free(&cut);
    return t;
}

/* What is trained on is a part of the tokens, and not the first. */
static void check_sample(void *arg, const ls_chat_sample *s) {
    const ls_chat_tokens *t = s->tokens;
    (void)arg;
    size_t ntrained = 0;
    FUZZ_CHECK(t->n >= 2 && !t->trained[0] && s->line >= 1);
    for (size_t i = 0; i < t->n; i++) ntrained += t->trained[i];
    FUZZ_CHECK(ntrained == t->ntrained && ntrained > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static ls_tokenizer *tokenizer;
    const char *text = (const char *)data, *end = nbytes ? memchr(text, 0, nbytes) : NULL;
    if (!tokenizer) tokenizer = make_tokenizer();
    ls_chat_format f = {.tokenizer = tokenizer, .end = 7};
    if (!end || ls_template_parse(text, (size_t)(end - text), "x", &f.template, NULL) != LS_OK)
        return 0;
    ls_chat_lines l = {.name = "f",
                       .text = end + 1,
                       .nbytes = nbytes - (size_t)(end + 1 - text),
                       .format = &f,
                       .wants = LS_WANTS_EITHER,
                       .take = check_sample};
    for (int loss = LS_CHAT_ASSISTANT; loss <= LS_CHAT_COMPLETION; loss++) {
        ls_error e = {0};
        l.loss = (ls_chat_loss)loss;
        if (ls_chat_lines_encode(&l, &e) != LS_OK) FUZZ_CHECK(e.msg[0]);
    }
    ls_chat_format_free(&f);
    return 0;
}
