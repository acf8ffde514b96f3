/* format.c - see format.h. */
#include "chat/format.h"

#include <stdlib.h>

const struct tm LS_CHAT_DATE = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5};

static void add_end(ls_chat_format *f, uint32_t token) {
    for (int i = 0; i < f->nends; i++)
        if (f->ends[i] == token) return;
    f->ends[f->nends++] = token;
}

void ls_chat_format_set_ends(ls_chat_format *f, const int64_t *ids, int n) {
    static const char *const names[] = {"<|im_end|>", "<|eot_id|>",    "<|eom_id|>",   "<|end|>",
                                        "</s>",       "<end_of_turn>", "<|endoftext|>"};
    f->nends = 0;
    for (int i = 0; i < n; i++) add_end(f, (uint32_t)ids[i]);
    if (f->end != LS_NO_TOKEN) add_end(f, f->end);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t token = ls_tokenizer_find(f->tokenizer, names[i]);
        if (token != LS_NO_TOKEN) add_end(f, token);
    }
}

void ls_chat_format_free(ls_chat_format *f) {
    ls_template_free(f->template);
    ls_template_free(f->tool_template);
    free(f->bos);
    free(f->eos);
    *f = (ls_chat_format){0};
}

ls_status ls_chat_write(const ls_chat_format *f, const ls_chat_text *t, ls_buf *out, ls_error *e) {
    if (!f->template)
        return ls_fail(e, LS_EINVAL,
                       "the model has no chat template; name a file with one: data.template");
    ls_json *globals = ls_json_new_object(), *messages = ls_json_new_array();
    for (size_t i = 0; i < t->n; i++)
        ls_json_push(messages, ls_json_share(ls_json_at(t->messages, i)));
    ls_json_set(globals, "messages", messages);
    ls_json_set(globals, "add_generation_prompt", ls_json_new_bool(t->prompt));
    if (f->bos) ls_json_set_text(globals, "bos_token", f->bos);
    if (f->eos) ls_json_set_text(globals, "eos_token", f->eos);
    if (t->tools) ls_json_set(globals, "tools", ls_json_share(t->tools));
    const ls_template *of = t->tools && f->tool_template ? f->tool_template : f->template;
    ls_status s = ls_template_render(of, globals, t->now ? t->now : &LS_CHAT_DATE, out, e);
    ls_json_free(globals);
    return s;
}
