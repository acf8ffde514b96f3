/* worker_message.h - messages between a server and the worker processes that write its replies.
 *
 * All are forks of one process, so messages contain structs as they are in memory.
 */
#ifndef LS_SERVE_WORKER_MESSAGE_H
#define LS_SERVE_WORKER_MESSAGE_H

#include "serve/engine.h"

typedef enum ls_worker_says {
    /* To a worker: */
    LS_SAYS_REQUEST, /* id: of a request; ls_worker_request, and its body */
    LS_SAYS_FORGET,  /* id: of a request that has no more replies */
    LS_SAYS_WRITE,   /* id: of a reply; ls_worker_order, and its tokens */
    LS_SAYS_DROP,    /* id: of a reply */
    /* From a worker: */
    LS_SAYS_READY,  /* ls_worker_ready */
    LS_SAYS_NEWS,   /* id: of a reply; ls_worker_news, tokens, notes, a vector */
    LS_SAYS_COUNTS, /* ls_engine_counts */
    LS_SAYS_FAILED, /* ls_error: its engine has failed */
} ls_worker_says;

typedef struct ls_worker_message {
    ls_worker_says says;
    uint64_t id;
    const char *data; /* [nbytes] not aligned */
    size_t nbytes;
} ls_worker_message;

typedef struct ls_worker_request {
    int kind; /* ls_request_kind */
} ls_worker_request;

/* A reply to write. If another worker has begun it, the tokens that it wrote follow the prompt. */
typedef struct ls_worker_order {
    uint64_t request, seed, number;
    int64_t nprompt, n; /* tokens of the prompt; tokens that were written */
    int64_t most;       /* tokens to write: the worker's own prompt may have another time of day */
    int64_t noted;      /* tokens of the prompt whose probabilities have come already */
    int adapter;
} ls_worker_order;

typedef struct ls_worker_ready {
    ls_status status; /* not LS_OK: the worker ends because of `error` */
    ls_error error;
    int64_t context;
} ls_worker_ready;

/* The progress of a reply since the last message. */
typedef struct ls_worker_news {
    int64_t ntokens, nnotes, nvector, nfound;
    bool ended;
    ls_written_end end;
} ls_worker_news;

/* Appends the head of a message; the caller appends the rest, and ls_message_end() sets the
 * length. */
size_t ls_message_begin(ls_buf *, ls_worker_says, uint64_t id);
void ls_message_end(ls_buf *, size_t begin);
void ls_message_put(ls_buf *, ls_worker_says, uint64_t id, const void *data, size_t nbytes);

/* Takes the message at *at_p of the received bytes, and sets *at_p behind it. False: it is not yet
 * complete. */
bool ls_message_next(const ls_buf *come, size_t *at_p, ls_worker_message *);
/* Takes the message's next bytes. */
void ls_message_take(ls_worker_message *, void *to, size_t nbytes);
/* Removes the first of the received bytes. */
void ls_message_remove(ls_buf *come, size_t nbytes);

#endif
