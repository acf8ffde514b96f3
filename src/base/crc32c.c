/* crc32c.c - eight bytes at a time, with eight tables of the reflected polynomial. Source: Kounavis
 * & Berry, IEEE Trans. Computers 57 (2008) 1550-1560 ("slicing by 8"). */
#include "base/crc32c.h"

#include <pthread.h>

static uint32_t table[8][256]; /* [k][i]: of byte i, followed by k zero bytes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
        table[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            table[k][i] = table[0][table[k - 1][i] & 0xff] ^ (table[k - 1][i] >> 8);
}

uint32_t ls_crc32c(const void *data, size_t nbytes) {
    pthread_once(&once, fill_tables);
    const uint8_t *p = data;
    uint32_t c = 0xffffffffu;
    for (; nbytes >= 8; nbytes -= 8, p += 8) {
        c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        c = table[7][c & 0xff] ^ table[6][c >> 8 & 0xff] ^ table[5][c >> 16 & 0xff] ^
            table[4][c >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (size_t i = 0; i < nbytes; i++) c = table[0][(c ^ p[i]) & 0xff] ^ (c >> 8);
    return c ^ 0xffffffffu;
}
