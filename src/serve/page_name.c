/* page_name.c - see page_name.h. The hash is OpenSSL's. */
#include "serve/page_name.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

ls_page_name ls_page_name_start(int adapter) {
    ls_page_name name = {0};
    memcpy(name.bytes, &adapter, sizeof adapter);
    return name;
}

ls_page_name ls_page_name_of(const ls_page_name *before, const uint32_t *tokens, int n) {
    unsigned char sum[EVP_MAX_MD_SIZE];
    ls_page_name name;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    if (!c || !EVP_DigestInit_ex(c, EVP_sha256(), NULL) ||
        !EVP_DigestUpdate(c, before, sizeof *before) ||
        !EVP_DigestUpdate(c, tokens, (size_t)n * sizeof *tokens) ||
        !EVP_DigestFinal_ex(c, sum, NULL))
        abort();
    EVP_MD_CTX_free(c);
    memcpy(&name, sum, sizeof name);
    return name;
}
