/* intern.h - texts that are kept once each, until the program ends.
 *
 * For values of a config, which are copied often, compared and never freed: a copy is a pointer.
 * Any thread may call.
 */
#ifndef LS_BASE_INTERN_H
#define LS_BASE_INTERN_H

/* The one copy of this text: equal texts give the same pointer. */
const char *ls_intern(const char *text);

#endif
