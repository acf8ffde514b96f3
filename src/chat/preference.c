/* preference.c - see preference.h. */
#include "chat/preference.h"

#include <stdlib.h>
#include <string.h>

const char *const ls_preference_keys[2] = {"chosen", "rejected"};

static const ls_json *answer_of(const ls_json *line, int which) {
    return ls_json_get(line, ls_preference_keys[which]);
}

bool ls_preference_is(const ls_json *line) {
    const ls_json *chosen = answer_of(line, LS_CHOSEN), *rejected = answer_of(line, LS_REJECTED);
    return chosen && rejected && !ls_json_is_null(chosen) && !ls_json_is_null(rejected);
}

static ls_status fail_same(ls_error *e) {
    return ls_fail(e, LS_EINVAL, "\"chosen\" and \"rejected\" are the same; remove the line");
}

/* ---- texts ---- */

/* The bytes that both begin with: whole characters, without a space before the first difference,
 * which belongs to the answers. */
static size_t common_start(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    while (n && ((unsigned char)a[n] & 0xc0) == 0x80) n--;
    return n && a[n - 1] == ' ' ? n - 1 : n;
}

static ls_status read_texts(const ls_json *line, ls_preference *p, ls_error *e) {
    const char *answers[2], *prompt = ls_json_text(ls_json_get(line, "prompt"));
    for (int i = 0; i < 2; i++) {
        answers[i] = ls_json_text(answer_of(line, i));
        if (!answers[i] || !*answers[i])
            return ls_fail(e, LS_EINVAL, "\"%s\" is no text, or it is empty",
                           ls_preference_keys[i]);
    }
    if (strcmp(answers[0], answers[1]) == 0) return fail_same(e);
    if (!prompt) {
        size_t n = common_start(answers[0], answers[1]);
        prompt = p->prompt = ls_format("%.*s", (int)n, answers[0]);
        for (int i = 0; i < 2; i++) {
            answers[i] += n;
            if (!*answers[i])
                return ls_fail(e, LS_EINVAL,
                               "the other answer begins with all of \"%s\", so that nothing of it "
                               "counts; give both a \"prompt\"",
                               ls_preference_keys[i]);
        }
    }
    for (int i = 0; i < 2; i++)
        p->answers[i] = (ls_conversation){.prompt = prompt, .text = answers[i]};
    return LS_OK;
}

/* ---- messages ---- */

/* A message is a list of one. */
static bool is_list(const ls_json *answer) {
    return ls_json_is_array(answer) || ls_json_is_object(answer);
}

static size_t common_messages(const ls_json *a, const ls_json *b) {
    size_t n = 0;
    while (n < ls_json_count(a) && n < ls_json_count(b) &&
           ls_json_equal(ls_json_at(a, n), ls_json_at(b, n)))
        n++;
    return n;
}

/* Appends what is asked: a list of messages, or what the keys of other forms have. */
static ls_status add_prompt(const ls_json *line, const char *key, ls_conversation *c, ls_error *e) {
    const ls_json *asked = ls_json_get(line, key);
    if (strcmp(key, "instruction") == 0) return ls_conversation_ask(line, c, e);
    if (ls_json_text(asked))
        ls_conversation_add_text(c, "user", ls_json_text(asked));
    else
        LS_TRY(ls_conversation_add(c, asked, key, e));
    return LS_OK;
}

static ls_status add_answer(const ls_json *line, int which, ls_conversation *c, ls_error *e) {
    const ls_json *answer = answer_of(line, which);
    const char *text = ls_json_text(answer), *key = ls_preference_keys[which];
    if (is_list(answer)) return ls_conversation_add(c, answer, key, e);
    if (!text || !*text) return ls_fail(e, LS_EINVAL, "\"%s\" is no text, or it is empty", key);
    ls_conversation_add_text(c, "assistant", text);
    return LS_OK;
}

/* asked: the key of the prompt; NULL: both answers have it. */
static ls_status read_lists(const ls_json *line, const char *asked, ls_preference *p, ls_error *e) {
    ls_conversation *both = p->answers;
    if (ls_json_equal(answer_of(line, LS_CHOSEN), answer_of(line, LS_REJECTED)))
        return fail_same(e);
    for (int i = 0; i < 2; i++) {
        LS_TRY(ls_conversation_begin(line, &both[i], e));
        if (asked) LS_TRY(add_prompt(line, asked, &both[i], e));
        both[i].nprompt = ls_json_count(both[i].messages);
        LS_TRY(add_answer(line, i, &both[i], e));
    }
    if (!asked)
        both[0].nprompt = both[1].nprompt = common_messages(both[0].messages, both[1].messages);
    for (int i = 0; i < 2; i++)
        if (ls_json_count(both[i].messages) <= both[i].nprompt)
            return ls_fail(e, LS_EINVAL,
                           "\"%s\" has no message beyond those that both answers begin with",
                           ls_preference_keys[i]);
    return LS_OK;
}

/* ---- all ---- */

static ls_status fail_form(const ls_json *line, ls_error *e) {
    for (int i = 0; i < 2; i++)
        if (answer_of(line, i))
            return ls_fail(e, LS_EINVAL, "has \"%s\", and no \"%s\"", ls_preference_keys[i],
                           ls_preference_keys[1 - i]);
    return ls_fail(e, LS_EINVAL,
                   "is no pair of answers, which train.loss dpo needs: a line has \"prompt\", "
                   "\"chosen\" and \"rejected\"");
}

/* The key of what is asked, where the template makes text of it. NULL: the answers are lists that
 * have it, or all are texts. */
static const char *find_asked(const ls_json *line) {
    const ls_json *prompt = ls_json_get(line, "prompt"), *chosen = answer_of(line, LS_CHOSEN);
    if (prompt && !ls_json_is_null(prompt)) return ls_json_is_array(prompt) ? "prompt" : NULL;
    if (ls_json_is_array(chosen)) return NULL;
    if (ls_json_text(ls_json_get(line, "question"))) return "question";
    if (ls_json_text(ls_json_get(line, "instruction"))) return "instruction";
    return ls_json_is_array(ls_json_get(line, "conversations")) ? "conversations" : NULL;
}

static ls_status check_kinds(const ls_json *line, bool lists, ls_error *e) {
    const ls_json *prompt = ls_json_get(line, "prompt");
    if (lists != is_list(answer_of(line, LS_REJECTED)))
        return ls_fail(e, LS_EINVAL,
                       "one of \"chosen\" and \"rejected\" is a list of messages, and the other is "
                       "not");
    if (!lists && ls_json_is_array(prompt))
        return ls_fail(e, LS_EINVAL,
                       "\"prompt\" is no text, and \"chosen\" is no list of messages; both are "
                       "texts, or both are lists");
    return LS_OK;
}

static ls_status read(const ls_json *line, ls_preference *p, ls_error *e) {
    static const char *const lists_keys[] = {"prompt", "chosen",    "rejected", "system",
                                             "tools",  "functions", NULL};
    static const char *const asked_keys[] = {"question",      "instruction", "input",    "history",
                                             "conversations", "chosen",      "rejected", "system",
                                             "tools",         "functions",   NULL};
    static const char *const texts_keys[] = {"prompt", "chosen", "rejected", NULL};
    if (!ls_json_is_object(line)) return ls_fail(e, LS_EINVAL, "is not a JSON object");
    if (!ls_preference_is(line)) return fail_form(line, e);
    const char *asked = find_asked(line);
    bool lists = is_list(answer_of(line, LS_CHOSEN));
    LS_TRY(check_kinds(line, lists, e));
    p->keys = asked && strcmp(asked, "prompt") != 0 ? asked_keys : lists ? lists_keys : texts_keys;
    if (asked || lists) return read_lists(line, asked, p, e);
    LS_TRY(ls_conversation_check_texts(line, e));
    return read_texts(line, p, e);
}

ls_status ls_preference_read(const ls_json *line, ls_preference *p_p, ls_error *e) {
    ls_preference p = {0};
    ls_status s = read(line, &p, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_preference_free(&p);
    return s;
}

void ls_preference_free(ls_preference *p) {
    for (int i = 0; i < 2; i++) ls_conversation_free(&p->answers[i]);
    free(p->prompt);
    *p = (ls_preference){0};
}
