/* etcd_impostor.h - a server that pretends to be etcd, in a thread of the test. */
#ifndef LS_TESTS_CLUSTER_ETCD_IMPOSTOR_H
#define LS_TESTS_CLUSTER_ETCD_IMPOSTOR_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "test.h"

static inline int dial(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) return fd;
    close(fd);
    return -1;
}

static inline void send_all(int fd, const char *text, size_t n) {
    for (ssize_t put; n > 0; text += put, n -= (size_t)put)
        if ((put = send(fd, text, n, MSG_NOSIGNAL)) <= 0) return;
}

typedef enum manner {
    SAYS,    /* sends `reply`, then closes the connection */
    REPEATS, /* sends `reply`, then `more` for ever */
    HANGS,   /* sends `reply`, then nothing */
    SWALLOWS /* passes the request to etcd at port `real`, and does not return the answer */
} manner;

typedef struct impostor {
    manner manner;
    const char *reply, *more;
    const char *login; /* reply to `authenticate`; NULL: the same reply */
    int real;
    /* set by impostor_start() */
    int listen_fd, port;
    pthread_t thread;
    atomic_int nasked; /* requests so far */
} impostor;

/* Reads a whole request. */
static inline void read_request(int fd, ls_buf *b) {
    char part[4096];
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) {
        ls_buf_append(b, part, (size_t)n);
        const char *end = strstr(b->data, "\r\n\r\n"), *size = strstr(b->data, "Content-Length: ");
        if (end && size && b->len >= (size_t)(end + 4 - b->data) + strtoul(size + 16, NULL, 10))
            return;
    }
}

static inline void pass_on(const impostor *m, const ls_buf *b) {
    char part[4096];
    int fd = dial(m->real);
    send_all(fd, b->data, b->len);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, 10000); /* a short answer comes in one piece */
    if (read(fd, part, sizeof part) < 0) part[0] = 0;
    close(fd);
}

static inline void repeat(const char *text, int fd) {
    ls_buf b = {0};
    while (b.len < 65536) ls_buf_append(&b, text, strlen(text));
    while (send(fd, b.data, b.len, MSG_NOSIGNAL) > 0) continue;
    ls_buf_free(&b);
}

static inline void serve(impostor *m, int fd) {
    ls_buf b = {0};
    read_request(fd, &b);
    m->nasked++;
    bool login = m->login && b.data && strstr(b.data, "/v3/auth/authenticate");
    const char *reply = login ? m->login : m->reply;
    if (m->manner == SWALLOWS)
        pass_on(m, &b);
    else
        send_all(fd, reply, strlen(reply));
    if (m->manner == REPEATS) repeat(m->more, fd);
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
    while (m->manner == HANGS && !(p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
        if (poll(&p, 1, 20000) <= 0) break;
    ls_buf_free(&b);
    close(fd);
}

static inline void *be_impostor(void *arg) {
    impostor *m = arg;
    for (int fd; (fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) serve(m, fd);
    return NULL;
}

static inline void impostor_start(impostor *m) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    m->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(m->listen_fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(m->listen_fd, 16), 0);
    assert_int_equal(getsockname(m->listen_fd, (struct sockaddr *)&a, &n), 0);
    m->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&m->thread, NULL, be_impostor, m), 0);
}

static inline void impostor_stop(impostor *m) {
    shutdown(m->listen_fd, SHUT_RDWR);
    pthread_join(m->thread, NULL);
    close(m->listen_fd);
}

#endif
