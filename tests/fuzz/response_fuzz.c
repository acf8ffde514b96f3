/* response_fuzz.c - headers of HTTP responses from a server that may be anybody's, a line each, and
 * names with braces: the first byte chooses. */
#include "data/braces.h"
#include "fuzz.h"
#include "source/response.h"

static void add_headers(const uint8_t *data, size_t nbytes) {
    ls_response r = {0};
    while (nbytes) {
        const uint8_t *end = memchr(data, '\n', nbytes);
        size_t n = end ? (size_t)(end - data) + 1 : nbytes;
        char *line = malloc(n); /* of its own: reading beyond it is found */
        FUZZ_CHECK(line);
        memcpy(line, data, n);
        ls_response_add(&r, line, n);
        free(line);
        FUZZ_CHECK(memchr(r.validator, 0, sizeof r.validator) && r.status >= 0 && r.status < 1000);
        for (const char *s = r.validator; *s; s++) FUZZ_CHECK((unsigned char)*s >= ' ');
        data += n;
        nbytes -= n;
    }
}

/* As many names as lines; without braces the name itself. */
static void expand(const uint8_t *data, size_t nbytes) {
    ls_buf names = {0};
    ls_error e = {0};
    char *name = malloc(nbytes + 1);
    FUZZ_CHECK(name);
    memcpy(name, data, nbytes);
    name[nbytes] = 0;
    if (strlen(name) == nbytes && nbytes < 64 && !memchr(name, '\n', nbytes)) {
        bool found = ls_braces_are_in(name);
        ls_status s = ls_braces_expand(name, &names, &e);
        FUZZ_CHECK(s == LS_OK ? names.len > 0 : e.msg[0] != 0);
        if (!found)
            FUZZ_CHECK(s == LS_OK && names.len == nbytes + 1 && !memcmp(names.data, name, nbytes));
    }
    ls_buf_free(&names);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    if (nbytes == 0) return 0;
    if (data[0] % 2)
        expand(data + 1, nbytes - 1);
    else
        add_headers(data + 1, nbytes - 1);
    return 0;
}
