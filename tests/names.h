/* names.h - names that stand for several addresses: getaddrinfo() of the C library, replaced, for a
 * test and what it links.
 */
#ifndef LS_TEST_NAMES_H
#define LS_TEST_NAMES_H

#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>

#include "test.h"

typedef int look_up_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* "A+B" stands for both addresses, in this order. freeaddrinfo() takes the whole list. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **list_p) {
    union {
        void *symbol;
        look_up_fn *call;
    } next = {dlsym(RTLD_NEXT, "getaddrinfo")};
    const char *plus = name ? strchr(name, '+') : NULL;
    char first[64];
    bool number = hints && hints->ai_flags & AI_NUMERICHOST;
    if (!plus || number) return next.call(name, service, hints, list_p);
    snprintf(first, sizeof first, "%.*s", (int)(plus - name), name);
    int why = next.call(first, service, hints, list_p);
    struct addrinfo **end = list_p;
    while (why == 0 && *end) end = &(*end)->ai_next;
    return why ? why : getaddrinfo(plus + 1, service, hints, end);
}

#endif
