/* suggest.h - which key of a config an unknown one may stand for. */
#ifndef LS_CONFIG_SUGGEST_H
#define LS_CONFIG_SUGGEST_H

/* names [n]: the known keys, "group.key". Returns one of them, or NULL where none is near. In this
 * order: the key that other systems call so; the same word in another group; a typing error; a
 * beginning of the word. */
const char *ls_config_suggest(const char *name, const char *const *names, int n);

#endif
