/* note.c - see note.h. */
#include "source/note.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

/* The last remarks; an older one would be logged again. */
enum { NREMEMBERED = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ls_hash remembered[NREMEMBERED];
static size_t n;
static bool once;

void ls_note_once(void) { once = true; }

bool ls_note_is_new(const char *text) {
    ls_hash h = ls_hash_bytes(text, strlen(text));
    bool known = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < NREMEMBERED && i < n; i++)
        known = known || ls_hash_same(remembered[i], h);
    if (!known) remembered[n++ % NREMEMBERED] = h;
    pthread_mutex_unlock(&lock);
    return !known;
}

void ls_note(const char *format, ...) {
    ls_error e = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(e.msg, sizeof e.msg, format, list);
    va_end(list);
    if (!once || ls_note_is_new(e.msg)) ls_log("%s", e.msg);
}
