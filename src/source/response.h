/* response.h - what the headers of an HTTP response say to a download: its status, where its bytes
 * begin in the file, and which state of the file they are from. */
#ifndef LS_SOURCE_RESPONSE_H
#define LS_SOURCE_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

enum { LS_VALIDATOR = 256 };

typedef struct ls_response {
    long status;                  /* 0: no response yet */
    uint64_t first;               /* first byte by Content-Range; 0: there was none */
    char validator[LS_VALIDATOR]; /* ETag, else the date; empty: the download can't be resumed */
} ls_response;

/* One line of headers, with its line break. A line of status begins another response, after a
 * redirection; its validator stays if it is a part (206), whose headers don't set one. */
void ls_response_add(ls_response *, const char *line, size_t n);

#endif
