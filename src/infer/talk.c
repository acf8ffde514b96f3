/* talk.c - see talk.h. */
#include "infer/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ls_talk_cut(ls_talk *t, size_t n) {
    for (size_t i = n; i < t->n; i++) free(t->messages[i].text);
    if (t->n > n) t->n = n;
}

void ls_talk_free(ls_talk *t) {
    ls_talk_cut(t, 0);
    free(t->messages);
    *t = (ls_talk){0};
}

bool ls_talk_add(ls_talk *t, const char *role, const char *text) {
    static const char *const roles[] = {"system", "user", "assistant"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(role, roles[i]) != 0) continue;
        t->messages = ls_realloc(t->messages, (t->n + 1) * sizeof *t->messages);
        t->messages[t->n++] = (ls_chat_message){roles[i], ls_strdup(text)};
        return true;
    }
    return false;
}

void ls_talk_begin(ls_talk *t, const char *system) {
    ls_talk_cut(t, 0);
    if (system && *system) ls_talk_add(t, "system", system);
}
