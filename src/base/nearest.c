/* nearest.c - see nearest.h. Source of the distance: Damerau, "A technique for computer detection
 * and correction of spelling errors", CACM 7 (1964), restricted: no letter is edited twice. */
#include "base/nearest.h"

#include <string.h>

enum { LONGEST = 64 };

static int least(int a, int b) { return a < b ? a : b; }

int ls_edit_distance(const char *a, const char *b) {
    int rows[3][LONGEST], m = (int)strlen(a), n = (int)strlen(b);
    if (m >= LONGEST || n >= LONGEST) return 99;
    for (int j = 0; j <= n; j++) rows[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= n; j++) {
            now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

bool ls_is_near(const char *word, const char *meant) {
    int d = ls_edit_distance(word, meant);
    size_t longer = strlen(word) > strlen(meant) ? strlen(word) : strlen(meant);
    return d <= 3 && (size_t)d * 3 <= longer;
}
