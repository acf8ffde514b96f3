/* base64.c - see base64.h. OpenSSL has a decoder, but it accepts spaces, and padding anywhere. */
#include "base/base64.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST = 1 << 30 };

char *ls_base64_encode(const void *data, size_t nbytes) {
    assert(nbytes <= MOST);
    unsigned char *text = ls_alloc((nbytes + 2) / 3 * 4 + 1);
    EVP_EncodeBlock(text, data, (int)nbytes);
    return (char *)text;
}

char *ls_base64_decode(const char *text, size_t *nbytes_p) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strlen(text), ndigits = strspn(text, digits), npads = n - ndigits;
    if (n % 4 || npads > 2 || strspn(text + ndigits, "=") != npads || n > MOST) return NULL;
    unsigned char *data = ls_alloc(n / 4 * 3 + 1);
    if (n && EVP_DecodeBlock(data, (const unsigned char *)text, (int)n) < 0) {
        free(data);
        return NULL;
    }
    *nbytes_p = n / 4 * 3 - npads;
    data[*nbytes_p] = 0;
    return (char *)data;
}
