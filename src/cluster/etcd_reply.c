/* etcd_reply.c - reads replies of etcd: see etcd_call.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/etcd_call.h"

const char *ls_etcd_clean(const char *text, char *room, size_t nbytes) {
    size_t n = 0;
    for (; text[n] && n + 1 < nbytes; n++) {
        unsigned char c = (unsigned char)text[n];
        room[n] = c < ' ' || c > '~' ? '?' : text[n];
    }
    room[n] = 0;
    return room;
}

ls_etcd_answer ls_etcd_elsewhere(ls_etcd *t, const char *why) {
    ls_etcd_clean(why, t->why[t->at], sizeof t->why[t->at]);
    return ELSEWHERE;
}

ls_etcd_answer ls_etcd_nonsense(const ls_etcd *t, const ls_etcd_request *r, const char *why,
                                ls_error *e) {
    char room[200];
    ls_fail(e, LS_EIO, "etcd at %s: the reply to %s %s", t->endpoint[t->at], r->path,
            ls_etcd_clean(why, room, sizeof room));
    return FAILED;
}

bool ls_etcd_read_count(const ls_json *object, const char *name, int64_t *value_p) {
    const ls_json *j = ls_json_get(object, name);
    const char *text = ls_json_text(j);
    int64_t value = 0;
    char *end = NULL;
    errno = 0;
    if (text) value = strtoll(text, &end, 10);
    bool fits = text ? *text && !*end && errno == 0 : !j || ls_json_integer(j, &value);
    if (!fits || value < 0) return false;
    *value_p = value;
    return true;
}

/* Some replies of etcd have no code, and are recognized by their words. */
static bool has_any(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return true;
    return false;
}

/* etcd reports an error, with a code of gRPC (-1: not known). */
static ls_etcd_answer refusal(ls_etcd *t, int64_t code, const char *why, ls_error *e) {
    static const char *const renew[] = {"invalid auth token", "auth store is old",
                                        "user name is empty", NULL};
    static const char *const gone[] = {"no leader", "timed out", "leader changed",
                                       "code = Unavailable", NULL};
    enum { CANCELLED = 1, UNKNOWN = 2, DEADLINE = 4, NOT_FOUND = 5, EXHAUSTED = 8, ABORTED = 10 };
    enum { INTERNAL = 13, UNAVAILABLE = 14, UNAUTHENTICATED = 16 };
    char room[200];
    if (t->user && (code == UNAUTHENTICATED || has_any(why, renew))) {
        ls_etcd_elsewhere(t, why);
        return RENEW;
    }
    switch (code) {
    case CANCELLED:
    case UNKNOWN:
    case DEADLINE:
    case EXHAUSTED:
    case ABORTED:
    case INTERNAL:
    case UNAVAILABLE: return ls_etcd_elsewhere(t, why);
    case -1:
        if (has_any(why, gone)) return ls_etcd_elsewhere(t, why);
    }
    ls_fail(e, code == NOT_FOUND ? LS_EPEER : LS_EINVAL, "etcd at %s: %s%s", t->endpoint[t->at],
            ls_etcd_clean(why, room, sizeof room),
            strstr(why, "user name is empty") ? " (it asks for a user and a password)" : "");
    return FAILED;
}

/* Decides whether the reply answers the request. */
static ls_etcd_answer judge(ls_etcd *t, const ls_etcd_request *r, const ls_json *j, long http,
                            ls_error *e) {
    const ls_json *error = ls_json_get(j, "error"); /* in a stream, an object */
    if (http == 200 && ls_json_is_object(j) && !error) return ANSWERED;
    const char *why = ls_json_text(ls_json_get(j, "message"));
    if (!why) why = ls_json_text(ls_json_get(error, "message"));
    if (!why) why = ls_json_text(error);
    int64_t code = -1;
    if (!ls_json_integer(ls_json_get(j, "code"), &code) &&
        !ls_json_integer(ls_json_get(error, "grpc_code"), &code))
        ls_json_integer(ls_json_get(error, "code"), &code);
    if (why) return refusal(t, code, why, e);
    if (http == 200) return ls_etcd_nonsense(t, r, "is not a JSON object", e);
    char words[64];
    snprintf(words, sizeof words, "has HTTP status %ld and no error of etcd", http);
    return http >= 500 ? ls_etcd_elsewhere(t, words + 4) : ls_etcd_nonsense(t, r, words, e);
}

ls_etcd_answer ls_etcd_read_reply(ls_etcd *t, ls_etcd_request *r, const char *text, size_t nbytes,
                                  ls_json **j_p, ls_error *e) {
    long http = 0;
    t->lib->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    ls_json *j = NULL;
    if (ls_json_parse(text ? text : "", nbytes, "", &j, NULL) != LS_OK && http == 200)
        return ls_etcd_nonsense(t, r, "is not JSON", e);
    ls_etcd_answer a = judge(t, r, j, http, e);
    if (a == ANSWERED)
        *j_p = j;
    else
        ls_json_free(j);
    return a;
}

/* Reads one line of a watch. *over_p: there is nothing more to wait for. */
static ls_etcd_answer read_line(ls_etcd *t, ls_etcd_request *r, const ls_json *j, bool *over_p,
                                ls_error *e) {
    const ls_json *result = ls_json_get(j, "result");
    int64_t compacted = 0;
    if (!ls_json_is_object(result) || !ls_etcd_read_count(result, "compact_revision", &compacted))
        return ls_etcd_nonsense(t, r, "is not that of a watch", e);
    if (ls_json_is_true(ls_json_get(result, "canceled")) && !compacted) {
        const char *why = ls_json_text(ls_json_get(result, "cancel_reason"));
        return refusal(t, -1, why ? why : "the watch was cancelled", e);
    }
    r->w->changed = compacted || ls_json_count(ls_json_get(result, "events"));
    r->w->created = r->w->created || ls_json_is_true(ls_json_get(result, "created"));
    *over_p = r->w->changed;
    return ANSWERED;
}

ls_etcd_answer ls_etcd_read_lines(ls_etcd *t, ls_etcd_request *r, bool *over_p, ls_error *e) {
    long http = 0;
    size_t used = 0;
    ls_etcd_answer a = ANSWERED;
    t->lib->easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &http);
    if (http != 200 || !t->reply.len)
        return ANSWERED; /* then the reply is one object, perhaps without a newline */
    for (char *nl; a == ANSWERED && !*over_p; used = (size_t)(nl + 1 - t->reply.data)) {
        char *line = t->reply.data + used;
        ls_json *j = NULL;
        nl = memchr(line, '\n', t->reply.len - used);
        if (!nl) break;
        if (nl == line) continue;
        a = ls_etcd_read_reply(t, r, line, (size_t)(nl - line), &j, e);
        if (a == ANSWERED) a = read_line(t, r, j, over_p, e);
        ls_json_free(j);
    }
    t->reply.len -= used;
    memmove(t->reply.data, t->reply.data + used, t->reply.len + 1);
    return a;
}
