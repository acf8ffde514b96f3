/* entry.c - see entry.h. */
#include "async/entry.h"

#include <netdb.h>
#include <string.h>

#include "net/address.h"

enum { REACH_MS = 3000, ANSWER_S = 10 };

ls_status ls_entry_open(ls_entry *n, ls_error *e) {
    return ls_key_require(false, &n->key, &n->has_key, e);
}

void ls_entry_close(ls_entry *n) { ls_key_wipe(&n->key); }

/* Copies the next address; after the last one comes the first. */
static void choose(ls_entry *n, char text[256]) {
    const char *at = n->addresses;
    for (int i = 0; i < n->next && strchr(at, ','); i++) at = strchr(at, ',') + 1;
    size_t nbytes = strcspn(at, ",");
    n->next = at[nbytes] ? n->next + 1 : 0;
    if (nbytes > 255) nbytes = 255;
    memcpy(text, at, nbytes);
    text[nbytes] = 0;
}

static ls_status reach(ls_entry *n, ls_conn **c_p, ls_error *e) {
    ls_address at;
    char text[256];
    struct addrinfo *list = NULL;
    choose(n, text);
    LS_TRY(ls_address_parse(text, &at, e));
    const char *why = ls_address_look_up(at.host, at.port, 0, &list);
    if (why) return ls_fail(e, LS_EPEER, "'%.200s:%d': %s", at.host, at.port, why);
    const struct sockaddr_storage any = {.ss_family = AF_UNSPEC};
    int fd = ls_socket_reach(list, &any, REACH_MS);
    freeaddrinfo(list);
    if (fd < 0) return ls_fail(e, LS_EPEER, "'%.200s': no connection", text);
    ls_socket_options(fd);
    return ls_conn_new(fd, false, n->has_key ? &n->key : NULL, c_p, e);
}

/* Names the first line that differs. */
static ls_status compare(const char *own, const char *theirs, ls_error *e) {
    const char *a = own, *b = theirs;
    while (*a && *b) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        if (na != nb || strncmp(a, b, na) != 0) break;
        a += na + (a[na] != 0);
        b += nb + (b[nb] != 0);
    }
    if (!*a && !*b) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "this host has %.*s, the host of the servers has %.*s; these must match",
                   (int)(strcspn(a, "\n") % 100), a, (int)(strcspn(b, "\n") % 100), b);
}

static ls_status greet(const ls_entry *n, ls_conn *c, ls_error *e) {
    char text[LS_WIRE_SETTINGS_NBYTES + 1];
    ls_frame f;
    LS_TRY(ls_wire_send(c, LS_WIRE_HELLO, 0, &n->hello, sizeof n->hello, e));
    LS_TRY(ls_wire_next(c, ANSWER_S, &f, e));
    size_t nbytes = f.nbytes < sizeof text ? (size_t)f.nbytes : 0;
    LS_TRY(ls_wire_take(c, &f, LS_WIRE_SETTINGS, text, nbytes, e));
    text[nbytes] = 0;
    return compare(n->settings, text, e);
}

ls_status ls_entry_connect(ls_entry *n, ls_conn **c_p, ls_error *e) {
    ls_conn *c = NULL;
    LS_TRY(reach(n, &c, e));
    ls_status s = greet(n, c, e);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_conn_free(c);
    return s;
}
