/* watch.h - a thread that answers while its worker computes, waits, or is stuck.
 *
 * It listens for the worker. A peer that connects has to prove that it has the key and to say which
 * worker of which run it is; otherwise it is dropped with a log line, and disturbs no other peer.
 * The connection of a peer is passed on to the transport. If a peer asks what this worker is doing,
 * the answer is what was published last. If a peer has found that a group can't go on, it sends the
 * reason, which is stored for the worker. The last words of peers that have left, i.e. what they
 * had published, are stored as well.
 */
#ifndef LS_NET_TCP_WATCH_H
#define LS_NET_TCP_WATCH_H

#include "net/tcp/conn.h"
#include "net/tcp/join.h"

enum { LS_WATCH_GROUPS = 64, LS_WATCH_NBYTES = 2048 };

/* The first frame of each connection. */
typedef struct ls_greeting {
    uint64_t nonce[2]; /* of the run */
    uint32_t from, to;
} ls_greeting;

/* Why a group can't go on. */
typedef struct ls_news {
    uint32_t group; /* the group's identity (not its number); 0: there is no news */
    char text[508];
} ls_news;

enum {
    LS_GREETING = 1, /* a connection of the transport */
    LS_QUESTION = 2,
    LS_ANSWER = 3,
    LS_NEWS = 4,        /* a greeting, then the news; answered like a question */
    LS_FIRST_KIND = 16, /* the transport's own */
};

typedef struct ls_watch ls_watch;

/* Takes the roster's listening socket and a copy of the rest. key NULL: plain text. */
ls_status ls_watch_start(const ls_roster *, int rank, const ls_key *, ls_watch **w_p, ls_error *);
void ls_watch_stop(ls_watch *);

/* Readable when a peer's connection can be taken. */
int ls_watch_fd(const ls_watch *);
/* The next of these connections; NULL: there are no more. */
ls_conn *ls_watch_take(ls_watch *, int *from_p);

/* Any thread may call the following. */

int ls_watch_pid(const ls_watch *, int rank);
bool ls_watch_is_here(const ls_watch *, int rank); /* on this host */

/* Sets n bytes, from `at` on, of the answer to questions about `group`. The answer has
 * LS_WATCH_NBYTES. */
void ls_watch_publish(ls_watch *, int group, size_t at, const void *data, size_t n);
/* The whole answer; false: nothing was published. */
bool ls_watch_published(ls_watch *, int group, unsigned char data[LS_WATCH_NBYTES]);
/* Stores news of a group as if a peer had sent it. */
void ls_watch_store_news(ls_watch *, int group, const ls_news *);
/* Is there news of the group with this number and identity? */
bool ls_watch_find_news(ls_watch *, int group, uint32_t identity, ls_news *news_p);

/* What worker `rank` had published about a group when it left. */
void ls_watch_store_last_words(ls_watch *, int group, int rank,
                               const unsigned char data[LS_WATCH_NBYTES]);
bool ls_watch_find_last_words(ls_watch *, int group, int rank, unsigned char data[LS_WATCH_NBYTES]);
/* How many last words have been stored so far. */
unsigned ls_watch_nlast_words(const ls_watch *);

/* One worker that is asked. */
typedef struct ls_inquiry {
    int rank;
    /* LS_ETIMEOUT: no answer, even if it accepts the connection; LS_EPEER: it has gone. */
    ls_status status;
    unsigned char data[LS_WATCH_NBYTES]; /* what it has published */
    ls_news news;                        /* the news that it has */
} ls_inquiry;

/* Asks all of these workers at once. Those with status LS_OK have stored `news` (NULL: none). */
void ls_watch_ask(ls_watch *, int group, const ls_news *news, ls_inquiry *asked, int n,
                  int64_t timeout_ns);

#endif
