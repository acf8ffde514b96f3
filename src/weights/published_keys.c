/* published_keys.c - see published_keys.h. */
#include "weights/published_keys.h"

#include <stdlib.h>
#include <string.h>

const ls_json *ls_published_take(ls_published_keys *r, const char *key) {
    if (r->nseen < LS_PUBLISHED_KEYS) r->seen[r->nseen++] = key;
    return ls_json_given(r->o, key);
}

ls_status ls_published_missing(const ls_published_keys *r, const char *key) {
    return ls_fail(r->e, LS_EINVAL, "%s: %s is missing", r->what, key);
}

ls_status ls_published_fail(const ls_published_keys *r, const char *key, const char *want) {
    ls_buf text = {0};
    const ls_json *v = ls_json_get(r->o, key);
    if (v) ls_json_write(v, 0, &text);
    ls_status s = ls_fail(r->e, LS_EINVAL, "%s: %s is %.80s; %s", r->what, key,
                          text.len ? text.data : "missing", want);
    ls_buf_free(&text);
    return s;
}

ls_status ls_published_size(ls_published_keys *r, const char *key, int64_t *value_p) {
    const ls_json *v = ls_published_take(r, key);
    if (!v) return ls_published_missing(r, key);
    return ls_json_integer(v, value_p) ? LS_OK : ls_published_fail(r, key, "it must be an integer");
}

ls_status ls_published_size_if(ls_published_keys *r, const char *key, int64_t *value_p) {
    const ls_json *v = ls_published_take(r, key);
    if (!v || ls_json_integer(v, value_p)) return LS_OK;
    return ls_published_fail(r, key, "it must be an integer");
}

ls_status ls_published_number(ls_published_keys *r, const char *key, double *value_p) {
    const ls_json *v = ls_published_take(r, key);
    if (!v) return ls_published_missing(r, key);
    return ls_json_number(v, value_p) ? LS_OK : ls_published_fail(r, key, "it must be a number");
}

ls_status ls_published_bool_if(ls_published_keys *r, const char *key, bool *value_p) {
    const ls_json *v = ls_published_take(r, key);
    if (!v) return LS_OK;
    if (!ls_json_is_bool(v)) return ls_published_fail(r, key, "it must be true or false");
    *value_p = ls_json_is_true(v);
    return LS_OK;
}

ls_status ls_published_expect_text(ls_published_keys *r, const char *key, const char *want) {
    const ls_json *v = ls_published_take(r, key);
    if (!v) return LS_OK;
    if (ls_json_text(v) && strcmp(ls_json_text(v), want) == 0) return LS_OK;
    char *only = ls_format("only \"%s\" is supported", want);
    ls_status s = ls_published_fail(r, key, only);
    free(only);
    return s;
}

ls_status ls_published_expect_bool(ls_published_keys *r, const char *key, bool want) {
    bool got = want;
    LS_TRY(ls_published_bool_if(r, key, &got));
    if (got == want) return LS_OK;
    return ls_published_fail(r, key, want ? "only true is supported" : "only false is supported");
}

ls_status ls_published_expect_one(ls_published_keys *r, const char *key) {
    double got = 1;
    const ls_json *v = ls_published_take(r, key);
    if (!v || (ls_json_number(v, &got) && got == 1)) return LS_OK;
    return ls_published_fail(r, key, "only 1 is supported");
}

/* ---- keys that change nothing ---- */

/* How transformers computes or trains, whose defaults for generation, and labels of other tasks. */
static const char *const ignored[] = {
    "attention_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "initializer_range",
    "use_cache",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "pretraining_tp",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "torchscript",
    "use_bfloat16",
    "tf_legacy_loss",
    "chunk_size_feed_forward",
    "is_decoder",
    "tie_encoder_decoder",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "task_specific_params",
    "tokenizer_class",
    "prefix",
    "decoder_start_token_id",
    "sep_token_id",
    "unk_token_id",
    "name_or_path",
    "gradient_checkpointing",
    "reorder_and_upcast_attn",
    "is_llama_config",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    "output_past",
    "cache_implementation",
    "model_max_length",
    "tie_last_hidden_states",
    "transformers.js_config",
};
/* Beginnings of such keys: notes of programs, and GPT-2's heads for other tasks. */
static const char *const ignored_begins[] = {"_", "unsloth_", "summary_"};

static bool is_known(const ls_published_keys *r, const char *key) {
    for (int i = 0; i < r->nseen; i++)
        if (strcmp(r->seen[i], key) == 0) return true;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(ignored[i], key) == 0) return true;
    for (size_t i = 0; i < sizeof ignored_begins / sizeof *ignored_begins; i++)
        if (strncmp(key, ignored_begins[i], strlen(ignored_begins[i])) == 0) return true;
    return false;
}

ls_status ls_published_refuse_unknown(const ls_published_keys *r, const char *what_it_may_change) {
    const char *key = NULL;
    const ls_json *value = NULL;
    for (void *it = NULL; (it = ls_json_next(r->o, it, &key, &value));)
        if (!ls_json_is_null(value) && !is_known(r, key))
            return ls_fail(r->e, LS_EINVAL,
                           "%s: %s is not supported: it may change %s; remove it if it does not",
                           r->what, key, what_it_may_change);
    return LS_OK;
}
