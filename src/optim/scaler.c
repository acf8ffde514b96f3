/* scaler.c - see scaler.h. */
#include "optim/scaler.h"

ls_scaler ls_scaler_start(const ls_scaler_config *c) {
    return (ls_scaler){.scale = c->initial, .left = c->hysteresis};
}

bool ls_scaler_next(ls_scaler *s, const ls_scaler_config *c, bool overflowed) {
    if (!overflowed) {
        if (++s->good < c->window) return true;
        s->scale *= 2;
        s->good = 0;
        s->left = c->hysteresis;
        return true;
    }
    bool lowest = s->scale <= c->lowest;
    s->skipped++;
    s->good = 0;
    if (s->left > 1) {
        s->left--;
        return true;
    }
    s->scale = s->scale / 2 < c->lowest ? c->lowest : s->scale / 2;
    return !lowest;
}
