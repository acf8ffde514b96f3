/* svg.c - see svg.h. */
#include "report/svg.h"

#include <math.h>

void ls_svg_escape(const char *text, ls_buf *out) {
    for (const char *s = text; *s; s++) {
        if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
            ls_buf_printf(out, "&#%d;", *s);
        else if ((unsigned char)*s >= 0x20)
            ls_buf_append(out, s, 1);
    }
}

double ls_svg_tick(double range, int n) {
    double raw = range / n, power = pow(10, floor(log10(raw))), m = raw / power;
    return power * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
}
