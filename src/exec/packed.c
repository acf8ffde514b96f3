/* packed.c - see packed.h. */
#include "exec/packed.h"

#include <string.h>

static bool has_bit(const ls_packed_rows *p, size_t row) { return p->bits[row / 8] >> row % 8 & 1; }

static bool is_empty(const unsigned char *row, size_t nbytes) {
    return nbytes == 0 || (row[0] == 0 && memcmp(row, row + 1, nbytes - 1) == 0);
}

size_t ls_packed_make(const ls_packed_rows *p, ls_packed_wants *wants, void *arg) {
    size_t n = 0, nbits = ls_packed_bits(p->n);
    memset(p->bits, 0, nbits);
    for (size_t i = 0; i < p->n; i++) {
        bool sent = (!wants || wants(arg, i)) && !is_empty(p->rows + i * p->nbytes, p->nbytes);
        if (sent) p->bits[i / 8] |= (unsigned char)(1u << i % 8);
        n += sent;
    }
    if (n * p->nbytes + nbits >= p->n * p->nbytes) return p->n * p->nbytes;
    unsigned char *to = p->rows;
    for (size_t i = 0; i < p->n; i++) {
        if (!has_bit(p, i)) continue;
        memmove(to, p->rows + i * p->nbytes, p->nbytes);
        to += p->nbytes;
    }
    memcpy(to, p->bits, nbits);
    return n * p->nbytes + nbits;
}

static size_t count_bits(const ls_packed_rows *p) {
    size_t n = 0;
    for (size_t i = 0; i < 8 * ls_packed_bits(p->n); i++) n += has_bit(p, i);
    return n;
}

/* From the last row down, each moves up, to where no row lies that has not moved. */
bool ls_packed_open(const ls_packed_rows *p, size_t nbytes) {
    size_t nbits = ls_packed_bits(p->n);
    if (nbytes == p->n * p->nbytes) return true;
    if (nbytes > p->n * p->nbytes || nbytes < nbits) return false;
    memcpy(p->bits, p->rows + nbytes - nbits, nbits);
    size_t n = count_bits(p);
    if (n > p->n || n * p->nbytes + nbits != nbytes) return false;
    for (size_t i = p->n; i-- > 0;) {
        unsigned char *row = p->rows + i * p->nbytes;
        if (has_bit(p, i))
            memmove(row, p->rows + --n * p->nbytes, p->nbytes);
        else
            memset(row, 0, p->nbytes);
    }
    return n == 0;
}
