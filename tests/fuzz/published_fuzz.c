/* published_fuzz.c - a run's published.json, which may be a stranger's: what is accepted describes
 * a model, how text is drawn, and how conversations are written. */
#include "chat/prompt.h"
#include "data/text_cut.h"
#include "dataset/published_record.h"
#include "fuzz.h"
#include "weights/config_json.h"
#include "weights/tensor_names.h"

static ls_tokenizer *make_tokenizer(void) {
    static const char text[] = "a tokenizer of bytes";
    ls_tokenizer *t = NULL;
    ls_text_cut cut;
    FUZZ_CHECK(ls_text_cut_make((const uint8_t *)text, sizeof text - 1, "x", &cut, NULL) == LS_OK);
    FUZZ_CHECK(ls_tokenizer_train_cut(&cut, "x", 256, &t, NULL) == LS_OK);
    ls_text_cut_free(&cut);
    return t;
}

static void check_generation(const ls_architecture *a) {
    const ls_generation *g = &a->generation;
    ls_architecture again = *a;
    ls_error e = {0};
    FUZZ_CHECK(g->temperature >= 0 && g->top_p >= 0 && g->top_p <= 1 && g->min_p >= 0);
    FUZZ_CHECK(g->min_p <= 1 && g->penalty >= 0 && g->top_k >= 0);
    ls_json *o = ls_generation_json_new(a);
    FUZZ_CHECK(ls_generation_json_read(o, "again", &again, &e) == LS_OK);
    FUZZ_CHECK(again.generation.greedy == g->greedy && again.generation.top_k == g->top_k);
    FUZZ_CHECK(again.neos == a->neos);
    ls_json_free(o);
}

static void ask(const ls_chat_format *f) {
    char question[] = "why?";
    const ls_chat_message message = {"user", question};
    ls_token_list list = {0};
    ls_error e = {0};
    FUZZ_CHECK(f->nends <= LS_CHAT_ENDS);
    if (ls_chat_prompt_encode(f, &(ls_chat_prompt){.messages = &message, .n = 1}, &list, &e) !=
        LS_OK)
        FUZZ_CHECK(e.msg[0]);
    free(list.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static ls_tokenizer *tokenizer;
    ls_published_record r;
    ls_chat_format f;
    ls_error e = {0};
    if (!tokenizer) tokenizer = make_tokenizer();
    if (ls_published_record_parse((const char *)data, nbytes, "published.json", &r, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0]);
        return 0;
    }
    FUZZ_CHECK(r.there && ls_architecture_count(&r.arch) > 0);
    check_generation(&r.arch);
    if (ls_chat_format_of_record(&r, tokenizer, NULL, &f, &e) == LS_OK) {
        ask(&f);
        ls_chat_format_free(&f);
    } else {
        FUZZ_CHECK(e.msg[0]);
    }
    ls_published_record_free(&r);
    return 0;
}
