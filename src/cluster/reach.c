/* reach.c - see reach.h. */
#include "cluster/reach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/mem.h"
#include "net/address.h"

enum { MOST_ATTEMPTS = 16, MOST_GUESTS = 64 /* that are accepted at a time */ };
static const int64_t LIMIT_NS = (int64_t)3 * 1000000000;

typedef struct attempt {
    int fd; /* -1: it could not begin */
    int32_t number;
    int64_t began_ns;
} attempt;

struct ls_reach {
    int listen_fd;
    int n;
    attempt attempts[MOST_ATTEMPTS];
};

ls_reach *ls_reach_open(const char *host) {
    ls_reach *r = LS_NEW(ls_reach);
    ls_address at = {.port = 0};
    struct sockaddr_storage all = {.ss_family = AF_INET6};
    r->listen_fd = -1;
    snprintf(at.host, sizeof at.host, "%s", host);
    if ((*host || ls_socket_listen(&all, &r->listen_fd, NULL) != LS_OK) &&
        ls_address_listen(&at, &r->listen_fd, NULL) != LS_OK)
        r->listen_fd = -1;
    ls_fork_closes(r->listen_fd);
    return r;
}

void ls_reach_close(ls_reach *r) {
    if (!r) return;
    ls_fork_close(r->listen_fd);
    for (int i = 0; i < r->n; i++) ls_fork_close(r->attempts[i].fd);
    free(r);
}

void ls_reach_place(const ls_reach *r, char *text, size_t nbytes) {
    struct sockaddr_storage at;
    if (nbytes) text[0] = 0;
    if (r->listen_fd >= 0 && ls_socket_own(r->listen_fd, &at)) ls_address_text(&at, text, nbytes);
}

/* ---- attempts ---- */

static int connect_to(const char *text) {
    ls_address a;
    struct sockaddr_storage at;
    if (ls_address_parse(text, &a, NULL) != LS_OK || !ls_address_numeric(&a, &at)) return -1;
    int fd = ls_socket_dial(&at);
    ls_fork_closes(fd);
    return fd;
}

void ls_reach_try(ls_reach *r, int32_t number, const char *address) {
    if (r->n == MOST_ATTEMPTS) {
        attempt *oldest = &r->attempts[0];
        ls_fork_close(oldest->fd);
        *oldest = r->attempts[--r->n];
    }
    r->attempts[r->n++] =
        (attempt){.fd = connect_to(address), .number = number, .began_ns = ls_clock_ns()};
}

static void accept_guests(const ls_reach *r) {
    for (int i = 0; r->listen_fd >= 0 && i < MOST_GUESTS; i++) {
        int fd = accept(r->listen_fd, NULL, NULL);
        if (fd < 0) return;
        close(fd);
    }
}

/* False: the attempt has not ended. */
static bool has_ended(const attempt *a, bool *reached_p) {
    struct pollfd p = {.fd = a->fd, .events = POLLOUT};
    int why = 0;
    socklen_t n = sizeof why;
    *reached_p = false;
    if (a->fd < 0) return true;
    if (poll(&p, 1, 0) != 1) return ls_clock_ns() - a->began_ns > LIMIT_NS;
    *reached_p = getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && why == 0;
    return true;
}

bool ls_reach_next(ls_reach *r, int32_t *number_p, bool *reached_p) {
    accept_guests(r);
    for (int i = 0; i < r->n; i++) {
        attempt *a = &r->attempts[i];
        if (!has_ended(a, reached_p)) continue;
        *number_p = a->number;
        ls_fork_close(a->fd);
        *a = r->attempts[--r->n];
        return true;
    }
    return false;
}
