/* etcd_call.h - one call of etcd: a request, the attempts to have it answered, and what a reply says.
 * Private to etcd.c (the calls that there are), etcd_call.c (attempts) and etcd_reply.c (replies).
 */
#ifndef LS_CLUSTER_ETCD_CALL_H
#define LS_CLUSTER_ETCD_CALL_H

#include "base/json.h"
#include "base/mem.h"
#include "cluster/curl.h"
#include "cluster/etcd.h"

enum { MAX_ENDPOINTS = 16 };

struct ls_etcd {
    const ls_curl *lib;
    CURLM *multi; /* keeps the connections */
    CURL *curl;
    char *endpoint[MAX_ENDPOINTS];   /* "https://host:port" */
    char why[MAX_ENDPOINTS][112];    /* it did not answer in this call; "": it was not tried */
    int n, at;                       /* at: that of the present attempt */
    int64_t limit_ns;                /* of a call */
    char *user, *password;           /* NULL: none */
    struct curl_slist *plain, *full; /* headers; NULL or full: with a token */
    ls_buf reply;    /* the body; of a watch: from the last line that is incomplete */
    size_t nheaders; /* bytes */
    bool too_long;
    char detail[CURL_ERROR_SIZE];
};

/* What an attempt at one endpoint comes to: see etcd_call.c. */
typedef enum ls_etcd_answer { ANSWERED, FAILED, ELSEWHERE, RENEW } ls_etcd_answer;

typedef struct ls_etcd_watching {
    int64_t end;
    bool created; /* by the present attempt */
    bool changed;
} ls_etcd_watching;

typedef struct ls_etcd_request {
    const char *path, *body;
    ls_etcd_watching *w; /* NULL: it has one reply */
    ls_json *reply;      /* out, where it has one and was ANSWERED */
} ls_etcd_request;

/* ---- etcd_call.c ---- */

/* e is not NULL. A watch has until w->end; as long as it is not served, the limit of a call. */
ls_status ls_etcd_call(ls_etcd *, ls_etcd_request *, ls_error *);
/* libcurl's callbacks: a new connection; what comes in. */
curl_socket_t ls_etcd_open_socket(void *etcd, curlsocktype, struct curl_sockaddr *);
size_t ls_etcd_take_body(char *data, size_t size, size_t n, void *etcd);
size_t ls_etcd_take_header(char *data, size_t size, size_t n, void *etcd);
/* token NULL: none. */
struct curl_slist *ls_etcd_headers(const ls_etcd *, const char *token);
void ls_etcd_forget_token(ls_etcd *);

/* ---- etcd_reply.c ---- */

/* Words of others on one line of printable characters; what is too long is cut. */
const char *ls_etcd_clean(const char *text, char *room, size_t nbytes);
/* This endpoint does not answer, for that reason. */
ls_etcd_answer ls_etcd_elsewhere(ls_etcd *, const char *why);
/* The reply is not what etcd says. */
ls_etcd_answer ls_etcd_nonsense(const ls_etcd *, const ls_etcd_request *, const char *why,
                                ls_error *);
/* A member that counts something, and is 0 where it is left out. False: it is something else. */
bool ls_etcd_read_count(const ls_json *object, const char *name, int64_t *value_p);
ls_etcd_answer ls_etcd_read_reply(ls_etcd *, ls_etcd_request *, const char *text, size_t nbytes,
                                  ls_json **j_p, ls_error *);
/* All lines of a watch that are complete. *over_p: there is nothing more to wait for. */
ls_etcd_answer ls_etcd_read_lines(ls_etcd *, ls_etcd_request *, bool *over_p, ls_error *);

#endif
