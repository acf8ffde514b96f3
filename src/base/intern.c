/* intern.c - see intern.h: a table of lists, by the hash of the text. */
#include "base/intern.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

enum { LISTS = 1024 };

typedef struct entry {
    struct entry *next;
    char text[];
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *lists[LISTS];

static entry *add(entry **list, const char *text, size_t n) {
    entry *e = ls_alloc(sizeof *e + n + 1);
    memcpy(e->text, text, n + 1);
    e->next = *list;
    return *list = e;
}

const char *ls_intern(const char *text) {
    size_t n = strlen(text);
    if (n == 0) return "";
    entry **list = &lists[ls_hash_bytes(text, n).lo % LISTS];
    pthread_mutex_lock(&lock);
    entry *e = *list;
    while (e && strcmp(e->text, text) != 0) e = e->next;
    if (!e) e = add(list, text, n);
    pthread_mutex_unlock(&lock);
    return e->text;
}
