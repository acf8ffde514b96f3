/* join_key.c - see join_key.h.
 *
 * key = HKDF-SHA256(secret, no salt, info = LABEL), RFC 5869. The label's number changes with the
 * protocol, so that a key of one protocol is never used in another.
 */
#include "net/join_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static char LABEL[] = "lockstep join key 1"; /* not const: OSSL_PARAM has no const pointers */
static char DIGEST[] = "SHA256";

/* A secret as read; wiped by the function that declares it. */
typedef struct secret {
    char text[LS_KEY_SECRET_MAX + 2]; /* room for a newline, and to see that it is too long */
    size_t len;
} secret;

static ls_status derive(secret *t, ls_key *key_p, ls_error *e) {
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, DIGEST, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, t->text, t->len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, LABEL, sizeof LABEL - 1),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    ls_key key;
    bool ok = ctx && EVP_KDF_derive(ctx, key.bytes, sizeof key.bytes, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    if (ok) *key_p = key;
    OPENSSL_cleanse(&key, sizeof key);
    if (ok) return LS_OK;
    const char *why = ERR_reason_error_string(ERR_get_error());
    ERR_clear_error();
    return ls_fail(e, LS_EIO, "OpenSSL can't derive the join key: %s", why ? why : "no reason");
}

/* `name` is what the user has to correct: the variable, or the file. */
static ls_status secret_check(secret *t, const char *name, ls_error *e) {
    if (t->len && t->text[t->len - 1] == '\n') t->len--;
    if (t->len < LS_KEY_SECRET_MIN)
        return ls_fail(
            e, LS_EINVAL,
            "%s: the join key has %zu characters; it needs at least %d, and a good one has "
            "64 random hex digits",
            name, t->len, LS_KEY_SECRET_MIN);
    if (t->len > LS_KEY_SECRET_MAX)
        return ls_fail(e, LS_EINVAL, "%s: the join key has more than %d characters", name,
                       LS_KEY_SECRET_MAX);
    return LS_OK;
}

static ls_status secret_read_fd(int fd, const char *path, secret *t, ls_error *e) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return ls_fail(e, LS_EIO, "%s: is not a regular file", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return ls_fail(e, LS_EINVAL,
                       "%s: holds the join key, but other users have access to it (mode %03o); "
                       "'chmod 600' repairs that",
                       path, (unsigned)(st.st_mode & 0777));
    while (t->len < sizeof t->text) {
        ssize_t n = read(fd, t->text + t->len, sizeof t->text - t->len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return ls_fail(e, LS_EIO, "%s: can't be read: %s", path, strerror(errno));
        if (n == 0) break;
        t->len += (size_t)n;
    }
    return secret_check(t, path, e);
}

static ls_status secret_read(const char *path, secret *t, ls_error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe may have no writer */
    if (fd < 0) return ls_fail(e, LS_EIO, "%s: can't be opened: %s", path, strerror(errno));
    ls_status s = secret_read_fd(fd, path, t, e); /* of the file that is open, not of its name */
    close(fd);
    return s;
}

ls_status ls_key_of(const char *text, const char *name, ls_key *key_p, ls_error *e) {
    secret t = {.len = strlen(text)};
    if (t.len > sizeof t.text) t.len = sizeof t.text;
    memcpy(t.text, text, t.len);
    ls_status s = secret_check(&t, name, e);
    if (s == LS_OK) s = derive(&t, key_p, e);
    OPENSSL_cleanse(&t, sizeof t);
    return s;
}

ls_status ls_key_find(ls_key *key_p, bool *found_p, ls_error *e) {
    const char *text = getenv("LOCKSTEP_KEY"), *path = getenv("LOCKSTEP_KEY_FILE");
    if (text && path)
        return ls_fail(e, LS_EINVAL,
                       "LOCKSTEP_KEY and LOCKSTEP_KEY_FILE are both set; set only one of them");
    if (!text && !path) {
        *found_p = false;
        return LS_OK;
    }
    ls_status s = LS_OK;
    if (text) {
        s = ls_key_of(text, "LOCKSTEP_KEY", key_p, e);
    } else {
        secret t = {.len = 0};
        s = secret_read(path, &t, e);
        if (s == LS_OK) s = derive(&t, key_p, e);
        OPENSSL_cleanse(&t, sizeof t);
    }
    if (s == LS_OK) *found_p = true;
    return s;
}

ls_status ls_key_require(bool insecure, ls_key *key_p, bool *found_p, ls_error *e) {
    const char *text = getenv("LOCKSTEP_INSECURE");
    *found_p = false;
    if (insecure || (text && strcmp(text, "1") == 0)) return LS_OK;
    LS_TRY(ls_key_find(key_p, found_p, e));
    if (*found_p) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "tcp without a join key: set LOCKSTEP_KEY or LOCKSTEP_KEY_FILE to the same secret on "
        "all workers (e.g. from `openssl rand -hex 32`), or LOCKSTEP_INSECURE=1 to let "
        "anyone join, read and change what is sent");
}

void ls_key_wipe(ls_key *key) { OPENSSL_cleanse(key, sizeof *key); }

void ls_key_make(char text[65]) {
    unsigned char random[32];
    ssize_t n = 0;
    do {
        n = getrandom(random, sizeof random, 0);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof random) { /* can't happen: up to 256 bytes come whole */
        fprintf(stderr, "lockstep: the kernel gives no random numbers: %s\n", strerror(errno));
        abort();
    }
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof random; i++) {
        text[2 * i] = digits[random[i] >> 4];
        text[2 * i + 1] = digits[random[i] & 15];
    }
    text[64] = 0;
    OPENSSL_cleanse(random, sizeof random);
}
