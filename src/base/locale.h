/* locale.h - numbers and letters of "C", whatever setlocale() of a program has chosen: elsewhere
 * 0.5 may be written 0,5, and I may not be the capital of i. */
#ifndef LS_BASE_LOCALE_H
#define LS_BASE_LOCALE_H

#include <locale.h>

locale_t ls_locale_c(void);

/* Sets the calling thread's locale to "C"; returns the one before. */
locale_t ls_locale_enter(void);
void ls_locale_leave(const locale_t *before);

/* At the head of a public function that reads or writes numbers as text: "C" until it returns.
 * Threads that it starts have the program's locale. */
#define LS_LOCALE_C()                                                                              \
    __attribute__((unused, cleanup(ls_locale_leave))) locale_t locale_before_ = ls_locale_enter()

#endif
