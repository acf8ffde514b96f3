/* template_fuzz.c - a chat template from a stranger: parsed, and rendered with a conversation. */
#include "template/template.h"

#include "fuzz.h"

static const char GLOBALS[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\":"
    " \" h\\u00e9 'q' \"}, {\"role\": \"assistant\", \"content\": \"a</think>b\", \"x\": [1, 2.5,"
    " null, true]}], \"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"n\": 3}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    static ls_json *globals;
    static const struct tm date = {.tm_year = 124, .tm_mday = 1};
    ls_template *t = NULL;
    ls_buf out = {0};
    ls_error e = {0};
    if (!globals)
        FUZZ_CHECK(ls_json_parse(GLOBALS, sizeof GLOBALS - 1, "x", &globals, &e) == LS_OK);
    if (ls_template_parse((const char *)data, nbytes, "x", &t, &e) != LS_OK) {
        FUZZ_CHECK(e.msg[0] && !t);
        return 0;
    }
    if (ls_template_render(t, globals, &date, &out, &e) != LS_OK) FUZZ_CHECK(e.msg[0]);
    ls_buf_free(&out);
    ls_template_free(t);
    return 0;
}
