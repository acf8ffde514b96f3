/* characters.h - white space and characters of UTF-8 text, as Python's str counts them. */
#ifndef LS_TEMPLATE_CHARACTERS_H
#define LS_TEMPLATE_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the character at s [n], n at least 1; an invalid byte counts as one character. */
size_t ls_character(const char *s, size_t n, uint32_t *point_p);
size_t ls_characters(const char *s, size_t n); /* how many there are */
/* The bytes of the first k characters of s [n]. */
size_t ls_characters_bytes(const char *s, size_t n, size_t k);

bool ls_is_space(uint32_t point);                   /* str.isspace() */
size_t ls_spaces_at_start(const char *s, size_t n); /* bytes of white space */
size_t ls_spaces_at_end(const char *s, size_t n);

/* Writes a character's UTF-8 to s [4] and returns its length. */
size_t ls_character_write(uint32_t point, char *s);

#endif
