/* descriptors.c - see descriptors.h. */
#include "base/descriptors.h"

#include <stdbool.h>
#include <sys/resource.h>

ls_status ls_descriptors_raise(int least, int wanted, const char *what, ls_error *e) {
    struct rlimit r, before;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return LS_OK;
    before = r;
    if (r.rlim_cur >= (rlim_t)wanted) return LS_OK;
    bool fixed = r.rlim_max != RLIM_INFINITY && r.rlim_max < (rlim_t)wanted;
    r.rlim_cur = fixed ? r.rlim_max : (rlim_t)wanted;
    if (r.rlim_cur == before.rlim_cur || setrlimit(RLIMIT_NOFILE, &r) != 0) r = before;
    if (r.rlim_cur >= (rlim_t)least) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s need at least %d open files and sockets, and %llu are allowed; raise the "
                   "limit: ulimit -n 1024",
                   what, least, (unsigned long long)r.rlim_cur);
}
