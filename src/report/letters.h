/* letters.h - letters of a fixed size, for pictures of pixels: those of Latin-1. */
#ifndef LS_REPORT_LETTERS_H
#define LS_REPORT_LETTERS_H

#include <stdint.h>

enum {
    LS_LETTER_WIDTH = 6,
    LS_LETTER_HEIGHT = 12,
    LS_LETTER_BASE = 10
}; /* rows above the baseline */

/* Rows [LS_LETTER_HEIGHT] of a character, from the top; its highest bit is the left one of
 * LS_LETTER_WIDTH. Characters that are not of Latin-1 are question marks; a horizontal ellipsis has
 * a form. */
const uint8_t *ls_letter(uint32_t point);

#endif
