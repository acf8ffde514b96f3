/* worker_message.c - see worker_message.h. */
#include "serve/worker_message.h"

#include <assert.h>
#include <string.h>

typedef struct head {
    uint64_t id, nbytes;
    ls_worker_says says;
} head;

size_t ls_message_begin(ls_buf *out, ls_worker_says says, uint64_t id) {
    head h = {.id = id, .says = says};
    size_t begin = out->len;
    ls_buf_append(out, &h, sizeof h);
    return begin;
}

void ls_message_end(ls_buf *out, size_t begin) {
    head h;
    memcpy(&h, out->data + begin, sizeof h);
    h.nbytes = out->len - begin - sizeof h;
    memcpy(out->data + begin, &h, sizeof h);
}

void ls_message_put(ls_buf *out, ls_worker_says says, uint64_t id, const void *data,
                    size_t nbytes) {
    size_t begin = ls_message_begin(out, says, id);
    ls_buf_append(out, data, nbytes);
    ls_message_end(out, begin);
}

bool ls_message_next(const ls_buf *come, size_t *at_p, ls_worker_message *m) {
    head h;
    if (come->len - *at_p < sizeof h) return false;
    memcpy(&h, come->data + *at_p, sizeof h);
    if (come->len - *at_p - sizeof h < h.nbytes) return false;
    *m = (ls_worker_message){h.says, h.id, come->data + *at_p + sizeof h, h.nbytes};
    *at_p += sizeof h + h.nbytes;
    return true;
}

void ls_message_take(ls_worker_message *m, void *to, size_t nbytes) {
    assert(nbytes <= m->nbytes);
    if (nbytes) memcpy(to, m->data, nbytes);
    m->data += nbytes;
    m->nbytes -= nbytes;
}

void ls_message_remove(ls_buf *come, size_t nbytes) {
    if (nbytes == 0) return;
    memmove(come->data, come->data + nbytes, come->len - nbytes);
    come->len -= nbytes;
}
