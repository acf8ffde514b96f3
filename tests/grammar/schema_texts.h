/* schema_texts.h - schemas as JSON, and texts that a grammar reads. */
#ifndef TESTS_GRAMMAR_SCHEMA_TEXTS_H
#define TESTS_GRAMMAR_SCHEMA_TEXTS_H

#include "base/json.h"
#include "grammar/walker.h"
#include "test.h"

static inline ls_json *parsed(const char *text, size_t n) {
    ls_json *j = NULL;
    ls_error e = {0};
    if (ls_json_parse(text, n, "it", &j, &e) != LS_OK) fail_msg("%.*s: %s", (int)n, text, e.msg);
    return j;
}

static inline uint32_t read_all(ls_walker *w, const char *text, size_t n) {
    uint32_t state = LS_WALKER_START;
    for (size_t i = 0; i < n; i++) state = ls_walker_step(w, state, (uint8_t)text[i]);
    return state;
}

#endif
