/* entry.c - see entry.h. */
#include "async/entry.h"

#include <netdb.h>
#include <stdlib.h>
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

/* Sends this host's text, or why it can't take part. */
static ls_status answer(const ls_entry *n, ls_conn *c, const char *theirs, ls_error *e) {
    ls_buf own = {0};
    ls_status s = ls_admission_answer(&n->admission, theirs, &own, e);
    if (s == LS_OK)
        s = ls_wire_send(c, LS_WIRE_READY, 0, own.data, own.len, e);
    else
        ls_wire_send(c, LS_WIRE_REFUSES, 0, e->msg, strnlen(e->msg, LS_REFUSAL_NBYTES - 1), NULL);
    ls_buf_free(&own);
    return s;
}

static ls_status greet(const ls_entry *n, ls_conn *c, ls_error *e) {
    char *theirs = NULL;
    ls_frame f;
    LS_TRY(ls_wire_send(c, LS_WIRE_HELLO, 0, &n->hello, sizeof n->hello, e));
    LS_TRY(ls_wire_next(c, ANSWER_S, &f, e));
    if (f.kind != LS_WIRE_SETTINGS) return ls_fail(e, LS_EPEER, "a frame of kind %d came", f.kind);
    LS_TRY(ls_wire_take_text(c, &f, &theirs, e));
    ls_status s = answer(n, c, theirs, e);
    free(theirs);
    return s;
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
