/* copy.c - see copy.h. */
#include "base/copy.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

/* LEAST: below, memcpy() needs no `rep movsb`. MOST: from there on, it uses loads and stores
 * again. */
enum { LINE = 64, LEAST = 2048, MOST = 512 << 10 };

static void copy_lines(unsigned char *to, const unsigned char *from, size_t nbytes) {
    for (size_t at = 0; at < nbytes; at += LINE) {
        const __m128i *x = (const __m128i *)(const void *)(from + at);
        __m128i *y = (__m128i *)(void *)(to + at);
        __m128i a = _mm_loadu_si128(x), b = _mm_loadu_si128(x + 1), c = _mm_loadu_si128(x + 2),
                d = _mm_loadu_si128(x + 3);
        _mm_storeu_si128(y, a);
        _mm_storeu_si128(y + 1, b);
        _mm_storeu_si128(y + 2, c);
        _mm_storeu_si128(y + 3, d);
    }
}

void ls_copy(void *restrict to, const void *restrict from, size_t nbytes) {
    if (nbytes < LEAST || nbytes >= MOST || !__builtin_cpu_is("amd")) {
        memcpy(to, from, nbytes);
        return;
    }
    size_t lines = nbytes / LINE * LINE;
    copy_lines(to, from, lines);
    memcpy((unsigned char *)to + lines, (const unsigned char *)from + lines, nbytes - lines);
}

#else

void ls_copy(void *restrict to, const void *restrict from, size_t nbytes) {
    memcpy(to, from, nbytes);
}

#endif
