/* suggest.h - finds the key of a config that a user may have meant by an unknown one. */
#ifndef LS_CONFIG_SUGGEST_H
#define LS_CONFIG_SUGGEST_H

/* names [n]: the known keys, "group.key". Returns one of them, or NULL if none is near. Candidates,
 * in this order: a key that has this name in other systems; the same word in another group; a
 * typing error; the beginning of a word. */
const char *ls_config_suggest(const char *name, const char *const *names, int n);

#endif
