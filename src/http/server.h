/* server.h - a small HTTP server in one thread of its user.
 *
 * The user calls ls_http_run() again and again; requests are answered there, by a function that
 * looks at the path as a word and never opens it. Only GET and HEAD are answered, and POST where
 * the user wants it (others: 405), only under the names of visitor.h (others: 403), and only with
 * the token, if there is one (others: 401). Every answer has the headers that keep a browser from
 * loading anything from elsewhere.
 *
 * A stream is an answer in pieces, such as server-sent events: the server asks it for bytes when
 * its client can receive some. A stream that has none pauses until ls_http_wake(). So a slow client
 * costs no memory: bytes that it can't receive yet are not made. The answer to a POST is closed as
 * soon as its client has gone away. A client that has only ended its own direction (shutdown(), RFC
 * 9112 permits it) looks the same as one that has closed its socket until something is sent to it,
 * so that both are sent bytes that change nothing, each second: the system of a closed socket
 * refuses them.
 *
 * An answer may be pending: another thread makes it. Its request pauses, and after each
 * ls_http_wake() the server asks for the answer.
 *
 * Everything in libmicrohttpd that the project uses is in server.c and microhttpd.c.
 */
#ifndef LS_HTTP_SERVER_H
#define LS_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

/* Connections at a time; of these, streams: the others stay for short answers. */
enum { LS_HTTP_CONNECTIONS = 512, LS_HTTP_STREAMS = 256 };

typedef struct ls_http ls_http;
typedef struct ls_http_request ls_http_request;

/* The path, with its escapes resolved: "/", "/series". */
const char *ls_http_path(const ls_http_request *);
/* A value of the query, or of a header; NULL: there is none. Valid until the answer is given. */
const char *ls_http_query(const ls_http_request *, const char *name);
const char *ls_http_header(const ls_http_request *, const char *name);

/* The method is POST, with this body [*n_p], which is valid until the answer is given; else
 * NULL. */
const char *ls_http_posted(const ls_http_request *, size_t *n_p);
/* Moves that body to the caller, which frees it; the request's body is then empty. */
ls_buf ls_http_take_posted(const ls_http_request *);

/* Where a stream's bytes come from. */
#define LS_HTTP_END ((size_t)-1)
typedef struct ls_http_source {
    /* Writes at most `most` bytes (at least 4096); 0: there are none now; LS_HTTP_END: there will
     * be none. */
    size_t (*next)(void *stream, char *bytes, size_t most);
    void (*close)(void *stream); /* the client or the server has closed the stream */
    /* Writes bytes that change nothing for whoever reads the stream, to a client that sends no
     * more; 0: none can stand here. NULL: there are none, and such a client is taken to be gone. */
    size_t (*probe)(void *stream, char *bytes, size_t most);
} ls_http_source;

typedef struct ls_http_answer ls_http_answer;

/* An answer that another thread makes. The last call is ready() that returns true, or drop(); it
 * frees the job. */
typedef struct ls_http_pending {
    bool (*ready)(
        void *job,
        ls_http_answer *);   /* fills in the answer, which is {0}; false: it is not made yet */
    void (*drop)(void *job); /* the client has gone, or the server ends */
} ls_http_pending;

struct ls_http_answer {
    int status;       /* 200 by default */
    const char *type; /* of the content; text/plain by default */
    const char *tag;  /* ETag, quoted; NULL: none. The content may be stored while it is the same */
    ls_buf body;      /* the server frees it */
    const void *text; /* [ntext] instead: a constant of the program */
    size_t ntext;
    const ls_http_source *source; /* instead: a stream */
    void *stream;
    const char *headers[2][2]; /* [nheaders] further ones: name, value; constants */
    int nheaders;
    const ls_http_pending *pending; /* instead of all: the answer will come later */
    void *job;
};

/* Answers a request. The answer is {0} when it is called. */
typedef void ls_http_answerer(void *arg, const ls_http_request *, ls_http_answer *);

typedef struct ls_http_options {
    const char *address;      /* NULL: 127.0.0.1 */
    int port;                 /* 0: a free one */
    const char *const *names; /* [nnames] of this host, beside those of the loopback interface */
    int nnames;
    const char *token; /* NULL: none is needed */
    const char
        *open_path; /* GET of it needs no token, and no name of this host; NULL: there is none */
    const char *certificate, *key; /* files in PEM: by TLS; NULL: not */
    size_t posts_nbytes;           /* the largest body of a POST (others: 413); 0: there are none */
    ls_http_answerer *answer;
    /* Writes the answer to a request that the server refuses itself, unless a browser shows it
     * (Accept has text/html). NULL: all of these are plain text. */
    void (*refuse)(void *arg, int status, const char *why, ls_http_answer *);
    void *arg;
} ls_http_options;

/* Listens. The options' texts must outlive the server. LS_EIO, LS_EINVAL: it can't. */
ls_status ls_http_open(const ls_http_options *, ls_http **h_p, ls_error *);
int ls_http_port(const ls_http *);
/* Streams that clients have open, and requests whose answers are pending. */
int ls_http_nstreams(const ls_http *);
/* Readable when ls_http_run() has work to do; timeouts are not included: see ls_http_rests(). */
int ls_http_fd(const ls_http *);
/* How many milliseconds, at most `ms`, ls_http_run() has nothing to do unless data arrive. */
int ls_http_rests(const ls_http *, int ms);
/* Answers requests that have come; waits at most `ms` milliseconds for data or a signal. */
void ls_http_run(ls_http *, int ms);
/* The next ls_http_run() asks all streams for bytes, and all jobs for pending answers. */
void ls_http_wake(ls_http *);
void ls_http_close(ls_http *); /* ends all connections; NULL is fine */

#endif
