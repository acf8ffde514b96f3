/* prompts.c - see prompts.h. */
#include "train/prompts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/random.h"
#include "chat/prompt.h"
#include "dataset/published_record.h"
#include "infer/decode.h"
#include "infer/generate.h"
#include "model/types.h"
#include "networks/network.h"
#include "train/evaluate.h"

enum { MOST_BYTES = 1 << 20, MOST = 1000 };

/* ---- the prompts, on worker 0 ---- */

static void add_text(ls_prompts *p, const char *text) {
    p->texts = ls_grow(p->texts, (size_t)p->n, sizeof *p->texts);
    p->texts[p->n++] = ls_strdup(text);
}

/* Each line that is not empty. */
static void add_lines(ls_prompts *p, char *lines) {
    for (char *line; (line = ls_lines_split(&lines));)
        if (*line) add_text(p, line);
}

static ls_status read_file(ls_prompts *p, const char *path, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read_text(path, MOST_BYTES, &text, e));
    ls_buf_append(&text, "", 1);
    add_lines(p, text.data);
    ls_buf_free(&text);
    return LS_OK;
}

static ls_status read_texts(ls_prompts *p, const ls_config *c, ls_error *e) {
    char *list = ls_strdup(c->train.sample_prompts);
    add_lines(p, list);
    free(list);
    if (*c->train.sample_file) LS_TRY(read_file(p, c->train.sample_file, e));
    if (p->n <= MOST) return LS_OK;
    return ls_fail(e, LS_EINVAL, "train.sample_file: %s: has %d prompts; at most %d are possible",
                   c->train.sample_file, p->n, MOST);
}

static ls_status encode_text(const ls_prompts *p, char *text, bool chat, ls_token_list *list_p,
                             ls_error *e) {
    const ls_chat_message message = {"user", text};
    const ls_encoding how = {.what = "train.sample_prompts", .begin = true};
    if (chat)
        return ls_chat_prompt_encode(&p->chat, &(ls_chat_prompt){.messages = &message, .n = 1},
                                     list_p, e);
    LS_TRY(ls_tokenizer_encode(p->chat.tokenizer, (const uint8_t *)text, strlen(text), &how, list_p,
                               e));
    ls_token_list_log_dropped(list_p, how.what);
    return LS_OK;
}

/* Appends the tokens of prompt i. */
static ls_status encode(ls_prompts *p, int i, const ls_config *c, ls_error *e) {
    ls_token_list list = {0};
    int64_t at = p->begins[i], most = c->model.context;
    ls_status s = encode_text(p, p->texts[i], ls_config_has_chats(c), &list, e);
    if (s == LS_OK && (list.n == 0 || (int64_t)list.n >= most))
        s = ls_fail(e, LS_EINVAL,
                    "train.sample_prompts: '%.60s' has %zu tokens; a prompt has at least one and "
                    "leaves room for an answer in model.context %lld",
                    p->texts[i], list.n, (long long)most);
    if (s == LS_OK) {
        p->begins[i + 1] = at + (int64_t)list.n;
        p->tokens = ls_realloc(p->tokens, (size_t)p->begins[i + 1] * sizeof *p->tokens);
        memcpy(p->tokens + at, list.ids, list.n * sizeof *list.ids);
    }
    free(list.ids);
    return s;
}

static bool is_end(const ls_prompts *p, uint32_t token) {
    for (int i = 0; i < p->chat.nends; i++)
        if (p->chat.ends[i] == token) return true;
    return false;
}

/* The tokens that end a text, and for conversations the template. */
static ls_status read_format(ls_prompts *p, const ls_member *m, ls_error *e) {
    const ls_config *c = &m->run->config;
    const ls_tokenizer *t = m->data->text.tokenizer;
    ls_published_record r = {0};
    if (ls_config_has_chats(c)) return ls_chat_format_of_run(m->run->dir, c, t, NULL, &p->chat, e);
    LS_TRY(ls_published_record_read(m->run->dir, &r, e));
    p->chat.tokenizer = t;
    for (int i = 0; r.there && i < r.arch.neos; i++) p->chat.ends[i] = (uint32_t)r.arch.eos[i];
    p->chat.nends = r.there ? r.arch.neos : 0;
    uint32_t end = ls_tokenizer_end_of_text(t); /* of documents */
    if (end != LS_NO_TOKEN && !is_end(p, end) && p->chat.nends < LS_MAX_EOS)
        p->chat.ends[p->chat.nends++] = end;
    ls_published_record_free(&r);
    return LS_OK;
}

static ls_status read_prompts(ls_prompts *p, const ls_member *m, ls_error *e) {
    const ls_config *c = &m->run->config;
    LS_TRY(read_texts(p, c, e));
    LS_TRY(read_format(p, m, e));
    p->begins = LS_NEW_ARRAY(int64_t, (size_t)p->n + 1);
    for (int i = 0; i < p->n; i++) LS_TRY(encode(p, i, c, e));
    return LS_OK;
}

/* ---- what all workers have ---- */

static ls_status share(ls_prompts *p, const ls_member *m, ls_error *e) {
    LS_TRY(ls_broadcast(m->group, &p->n, 1, LS_I32, 0, e));
    if (m->worker) p->begins = LS_NEW_ARRAY(int64_t, (size_t)p->n + 1);
    LS_TRY(ls_broadcast(m->group, p->begins, (size_t)p->n + 1, LS_I64, 0, e));
    size_t ntokens = (size_t)p->begins[p->n];
    if (m->worker) p->tokens = LS_NEW_ARRAY(uint32_t, ntokens + 1);
    if (ntokens)
        LS_TRY(ls_broadcast(m->group, p->tokens, ntokens * sizeof *p->tokens, LS_U8, 0, e));
    LS_TRY(ls_broadcast(m->group, p->chat.ends, sizeof p->chat.ends, LS_U8, 0, e));
    int32_t nends = p->chat.nends;
    LS_TRY(ls_broadcast(m->group, &nends, 1, LS_I32, 0, e));
    p->chat.nends = nends;
    return LS_OK;
}

/* The model of conversations reads the fields of a sample; that of a text has the same
 * parameters. ls_network_create() does not know the places that the optimizer or the codes of
 * gradients need: matrices that stay whole begin at blocks. */
static ls_status model_of(const ls_config *config, ls_model *m_p, ls_error *e) {
    ls_config *c = LS_NEW(ls_config);
    *c = *config;
    c->data.format = LS_DATA_TEXT;
    c->train.loss = LS_TRAIN_LOSS_AUTO;
    ls_status s = ls_network_create(c, m_p, e);
    free(c);
    return s;
}

static ls_status make_model(ls_prompts *p, const ls_member *m, ls_error *e) {
    const ls_model *own = &m->layout->model;
    LS_TRY(model_of(&m->run->config, &p->model, e));
    assert(p->model.nparams == own->nparams);
    for (int i = 0; i < own->nparams; i++) {
        assert(p->model.params[i].count == own->params[i].count);
        p->model.params[i] = own->params[i];
    }
    ls_model_place(&p->model);
    assert(p->model.nfloats == own->nfloats);
    return LS_OK;
}

static bool has_prompts(const ls_config *c) {
    return *c->train.sample_prompts || *c->train.sample_file;
}

size_t ls_prompts_nbytes(const ls_config *c) {
    ls_model m;
    if (!has_prompts(c) || model_of(c, &m, NULL) != LS_OK) return 0;
    size_t nbytes = ls_decode_nbytes(&m, ls_config_compute(c));
    ls_model_free(&m);
    return nbytes;
}

ls_status ls_prompts_open(ls_prompts *p_p, ls_member *m, ls_error *e) {
    ls_prompts p = {0};
    *p_p = p;
    if (!m->run->dir || !has_prompts(&m->run->config)) return LS_OK;
    ls_status s = m->worker == 0 ? read_prompts(&p, m, e) : LS_OK;
    if (s == LS_OK) s = make_model(&p, m, e);
    s = ls_member_wait(m, s, e);
    if (s == LS_OK) s = share(&p, m, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_prompts_close(&p);
    return s;
}

void ls_prompts_close(ls_prompts *p) {
    for (int i = 0; p->texts && i < p->n; i++) free(p->texts[i]);
    free(p->texts);
    free(p->tokens);
    free(p->begins);
    ls_chat_format_free(&p->chat);
    ls_model_free(&p->model);
    *p = (ls_prompts){0};
}

/* ---- writing ---- */

/* An answer as numbers: how many tokens, why it ends, the tokens. */
enum { NTOKENS, END, FIRST };

static size_t size_of(const ls_member *m) {
    return FIRST + (size_t)m->run->config.train.sample_tokens;
}

typedef struct writing {
    const ls_prompts *p;
    const ls_member *m;
    ls_decode decode;
    ls_sampler sampler;
    uint32_t *text; /* [context] */
    int32_t *answers;
} writing;

static void write_answer(writing *x, int i, int32_t *answer) {
    const ls_prompts *p = x->p;
    const ls_config *c = &x->m->run->config;
    int64_t n = p->begins[i + 1] - p->begins[i], context = c->model.context;
    ls_sampler_rule rule = {.temperature = c->train.sample_temperature};
    memcpy(x->text, p->tokens + p->begins[i], (size_t)n * sizeof *x->text);
    x->decode.npositions = x->decode.ntext = 0;
    answer[END] = LS_END_LENGTH;
    while (answer[NTOKENS] < c->train.sample_tokens && n < context && answer[END] != LS_END_TOKEN &&
           !ls_board_recalled(x->m->slot)) {
        const float *logits = ls_decode_text(&x->decode, x->text, n);
        double u = ls_random_uniform((uint64_t)c->train.seed, LS_STREAM_SAMPLE, (uint64_t)i,
                                     (uint64_t)answer[NTOKENS]);
        uint32_t token =
            ls_sampler_draw(&x->sampler, logits, &rule, (ls_sampler_seen){x->text, n}, u);
        if (is_end(p, token)) answer[END] = LS_END_TOKEN;
        answer[FIRST + answer[NTOKENS]++] = (int32_t)token;
        x->text[n++] = token;
    }
}

/* This worker's part of the prompts. */
static void write_answers(writing *x) {
    const ls_member *m = x->m;
    const ls_tokenizer *t = m->data->text.tokenizer;
    size_t rows = (size_t)m->run->config.model.vocab, used = ls_tokenizer_used(t);
    x->text = LS_NEW_ARRAY(uint32_t, (size_t)m->run->config.model.context);
    x->sampler = ls_sampler_create(rows < used ? rows : used, m->infer.compute->k);
    for (int i = m->worker; i < x->p->n; i += m->nworkers)
        write_answer(x, i, x->answers + (size_t)i * size_of(m));
    ls_sampler_free(&x->sampler);
    free(x->text);
}

/* Keys and values lie in the executor's arena, if that has room. */
static ls_status write_part(ls_member *m, void *arg, ls_error *e) {
    writing *x = arg;
    size_t room = 0, need = ls_decode_nbytes(&x->p->model, m->infer.dtype);
    void *arena = ls_exec_arena(m->execs[0], &room), *own = NULL;
    if (need > room) LS_TRY(ls_map(need, "keys and values", &own, e));
    x->decode = (ls_decode){.model = &x->p->model,
                            .compute = m->infer.compute,
                            .dtype = m->infer.dtype,
                            .params = m->infer.params,
                            .memory = own ? own : arena,
                            .frozen = m->infer.frozen};
    write_answers(x);
    if (own) ls_unmap(own, need);
    return LS_OK;
}

/* The text of an answer; names of special tokens only where a text was continued. */
static ls_buf text_of(const ls_prompts *p, const ls_member *m, const int32_t *answer) {
    ls_buf text = {0};
    bool chat = ls_config_has_chats(&m->run->config);
    ls_decoding d = {.tokenizer = m->data->text.tokenizer, .skip_special = chat, .begun = true};
    for (int i = 0; i < answer[NTOKENS]; i++) {
        uint32_t token = (uint32_t)answer[FIRST + i];
        if (!is_end(p, token)) ls_decoding_add(&d, token, &text);
    }
    ls_decoding_end(&d, &text);
    return text;
}

static ls_answer *answers_of(const writing *x) {
    ls_answer *list = LS_NEW_ARRAY(ls_answer, (size_t)x->p->n);
    for (int i = 0; i < x->p->n; i++) {
        const int32_t *answer = x->answers + (size_t)i * size_of(x->m);
        list[i] = (ls_answer){.prompt = x->p->texts[i],
                              .text = text_of(x->p, x->m, answer),
                              .ntokens = answer[NTOKENS],
                              .end = ls_written_end_name((ls_written_end)answer[END])};
    }
    return list;
}

/* Workers may share the weights: none drops them while another still writes. */
static ls_status write_all(ls_member *m, void *arg, ls_error *e) {
    ls_status s = write_part(m, arg, e);
    bool recalled = ls_board_recalled(m->slot);
    if (s == LS_OK && recalled) s = ls_fail(e, LS_EABORT, "worker %d is recalled", m->worker);
    return recalled ? s : ls_member_wait(m, s, e);
}

ls_status ls_prompts_answer(const ls_prompts *p, ls_member *m, int64_t steps, ls_answer **answers_p,
                            ls_error *e) {
    size_t n = (size_t)p->n * size_of(m);
    writing x = {.p = p, .m = m, .answers = LS_NEW_ARRAY(int32_t, n)};
    ls_status s = ls_with_evaluated_weights(m, steps, write_all, &x, e);
    if (s == LS_OK) s = ls_all_reduce(m->group, x.answers, x.answers, n, LS_I32, LS_SUM, e);
    if (s == LS_OK) *answers_p = m->worker == 0 ? answers_of(&x) : NULL;
    free(x.answers);
    return s;
}

void ls_prompts_free_answers(const ls_prompts *p, ls_answer *list) {
    for (int i = 0; list && i < p->n; i++) ls_buf_free(&list[i].text);
    free(list);
}
