/* etcd_call.h - one call of etcd: a request, the attempts to get an answer, and the reply's
 * meaning. Private to etcd.c (all calls), etcd_call.c (attempts) and etcd_reply.c (replies).
 */
#ifndef LS_CLUSTER_ETCD_CALL_H
#define LS_CLUSTER_ETCD_CALL_H

#include "base/curl.h"
#include "base/json.h"
#include "base/mem.h"
#include "cluster/etcd.h"

enum { MAX_ENDPOINTS = 16 };

struct ls_etcd {
    const ls_curl *lib;
    CURLM *multi; /* keeps the connections */
    CURL *curl;
    char *endpoint[MAX_ENDPOINTS];   /* "https://host:port" */
    char why[MAX_ENDPOINTS][112];    /* it did not answer in this call; "": it was not tried */
    int n, at;                       /* at: the endpoint of the current attempt */
    int64_t limit_ns;                /* for a call */
    char *user, *password;           /* NULL: none */
    struct curl_slist *plain, *full; /* headers; NULL or full: with a token */
    ls_buf reply;                    /* the body; in a watch, its last line, which is incomplete */
    size_t nheaders;                 /* bytes */
    bool too_long;
    char detail[CURL_ERROR_SIZE];
};

/* The outcome of an attempt at one endpoint: see etcd_call.c. */
typedef enum ls_etcd_answer { ANSWERED, FAILED, ELSEWHERE, RENEW } ls_etcd_answer;

typedef struct ls_etcd_watching {
    int64_t end;
    bool created; /* by the current attempt */
    bool changed;
} ls_etcd_watching;

typedef struct ls_etcd_request {
    const char *path, *body;
    ls_etcd_watching *w; /* NULL: not a watch, so there is one reply */
    ls_json *reply;      /* out, if this is not a watch and was ANSWERED */
} ls_etcd_request;

/* ---- etcd_call.c ---- */

/* e is not NULL. A watch lasts until w->end; while no endpoint serves it, the limit for a call
 * applies. */
ls_status ls_etcd_call(ls_etcd *, ls_etcd_request *, ls_error *);
/* libcurl's callbacks: a new connection; received bytes. */
curl_socket_t ls_etcd_open_socket(void *etcd, curlsocktype, struct curl_sockaddr *);
size_t ls_etcd_take_body(char *data, size_t size, size_t n, void *etcd);
size_t ls_etcd_take_header(char *data, size_t size, size_t n, void *etcd);
/* token NULL: none. */
struct curl_slist *ls_etcd_headers(const ls_etcd *, const char *token);
void ls_etcd_forget_token(ls_etcd *);

/* ---- etcd_reply.c ---- */

/* Copies a text of others as one line of printable characters, cut if it is too long. */
const char *ls_etcd_clean(const char *text, char *room, size_t nbytes);
/* This endpoint does not answer, for that reason. */
ls_etcd_answer ls_etcd_elsewhere(ls_etcd *, const char *why);
/* The reply is not one that etcd gives. */
ls_etcd_answer ls_etcd_nonsense(const ls_etcd *, const ls_etcd_request *, const char *why,
                                ls_error *);
/* Reads a member that is a count; 0 if it is left out. False: it is not a count. */
bool ls_etcd_read_count(const ls_json *object, const char *name, int64_t *value_p);
ls_etcd_answer ls_etcd_read_reply(ls_etcd *, ls_etcd_request *, const char *text, size_t nbytes,
                                  ls_json **j_p, ls_error *);
/* Reads all complete lines of a watch. *over_p: there is nothing more to wait for. */
ls_etcd_answer ls_etcd_read_lines(ls_etcd *, ls_etcd_request *, bool *over_p, ls_error *);

#endif
