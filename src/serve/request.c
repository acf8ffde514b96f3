/* request.c - see request.h. */
#include "serve/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "infer/infer.h"
#include "serve/answer_form.h"
#include "serve/messages.h"
#include "serve/response_form.h"

typedef struct reader {
    const ls_request_model *m;
    const ls_json *body;
    ls_text_request *r;
    ls_refusal *why;
    const char *input; /* the field of its texts */
} reader;

/* ---- refusals ---- */

#define REFUSE(x, field, ...) refuse(x, field, ls_fail(&(x)->why->error, LS_EINVAL, __VA_ARGS__))

static bool refuse(const reader *x, const char *field, ls_status s) {
    (void)s;
    x->why->status = 400;
    x->why->type = "invalid_request_error";
    x->why->param = field;
    return false;
}

/* ---- numbers ---- */

/* A member that is there, and is not null. */
static const ls_json *given(const reader *x, const char *field) {
    return ls_json_given(x->body, field);
}

typedef struct range {
    double low, high;
} range;

static bool read_number(const reader *x, const char *field, range allowed, double *value) {
    const ls_json *j = given(x, field);
    double read = 0;
    if (!j) return true;
    if (!ls_json_number(j, &read) || !(read >= allowed.low && read <= allowed.high))
        return REFUSE(x, field, "%s: a number from %g to %g is expected", field, allowed.low,
                      allowed.high);
    *value = read;
    return true;
}

static bool read_integer(const reader *x, const char *field, range allowed, int64_t *value) {
    const ls_json *j = given(x, field);
    int64_t read = 0;
    if (!j) return true;
    if (!ls_json_integer(j, &read) || (double)read < allowed.low || (double)read > allowed.high)
        return REFUSE(x, field, "%s: a whole number from %.0f to %.0f is expected", field,
                      allowed.low, allowed.high);
    *value = read;
    return true;
}

static bool read_flag(const reader *x, const char *field, bool *value) {
    const ls_json *j = given(x, field);
    if (!j) return true;
    if (!ls_json_is_bool(j)) return REFUSE(x, field, "%s: true or false is expected", field);
    *value = ls_json_is_true(j);
    return true;
}

/* ---- fields that we know ---- */

/* Fields that change nothing here. */
static const char *const harmless[] = {"user",         "metadata",           "store",
                                       "service_tier", "safety_identifier",  "prompt_cache_key",
                                       "request_id",   "parallel_tool_calls"};
/* Fields of which only these values ask for nothing, and what is known here in their place. */
#define KWARGS "variables of the chat template stand in chat_template_kwargs"
static const struct {
    const char *name, *nothing, *instead;
} refused[] = {{"suffix", "null", NULL},
               {"best_of", "1", NULL},
               {"use_beam_search", "false", NULL},
               {"length_penalty", "1", NULL},
               {"tools", "null", NULL},
               {"functions", "null", "tools are"},
               {"tool_choice", "\"none\"", NULL},
               {"function_call", "null", "tool_choice is"},
               {"grammar", "null", "guided_regex and guided_json are"},
               {"guided_grammar", "null", "guided_regex and guided_json are"},
               {"prompt_logprobs", "null", NULL},
               {"prompt_embeds", "null", NULL},
               {"truncate_prompt_tokens", "null", NULL},
               {"logits_processors", "null", NULL},
               {"audio", "null", NULL},
               {"modalities", "[\"text\"]", NULL},
               {"allowed_token_ids", "null", NULL},
               {"bad_words", "null", NULL},
               {"include_stop_str_in_output", "false", NULL},
               {"chat_template", "null", NULL},
               {"documents", "null", NULL},
               {"add_generation_prompt", "true", NULL},
               {"continue_final_message", "false", NULL},
               {"n_predict", "null", "max_tokens is"},
               {"repeat_penalty", "1", "repetition_penalty is"},
               {"typical_p", "1", NULL},
               {"mirostat", "0", NULL},
               {"dry_multiplier", "0", NULL},
               {"xtc_probability", "0", NULL},
               {"top_n_sigma", "-1", NULL},
               {"samplers", "null", NULL},
               {"dynatemp_range", "0", NULL},
               {"lora", "null", "an adapter is chosen by model"},
               {"n_probs", "0", "logprobs are"},
               {"thinking", "null", KWARGS},
               {"enable_thinking", "null", KWARGS},
               {"thinking_token_budget", "null", NULL},
               {"include_reasoning", "true", NULL},
               {"verbosity", "\"medium\"", NULL},
               {"web_search_options", "null", NULL},
               {"guided_whitespace_pattern", "null", NULL},
               {"return_token_ids", "false", NULL},
               {"return_tokens_as_token_ids", "false", NULL},
               {"think", "null", KWARGS},
               {"extra_body", "null", "its members stand beside messages"},
               {"format", "null", "response_format is"},
               {"options", "null", "its members stand beside messages"},
               {"num_predict", "null", "max_tokens is"},
               {"thinking_budget_tokens", "null", NULL},
               {"tfs_z", "1", NULL},
               {"t_max_predict_ms", "0", NULL},
               {"n_indent", "0", NULL},
               {"vllm_xargs", "null", NULL},
               {"mm_processor_kwargs", "null", NULL}};
static const char *const of_vectors[] = {"model",      "input", "encoding_format",
                                         "dimensions", "user",  "add_special_tokens"};
static const char *const known[] = {"model",
                                    "prompt",
                                    "messages",
                                    "chat_template_kwargs",
                                    "reasoning_effort",
                                    "add_special_tokens",
                                    "max_tokens",
                                    "max_completion_tokens",
                                    "max_output_tokens",
                                    "temperature",
                                    "top_p",
                                    "top_k",
                                    "min_p",
                                    "n",
                                    "seed",
                                    "stop",
                                    "stream",
                                    "stream_options",
                                    "logprobs",
                                    "top_logprobs",
                                    "echo",
                                    "frequency_penalty",
                                    "presence_penalty",
                                    "repetition_penalty",
                                    "logit_bias",
                                    "ignore_eos",
                                    "min_tokens",
                                    "skip_special_tokens",
                                    "stop_token_ids",
                                    "response_format",
                                    LS_RESPONSE_FORMAT,
                                    "structured_outputs",
                                    "guided_regex",
                                    "guided_json",
                                    "json_schema",
                                    "guided_choice"};

static bool is_one_of(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

/* Says once that a field is not known. */
static void note_unknown(const char *field) {
    static char seen[32][48];
    static int n;
    for (int i = 0; i < n; i++)
        if (strncmp(seen[i], field, sizeof seen[i] - 1) == 0) return;
    if (n == 32) return;
    snprintf(seen[n++], sizeof seen[0], "%s", field);
    ls_log("requests have the field '%.40s', which is not known here, and changes nothing", field);
}

/* Does a field that is not supported ask for nothing? nothing: the value that does. */
static bool asks_nothing(const ls_json *value, const char *nothing) {
    ls_buf text = {0};
    double given = 0;
    char *end = NULL;
    double number = strtod(nothing, &end);
    if (ls_json_is_null(value)) return true;
    bool empty = ls_json_count(value) == 0;
    if ((ls_json_is_array(value) && empty) || ls_json_is_object(value)) return empty;
    if (!*end && ls_json_number(value, &given)) return given == number;
    ls_json_write(value, 0, &text);
    bool same = text.len == strlen(nothing) && memcmp(text.data, nothing, text.len) == 0;
    ls_buf_free(&text);
    return same;
}

static bool read_names(const reader *x) {
    const char *key = NULL;
    const ls_json *value = NULL;
    void *it = NULL;
    bool embeds = x->r->rule.embeds;
    const char *const *names = embeds ? of_vectors : known;
    size_t nnames = embeds ? sizeof of_vectors / sizeof *of_vectors : sizeof known / sizeof *known;
    while ((it = ls_json_next(x->body, it, &key, &value))) {
        if (is_one_of(key, names, nnames)) continue;
        if (x->r->chat && (ls_tools_has(key) || ls_messages_has(key))) continue;
        if (is_one_of(key, harmless, sizeof harmless / sizeof *harmless)) continue;
        size_t i = 0, n = sizeof refused / sizeof *refused;
        while (i < n && strcmp(refused[i].name, key) != 0) i++;
        if (i == n) {
            note_unknown(key);
            continue;
        }
        if (asks_nothing(value, refused[i].nothing)) continue;
        const char *instead = refused[i].instead;
        return REFUSE(x, refused[i].name, "%s is not supported here%s%s", refused[i].name,
                      instead ? "; " : "", instead ? instead : "");
    }
    return true;
}

/* ---- how text is drawn ---- */

static bool read_stops(const reader *x) {
    const ls_json *j = given(x, "stop");
    ls_reply_rule *o = &x->r->rule;
    bool list = ls_json_is_array(j);
    size_t n = !j ? 0 : list ? ls_json_count(j) : 1;
    if (n > LS_REPLY_STOPS)
        return REFUSE(x, "stop", "stop: at most %d texts are expected", LS_REPLY_STOPS);
    for (size_t i = 0; i < n; i++) {
        const char *text = ls_json_text(list ? ls_json_at(j, i) : j);
        if (!text || !*text)
            return REFUSE(x, "stop",
                          "stop: a text of at least a character, or a list of such, is expected");
        o->stops[o->nstops] = x->r->stops[o->nstops] = ls_strdup(text);
        o->nstops++;
    }
    return true;
}

static bool read_token(const reader *x, const char *field, const ls_json *j, uint32_t *token_p) {
    int64_t id = -1;
    if (!ls_json_integer(j, &id) || id < 0 || id >= x->m->trained->config.model.vocab)
        return REFUSE(x, field, "%s: a token from 0 to %lld is expected", field,
                      (long long)x->m->trained->config.model.vocab - 1);
    *token_p = (uint32_t)id;
    return true;
}

static bool read_bias(const reader *x) {
    const ls_json *j = given(x, "logit_bias"), *value = NULL;
    ls_reply_rule *o = &x->r->rule;
    const char *key = NULL;
    void *it = NULL;
    if (!j) return true;
    if (!ls_json_is_object(j))
        return REFUSE(x, "logit_bias", "logit_bias: an object of tokens is expected");
    o->bias = LS_NEW_ARRAY(ls_reply_bias, ls_json_count(j) + 1);
    while ((it = ls_json_next(j, it, &key, &value))) {
        double by = 0;
        char *end = NULL;
        long long id = strtoll(key, &end, 10);
        if (!*key || *end || id < 0 || id >= x->m->trained->config.model.vocab)
            return REFUSE(x, "logit_bias", "logit_bias: '%.40s' is no token of the model", key);
        if (!ls_json_number(value, &by) || !(by >= -100 && by <= 100))
            return REFUSE(x, "logit_bias", "logit_bias: numbers from -100 to 100 are expected");
        o->bias[o->nbias++] = (ls_reply_bias){(uint32_t)id, (float)by};
    }
    return true;
}

/* Tokens that end a reply: the model's, or those of a chat's answers; and those that are given. */
static bool read_ends(const reader *x) {
    const ls_trained *t = x->m->trained;
    const ls_chat_format *f = x->m->format;
    ls_reply_rule *o = &x->r->rule;
    const ls_json *more = given(x, "stop_token_ids");
    bool ignores = false;
    if (!read_flag(x, "ignore_eos", &ignores)) return false;
    if (more && !ls_json_is_array(more))
        return REFUSE(x, "stop_token_ids", "stop_token_ids: a list of tokens is expected");
    int own = ignores ? 0 : x->r->chat ? f->nends : t->nends;
    size_t n = more ? ls_json_count(more) : 0;
    if (n > LS_REPLY_ENDS / 2)
        return REFUSE(x, "stop_token_ids", "stop_token_ids: at most %d tokens are expected",
                      LS_REPLY_ENDS / 2);
    uint32_t *ends = LS_NEW_ARRAY(uint32_t, (size_t)own + n + 1);
    o->ends = ends;
    for (int i = 0; i < own; i++) ends[o->nends++] = x->r->chat ? f->ends[i] : t->ends[i];
    for (size_t i = 0; i < n; i++)
        if (!read_token(x, "stop_token_ids", ls_json_at(more, i), &ends[o->nends++])) return false;
    return true;
}

/* OpenAI's defaults; those that it does not know are the model's own. */
static bool read_sampling(const reader *x) {
    ls_reply_rule *o = &x->r->rule;
    o->sampler = LS_RULE_UNKNOWN;
    int64_t top_k = -1;
    const range penalties = {-2, 2};
    bool read = read_number(x, "temperature", (range){0, 100}, &o->sampler.temperature) &&
                read_number(x, "top_p", (range){0, 1}, &o->sampler.top_p) &&
                read_integer(x, "top_k", (range){-1, 1e9}, &top_k) &&
                read_number(x, "min_p", (range){0, 1}, &o->sampler.min_p) &&
                read_number(x, "repetition_penalty", (range){0.01, 100}, &o->sampler.penalty) &&
                read_number(x, "frequency_penalty", penalties, &o->frequency) &&
                read_number(x, "presence_penalty", penalties, &o->presence);
    if (!read) return false;
    if (given(x, "top_k")) o->sampler.top_k = top_k < 1 ? 0 : top_k;
    ls_trained_complete_rule(x->m->trained, &(ls_sampler_rule){.temperature = 1}, &o->sampler);
    return read_stops(x) && read_bias(x) && read_ends(x);
}

static bool draw_seed(uint64_t *seed_p) {
    uint32_t word = 0;
    if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word) return false;
    *seed_p = word >> 1;
    return true;
}

static bool read_seed(const reader *x) {
    int64_t seed = 0;
    if (!given(x, "seed")) {
        if (!draw_seed(&x->r->seed))
            return REFUSE(x, "seed", "the system has no random numbers; give a seed");
        return true;
    }
    if (!read_integer(x, "seed", (range){-9.2e18, 9.2e18}, &seed)) return false;
    x->r->seed = (uint64_t)seed;
    return true;
}

/* ---- logarithms of probabilities ---- */

static bool read_logprobs(const reader *x) {
    ls_reply_rule *o = &x->r->rule;
    int64_t top = -1;
    bool wanted = false;
    o->top = -1;
    if (!x->r->chat) {
        if (!read_integer(x, "logprobs", (range){0, LS_REPLY_TOP}, &top)) return false;
        o->top = (int)top;
        return true;
    }
    if (!read_flag(x, "logprobs", &wanted) ||
        !read_integer(x, "top_logprobs", (range){0, LS_REPLY_TOP}, &top))
        return false;
    if (top > 0 && !wanted) return REFUSE(x, "top_logprobs", "top_logprobs: logprobs must be true");
    if (wanted) o->top = top < 0 ? 0 : (int)top;
    return true;
}

static bool read_form(const reader *x) {
    const char *field = NULL;
    x->r->constraints = x->m->constraints;
    ls_status s = ls_answer_form_read(x->m->constraints, x->body, &x->r->tools,
                                      &x->r->rule.constraint, &field, &x->why->error);
    return s == LS_OK || refuse(x, field, s);
}

/* ---- prompts ---- */

ls_status ls_request_tokens(const ls_request_model *m, const char *text, bool begin,
                            ls_token_list *list, ls_error *e) {
    const ls_encoding how = {.what = "the prompt", .special = true, .begin = begin};
    return ls_tokenizer_encode(m->trained->tokenizer, (const uint8_t *)text, strlen(text), &how,
                               list, e);
}

static ls_request_prompt *new_prompt(ls_text_request *r) {
    r->prompts = ls_grow(r->prompts, r->nprompts, sizeof *r->prompts);
    ls_request_prompt *p = &r->prompts[r->nprompts++];
    *p = (ls_request_prompt){0};
    return p;
}

/* begin: with the tokens that the tokenizer puts before and after a text. */
static bool add_text(const reader *x, const char *text, bool begin) {
    ls_request_prompt *p = new_prompt(x->r);
    ls_token_list list = {0};
    ls_status s = ls_request_tokens(x->m, text, begin, &list, &x->why->error);
    if (s != LS_OK) return refuse(x, x->input, s);
    p->tokens = list.ids;
    p->n = (int64_t)list.n;
    p->text = ls_strdup(text);
    if (p->n == 0) return REFUSE(x, x->input, "%s: it has no tokens", x->input);
    return true;
}

static bool add_tokens(const reader *x, const ls_json *ids) {
    ls_request_prompt *p = new_prompt(x->r);
    size_t n = ls_json_count(ids);
    if (n == 0) return REFUSE(x, x->input, "%s: it has no tokens", x->input);
    p->tokens = LS_NEW_ARRAY(uint32_t, n);
    for (; (size_t)p->n < n; p->n++)
        if (!read_token(x, x->input, ls_json_at(ids, (size_t)p->n), &p->tokens[p->n])) return false;
    return true;
}

static bool read_prompt(const reader *x) {
    const ls_json *j = given(x, x->input), *first = ls_json_at(j, 0);
    int64_t id = 0;
    bool begin = true;
    static const char wanted[] =
        "a text, a list of texts, a list of tokens, or a list of such lists is expected";
    if (!read_flag(x, "add_special_tokens", &begin)) return false;
    if (ls_json_text(j)) return add_text(x, ls_json_text(j), begin);
    if (!ls_json_is_array(j) || !first) return REFUSE(x, x->input, "%s: %s", x->input, wanted);
    if (ls_json_integer(first, &id)) return add_tokens(x, j);
    int most = x->r->rule.embeds ? LS_REQUEST_VECTORS : LS_REQUEST_REPLIES;
    if (ls_json_count(j) > (size_t)most)
        return REFUSE(x, x->input, "%s: at most %d texts are expected", x->input, most);
    for (size_t i = 0; i < ls_json_count(j); i++) {
        const ls_json *one = ls_json_at(j, i);
        if (ls_json_text(one)       ? !add_text(x, ls_json_text(one), begin)
            : ls_json_is_array(one) ? !add_tokens(x, one)
                                    : !REFUSE(x, x->input, "%s: %s", x->input, wanted))
            return false;
    }
    return true;
}

/* The tokens by which an answer's parts are told apart. */
static void note_marks(const reader *x, const ls_request_prompt *p) {
    const ls_thought_form *f = &x->m->thought;
    ls_reply_rule *o = &x->r->rule;
    o->nshown = ls_tools_shown(&x->r->tools, x->m->trained->tokenizer, o->shown);
    for (int i = 0; i < 2 && f->open; i++) o->shown[o->nshown++] = f->tokens[i];
    o->thinks = ls_thought_is_open(f, p->tokens, p->n);
    o->thought_end = f->tokens[1];
}

static bool read_messages(const reader *x) {
    ls_token_list list = {0};
    if (!x->m->format)
        return REFUSE(x, NULL,
                      "the model has no chat template, so it has no chats; use "
                      "/v1/completions");
    const char *field = NULL;
    bool begin = false;
    if (!read_flag(x, "add_special_tokens", &begin)) return false;
    if (begin)
        return REFUSE(x, "add_special_tokens",
                      "add_special_tokens: of a chat the template writes them");
    ls_tools *tools = &x->r->tools;
    ls_status s = ls_tools_read(&x->m->tool_template, x->body, tools, &field, &x->why->error);
    if (s != LS_OK) return refuse(x, field, s);
    s = ls_messages_encode(x->m->format, x->body, tools->list, &list, &field, &x->why->error);
    if (s != LS_OK) return refuse(x, field, s);
    ls_request_prompt *p = new_prompt(x->r);
    p->tokens = list.ids;
    p->n = (int64_t)list.n;
    if (p->n == 0) return REFUSE(x, "messages", "messages: they have no tokens");
    note_marks(x, p);
    return true;
}

/* How many tokens are written, if there is room for them. */
static bool read_lengths(const reader *x) {
    ls_reply_rule *o = &x->r->rule;
    int64_t longest = 0, context = x->m->context, most = -1;
    for (size_t i = 0; i < x->r->nprompts; i++)
        if (x->r->prompts[i].n > longest) longest = x->r->prompts[i].n;
    const char *field = x->r->asked                         ? "max_output_tokens"
                        : given(x, "max_completion_tokens") ? "max_completion_tokens"
                                                            : "max_tokens";
    if (!read_integer(x, field, (range){0, 1e9}, &most) ||
        !read_integer(x, "min_tokens", (range){0, 1e9}, &o->least))
        return false;
    if (longest + (most > 0 ? most : 0) > context || (longest == context && most != 0)) {
        x->why->code = "context_length_exceeded"; /* clients also know the words */
        return REFUSE(
            x,
            x->r->asked  ? "input"
            : x->r->chat ? "messages"
                         : "prompt",
            "this model's maximum context length is %lld tokens; the prompt has %lld, and %lld are "
            "to be written",
            (long long)context, (long long)longest, (long long)(most < 0 ? 1 : most));
    }
    if (most < 0) most = x->r->chat || 16 > context - longest ? context - longest : 16;
    o->most = most;
    return true;
}

static bool read_stream(const reader *x) {
    const ls_json *options = given(x, "stream_options");
    const reader inner = {x->m, options, x->r, x->why, x->input};
    bool each = false;
    if (!read_flag(x, "stream", &x->r->stream) || !read_flag(x, "echo", &x->r->echo)) return false;
    if (options && !x->r->stream)
        return REFUSE(x, "stream_options", "stream_options: stream must be true");
    if (options && !ls_json_is_object(options))
        return REFUSE(x, "stream_options", "stream_options: an object is expected");
    if (!read_flag(&inner, "include_usage", &x->r->usage) ||
        !read_flag(&inner, "continuous_usage_stats", &each))
        return false;
    x->r->usage_each = x->r->usage && each;
    x->r->rule.echo = x->r->echo;
    if (x->r->chat && x->r->echo) return REFUSE(x, "echo", "echo is for /v1/completions");
    bool skips = true;
    if (!read_flag(x, "skip_special_tokens", &skips)) return false;
    x->r->rule.special = !skips;
    return true;
}

void ls_request_model_open(ls_request_model *m) {
    size_t V = (size_t)ls_infer_nlogits(&m->trained->model),
           used = ls_tokenizer_used(m->trained->tokenizer);
    m->thought = ls_thought_form_of(m->trained->tokenizer);
    if (m->format) m->tool_template = ls_tool_template_of(m->format);
    m->constraints =
        ls_constraint_store_new(m->trained->tokenizer, (uint32_t)(used < V ? used : V));
}

void ls_request_model_close(ls_request_model *m) {
    ls_constraint_store_free(m->constraints);
    m->constraints = NULL;
}

const char *ls_request_model_name(const ls_request_model *m, int adapter) {
    return adapter ? m->adapters[adapter - 1] : m->name;
}

static bool read_model(const reader *x) {
    const ls_json *j = given(x, "model");
    const char *name = ls_json_text(j);
    if (!j || (name && !*name)) return true; /* some clients have no name, and send "" */
    for (int i = 0; name && i <= x->m->nadapters; i++) {
        if (strcmp(name, ls_request_model_name(x->m, i)) != 0) continue;
        x->r->adapter = i;
        return true;
    }
    ls_fail(&x->why->error, LS_EINVAL, "the model '%.80s' is not here; this is '%.80s'%s",
            name ? name : "?", x->m->name,
            x->m->nadapters ? ", and GET /v1/models lists its adapters" : "");
    x->why->status = 404;
    x->why->type = "not_found_error";
    x->why->param = "model";
    x->why->code = "model_not_found";
    return false;
}

static bool read_all(const reader *x) {
    if (!ls_json_is_object(x->body)) return REFUSE(x, NULL, "the body is no JSON object");
    x->r->n = 1;
    if (!read_model(x) || !read_names(x) || !read_stream(x)) return false;
    if (!(x->r->chat ? read_messages(x) : read_prompt(x))) return false;
    if (!read_integer(x, "n", (range){1, LS_REQUEST_REPLIES}, &x->r->n)) return false;
    if (x->r->n * (int64_t)x->r->nprompts > LS_REQUEST_REPLIES)
        return REFUSE(x, "n", "n: at most %d replies to all prompts are expected",
                      LS_REQUEST_REPLIES);
    return read_sampling(x) && read_seed(x) && read_logprobs(x) && read_form(x) && read_lengths(x);
}

/* ---- vectors ---- */

static bool read_encoding(const reader *x) {
    const ls_json *j = given(x, "encoding_format");
    const char *name = ls_json_text(j);
    int64_t width = ls_infer_width(&x->m->trained->model), wanted = width;
    x->r->base64 = name && strcmp(name, "base64") == 0;
    if (j && !x->r->base64 && (!name || strcmp(name, "float") != 0))
        return REFUSE(x, "encoding_format", "encoding_format: float or base64 is expected");
    if (given(x, "dimensions") &&
        (!ls_json_integer(given(x, "dimensions"), &wanted) || wanted != width))
        return REFUSE(x, "dimensions",
                      "dimensions: the model's vectors have %lld numbers, and are "
                      "not shortened",
                      (long long)width);
    return true;
}

static bool read_embedding(const reader *x) {
    int64_t context = x->m->context;
    if (!ls_json_is_object(x->body)) return REFUSE(x, NULL, "the body is no JSON object");
    x->r->n = 1;
    x->r->rule.embeds = true;
    x->r->rule.top = -1;
    if (!read_model(x) || !read_names(x) || !read_encoding(x) || !read_prompt(x)) return false;
    for (size_t i = 0; i < x->r->nprompts; i++) {
        if (x->r->prompts[i].n <= context) continue;
        x->why->code = "context_length_exceeded";
        return REFUSE(x, x->input,
                      "this model's maximum context length is %lld tokens; text %zu has %lld",
                      (long long)context, i, (long long)x->r->prompts[i].n);
    }
    return true;
}

/* ---- responses ---- */

static bool read_response(reader *x) {
    const char *field = NULL;
    ls_json *chat = NULL;
    if (!ls_json_is_object(x->body)) return REFUSE(x, NULL, "the body is no JSON object");
    x->r->asked = ls_json_share(x->body);
    ls_status s = ls_response_form_read(x->body, &chat, &field, &x->why->error);
    if (s != LS_OK) return refuse(x, field, s);
    x->body = chat;
    bool read = read_all(x);
    if (!read && x->why->param && strcmp(x->why->param, "messages") == 0) x->why->param = "input";
    ls_json_free(chat);
    return read;
}

bool ls_request_read(const ls_request_model *m, ls_request_kind kind, const char *body,
                     size_t nbytes, ls_text_request *r, ls_refusal *why) {
    ls_json *j = NULL;
    bool embeds = kind == LS_REQUEST_EMBEDDING;
    bool responds = kind == LS_REQUEST_RESPONSE;
    *r = (ls_text_request){.chat = kind == LS_REQUEST_CHAT || responds};
    *why = (ls_refusal){0};
    reader x = {m, NULL, r, why, embeds ? "input" : "prompt"};
    ls_status s = ls_json_parse(body, nbytes, "the body", &j, &why->error);
    x.body = j;
    bool read = s != LS_OK ? refuse(&x, NULL, s)
                : embeds   ? read_embedding(&x)
                : responds ? read_response(&x)
                           : read_all(&x);
    ls_json_free(j);
    return read;
}

void ls_request_free(ls_text_request *r) {
    for (size_t i = 0; i < r->nprompts; i++) {
        free(r->prompts[i].tokens);
        free(r->prompts[i].text);
    }
    for (int i = 0; i < r->rule.nstops; i++) free(r->stops[i]);
    ls_tools_free(&r->tools);
    ls_json_free(r->asked);
    ls_constraint_store_give(r->constraints, r->rule.constraint);
    free(r->prompts);
    free(r->rule.bias);
    free((void *)(uintptr_t)r->rule.ends);
    *r = (ls_text_request){0};
}
