/* preference.c - see preference.h. */
#include "chat/preference.h"

#include <stdlib.h>
#include <string.h>

const char *const ls_preference_keys[2] = {"chosen", "rejected"};

static const ls_json *answer_of(const ls_json *line, int which) {
    return ls_json_get(line, ls_preference_keys[which]);
}

bool ls_preference_is(const ls_json *line) {
    return answer_of(line, LS_CHOSEN) && answer_of(line, LS_REJECTED);
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

static size_t common_messages(const ls_json *a, const ls_json *b) {
    size_t n = 0;
    while (n < ls_json_count(a) && n < ls_json_count(b) &&
           ls_json_equal(ls_json_at(a, n), ls_json_at(b, n)))
        n++;
    return n;
}

static ls_status read_lists(const ls_json *line, ls_preference *p, ls_error *e) {
    const ls_json *prompt = ls_json_get(line, "prompt"), *answers[2];
    bool given = prompt && ls_json_is_array(prompt);
    for (int i = 0; i < 2; i++) answers[i] = answer_of(line, i);
    if (ls_json_equal(answers[0], answers[1])) return fail_same(e);
    size_t same = given ? ls_json_count(prompt) : common_messages(answers[0], answers[1]);
    for (int i = 0; i < 2; i++) {
        ls_conversation *c = &p->answers[i];
        LS_TRY(
            ls_conversation_of_lists(line, given ? "prompt" : NULL, ls_preference_keys[i], c, e));
        c->nprompt = same;
        if (ls_json_count(c->messages) <= same)
            return ls_fail(e, LS_EINVAL,
                           "\"%s\" has no message beyond those that both answers begin with",
                           ls_preference_keys[i]);
    }
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

static ls_status read(const ls_json *line, ls_preference *p, ls_error *e) {
    if (!ls_json_is_object(line)) return ls_fail(e, LS_EINVAL, "is not a JSON object");
    if (!ls_preference_is(line)) return fail_form(line, e);
    const ls_json *prompt = ls_json_get(line, "prompt");
    bool lists = ls_json_is_array(answer_of(line, LS_CHOSEN));
    if (lists != ls_json_is_array(answer_of(line, LS_REJECTED)))
        return ls_fail(e, LS_EINVAL,
                       "one of \"chosen\" and \"rejected\" is a list of messages, and the other is "
                       "not");
    if (!lists && prompt && !ls_json_text(prompt))
        return ls_fail(e, LS_EINVAL,
                       "\"prompt\" is no text, and \"chosen\" is no list of messages; both are "
                       "texts, or both are lists");
    return lists ? read_lists(line, p, e) : read_texts(line, p, e);
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
