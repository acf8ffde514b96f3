/* spelling.h - how tokenizer.json and GGUF spell the bytes of a token.
 *
 * Byte-level tokenizers spell each byte as one visible character: bytes that are visible in Latin-1
 * as themselves, the 68 others, in order, as U+0100 and up. The space is U+0120.
 * SentencePiece's spell a space as U+2581, and a single byte as <0x0A>; everything else is text.
 */
#ifndef LS_DATA_SPELLING_H
#define LS_DATA_SPELLING_H

#include <stdbool.h>

#include "base/mem.h"

#define LS_SPACE_MARK "\xE2\x96\x81" /* U+2581 */

int ls_spelling_byte(uint32_t c); /* -1: c spells no byte */

/* Appends the bytes that text [n] of a byte-level tokenizer spells. False: it has a character that
 * spells no byte. */
bool ls_spelling_read(const char *text, size_t n, ls_buf *bytes);
void ls_spelling_write(const uint8_t *bytes, size_t n, ls_buf *text);

/* Appends text [n] with spaces for space marks, and the reverse. */
void ls_spelling_read_spaces(const char *text, size_t n, ls_buf *bytes);
void ls_spelling_write_spaces(const uint8_t *bytes, size_t n, ls_buf *text);

/* The byte that <0x0A> spells; -1: text [n] is not of that form. */
int ls_spelling_single_byte(const char *text, size_t n);

#endif
