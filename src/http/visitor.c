/* visitor.c - see visitor.h. */
#include "http/visitor.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

/* The length of the name in "name:port", "[::1]:port", or without a port; 0: it is malformed. */
static size_t name_length(const char *host) {
    size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (*host == '[' && n > strlen(host)) return 0;
    const char *port = host + n;
    if (*port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")])) return 0;
    return n;
}

static bool is_name(const char *host, size_t n, const char *name) {
    size_t length = strlen(name);
    if (n == length && strncasecmp(host, name, n) == 0) return true;
    /* An IPv6 address stands in brackets there. */
    return n == length + 2 && *host == '[' && strchr(name, ':') &&
           strncasecmp(host + 1, name, length) == 0;
}

bool ls_visitor_host_is_ours(const char *host, const char *const *names, int n) {
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t length = host ? name_length(host) : 0;
    if (!length) return false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (is_name(host, length, own[i])) return true;
    for (int i = 0; i < n; i++)
        if (is_name(host, length, names[i])) return true;
    return false;
}

bool ls_visitor_is_loopback(const char *address) {
    return strcmp(address, "localhost") == 0 || strcmp(address, "::1") == 0 ||
           strncmp(address, "127.", 4) == 0;
}

void ls_visitor_name(const char *address, const char *const *names, int n, ls_buf *out) {
    const char *name = n > 0 ? names[0] : address;
    if (!address || strcmp(address, "localhost") == 0 || strcmp(address, "127.0.0.1") == 0)
        name = "localhost";
    bool brackets = strchr(name, ':'); /* an IPv6 address */
    ls_buf_printf(out, "%s%s%s", brackets ? "[" : "", name, brackets ? "]" : "");
}

ls_status ls_visitor_token_make(char token[LS_TOKEN_TEXT], ls_error *e) {
    uint8_t bytes[(LS_TOKEN_TEXT - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ls_fail(e, LS_EIO, "there are no random numbers for a token: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return LS_OK;
}

bool ls_visitor_token_is(const char *given, const char *token) {
    size_t n = strlen(token);
    unsigned char differs = 0;
    if (!given || strlen(given) != n) return false;
    for (size_t i = 0; i < n; i++) differs |= (unsigned char)(given[i] ^ token[i]);
    return n && !differs;
}
