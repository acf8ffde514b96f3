/* grammar_fuzz.c - regular expressions and JSON schemas as grammars: from each state that is
 * reached, a next byte is allowed, or the text is complete. */
#include "fuzz.h"
#include "grammar/schema.h"
#include "grammar/walker.h"

/* Of the bytes that are allowed, the input chooses. */
static void walk(const ls_grammar *g, const uint8_t *data, size_t nbytes) {
    ls_walker *w = ls_walker_new(g);
    uint32_t state = LS_WALKER_START;
    for (size_t i = 0; i < nbytes && i < 200; i++) {
        uint32_t next = LS_WALKER_DEAD;
        for (int k = 0; k < 256 && next == LS_WALKER_DEAD; k++)
            next = ls_walker_step(w, state, (uint8_t)(data[i] + k));
        if (next == LS_WALKER_DEAD) FUZZ_CHECK(ls_walker_is_end(w, state));
        if (next == LS_WALKER_DEAD) break;
        state = next;
    }
    ls_walker_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    ls_grammar *g = NULL;
    ls_json *j = NULL;
    ls_error e = {0};
    const char *text = (const char *)data + 1;
    ls_status s = LS_EINVAL;
    if (nbytes < 1) return 0;
    if (data[0] & 1) {
        if (ls_json_parse(text, nbytes - 1, "it", &j, &e) == LS_OK)
            s = ls_grammar_of_schema(j, NULL, &g, &e);
    } else {
        s = ls_grammar_of_regex(text, nbytes - 1, NULL, &g, &e);
    }
    if (s == LS_OK)
        walk(g, data, nbytes);
    else
        FUZZ_CHECK(e.msg[0]);
    ls_json_free(j);
    ls_grammar_free(g);
    return 0;
}
