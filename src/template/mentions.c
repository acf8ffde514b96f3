/* mentions.c - which names a template knows: see template.h. */
#include <string.h>

#include "template/node.h"

static bool is_name(const ls_template_node *x, const char *word) {
    bool names = x->kind == LS_NODE_STRING || x->kind == LS_NODE_NAME || x->kind == LS_NODE_MEMBER;
    return names && x->n == strlen(word) && memcmp(x->text, word, x->n) == 0;
}

static bool mentions(const ls_template_node *x, const char *word) {
    for (; x; x = x->next) {
        const ls_template_node *const parts[] = {x->a, x->b, x->c, x->list, x->body, x->other};
        if (is_name(x, word)) return true;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (mentions(parts[i], word)) return true;
    }
    return false;
}

bool ls_template_mentions(const ls_template *t, const char *word) {
    return mentions(t->body, word);
}
