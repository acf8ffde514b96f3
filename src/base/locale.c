/* locale.c - see locale.h. */
#include "base/locale.h"

#include <pthread.h>
#include <stdlib.h>

static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", NULL); }

locale_t ls_locale_c(void) {
    pthread_once(&once, make_locale);
    if (!c_locale) abort(); /* "C" always exists: out of memory at the first call */
    return c_locale;
}

locale_t ls_locale_enter(void) { return uselocale(ls_locale_c()); }

void ls_locale_leave(const locale_t *before) { uselocale(*before); }
