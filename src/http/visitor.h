/* visitor.h - which requests a server accepts: by their Host header, and by a token.
 *
 * A page of another site can make a browser send requests to 127.0.0.1, and by DNS rebinding even
 * read the answers: its own name then leads to this host. Such a request names that site as Host.
 * So only names that nobody else can own are accepted: localhost and addresses of the loopback
 * interface, the address that the user asked for, and names that the user gave. The port does not
 * matter: behind `ssh -L` it is another one.
 */
#ifndef LS_HTTP_VISITOR_H
#define LS_HTTP_VISITOR_H

#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"

enum { LS_TOKEN_TEXT = 33 };

/* Is `host`, the value of the header (NULL: there is none), one of the names of this server? names
 * [n]: those beside localhost, 127.0.0.1 and [::1], without ports. */
bool ls_visitor_host_is_ours(const char *host, const char *const *names, int n);

/* Is an address, as a user writes it, one of the loopback interface? */
bool ls_visitor_is_loopback(const char *address);

/* The host in the URL of a server at `address` (NULL: 127.0.0.1) with these names [n]. */
void ls_visitor_name(const char *address, const char *const *names, int n, ls_buf *out);

/* A new random token, which goes into a URL as it is. LS_EIO: the system has no random numbers. */
ls_status ls_visitor_token_make(char token[LS_TOKEN_TEXT], ls_error *);
/* Are they equal? Takes as long for wrong tokens as for others of their length. NULL is not. */
bool ls_visitor_token_is(const char *given, const char *token);

#endif
