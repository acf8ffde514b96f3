/* fingerprint.h - the system_fingerprint of answers: a hash of all that decides them besides the
 * request, so that a client can see whether two servers give it the same bytes.
 *
 * These are the weights as they are stored, the types in which products and the cache compute, the
 * vocabulary, what the chat template makes of a conversation, how the model's makers draw, the
 * adapter, and this program's version. Where the server runs, and with how many threads and
 * workers, is not in it. Reading all weights takes a while, so a thread does it.
 */
#ifndef LS_SERVE_FINGERPRINT_H
#define LS_SERVE_FINGERPRINT_H

#include "infer/adapter.h"
#include "serve/request.h"

enum { LS_FINGERPRINT_TEXT = 20 }; /* "fp_", 16 hexadecimal digits and a 0 */

typedef struct ls_fingerprint ls_fingerprint;

/* Begins to compute it. The model and the adapters [model.nadapters] must outlive it. NULL: no
 * thread can be started, and answers have no fingerprint. */
ls_fingerprint *ls_fingerprint_open(const ls_request_model *, ls_kept_type,
                                    const ls_adapter *adapters);
/* The fingerprint of answers with this adapter (from 1 on; 0: without one). NULL: it is not
 * computed yet. */
const char *ls_fingerprint_of(const ls_fingerprint *, int adapter);
void ls_fingerprint_close(ls_fingerprint *); /* NULL is fine */

#endif
