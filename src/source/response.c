/* response.c - see response.h. Values come from a server that may be anybody's. */
#include "source/response.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "Name: value\r\n": copies the value; empty: it is too long, or has control characters. */
static bool header_is(const char *line, size_t n, const char *name, char value[LS_VALIDATOR]) {
    size_t m = strlen(name);
    if (n <= m || strncasecmp(line, name, m) != 0 || line[m] != ':') return false;
    const char *v = line + m + 1, *end = line + n;
    while (v < end && (*v == ' ' || *v == '\t')) v++;
    while (end > v && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
    size_t length = (size_t)(end - v);
    if (length >= LS_VALIDATOR) length = 0;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)v[i] < ' ' || v[i] == 127) length = 0;
    memcpy(value, v, length);
    value[length] = 0;
    return true;
}

/* "HTTP/1.1 206 Partial Content": 0 where it is not that. */
static long status_of(const char *line, size_t n) {
    const char *space = memchr(line, ' ', n);
    size_t at = space ? (size_t)(space - line) + 1 : n;
    long status = 0;
    for (int i = 0; i < 3; i++, at++) {
        if (at >= n || line[at] < '0' || line[at] > '9') return 0;
        status = 10 * status + (line[at] - '0');
    }
    return status;
}

/* "bytes 100-200/300"; UINT64_MAX where it is not that: no download continues there. */
static uint64_t first_of(const char *value) {
    char *end;
    if (strncasecmp(value, "bytes ", 6) != 0 || value[6] < '0' || value[6] > '9') return UINT64_MAX;
    unsigned long long first = strtoull(value + 6, &end, 10);
    return *end == '-' ? first : UINT64_MAX;
}

void ls_response_add(ls_response *r, const char *line, size_t n) {
    char value[LS_VALIDATOR];
    if (n > 5 && strncmp(line, "HTTP/", 5) == 0) {
        r->status = status_of(line, n);
        r->first = 0;
        if (r->status != 206) r->validator[0] = 0;
    } else if (header_is(line, n, "Content-Range", value)) {
        r->first = first_of(value);
    } else if (r->status != 206 && header_is(line, n, "ETag", value)) {
        if (strncmp(value, "W/", 2) != 0) memcpy(r->validator, value, sizeof value);
    } else if (r->status != 206 && !r->validator[0] && header_is(line, n, "Last-Modified", value)) {
        memcpy(r->validator, value, sizeof value);
    }
}
