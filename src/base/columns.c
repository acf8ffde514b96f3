/* columns.c - see columns.h. The C library knows the widths, in a UTF-8 locale. */
#include "base/columns.h"

#include <locale.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include "base/utf8.h"

int ls_columns_of(int fd, int otherwise) {
    struct winsize w;
    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : otherwise;
}

int ls_columns_rows(int fd, int otherwise) {
    struct winsize w;
    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 ? w.ws_row : otherwise;
}

static locale_t utf8; /* 0: not available; each character then counts as one column */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_utf8(void) { utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); }

static int width(uint32_t point) {
    int n = utf8 ? wcwidth((wchar_t)point) : 1;
    return n < 0 ? 1 : n;
}

size_t ls_columns_cut(const char *text, size_t n, int most) {
    pthread_once(&once, open_utf8);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    size_t done = 0;
    for (int columns = 0; done < n;) {
        uint32_t point = 0;
        size_t nbytes = ls_utf8_decode(text + done, n - done, &point);
        columns += nbytes ? width(point) : 1;
        if (columns > most) break;
        done += nbytes ? nbytes : 1;
    }
    if (utf8) uselocale(before);
    return done;
}
