/* answer.h - replies as OpenAI's JSON: one object, or the events of a stream. */
#ifndef LS_SERVE_ANSWER_H
#define LS_SERVE_ANSWER_H

#include "serve/request.h"

/* The replies to a request, [request->n] to each prompt, one prompt after the other. */
typedef struct ls_text_answer {
    const ls_text_request *request;
    const ls_request_model *model;
    const ls_reply *replies; /* [n] */
    size_t n;
    char id[48];
    int64_t created;                /* seconds since 1970 */
    const char *system_fingerprint; /* NULL: not known */
} ls_text_answer;

/* An item of a response. */
typedef enum ls_answer_item {
    LS_ITEM_NONE,
    LS_ITEM_THOUGHT,
    LS_ITEM_MESSAGE,
    LS_ITEM_CALL,
    LS_ITEM_AFTER /* a message behind calls */
} ls_answer_item;

/* How much of a reply a stream has sent. */
typedef struct ls_answer_sent {
    bool begun, ended;
    ls_answer_item open;         /* the item that is not yet done */
    size_t text, thought, notes; /* bytes of content, and of what was thought; notes */
    size_t calls, arguments; /* calls of tools that have begun; bytes of the last one's arguments */
    size_t after;            /* bytes of content behind calls */
    bool called;             /* ls_answer_parts.called */
    size_t events;           /* of a response */
} ls_answer_sent;

bool ls_answer_is_complete(const ls_text_answer *);
/* Appends the object of an answer that is complete. */
void ls_answer_write(const ls_text_answer *, ls_buf *out);
/* Appends events for what is new of each reply; sent [n]. After the last reply has ended, also the
 * events that end the stream. */
void ls_answer_stream(const ls_text_answer *, ls_answer_sent *sent, ls_buf *out);

/* Appends {"error": ...}. */
void ls_answer_refuse(const ls_refusal *, ls_buf *out);

#endif
