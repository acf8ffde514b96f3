/* stack_limit.c - the limit of the stack that this program was started with (ulimit -s). */
#include <pthread.h>
#include <sys/resource.h>

#include "base/log.h"
#include "cli/cli.h"

/* Kilobytes: with as many, every command works (frames are bounded: -Wframe-larger-than in
 * CMakeLists.txt). */
enum { LEAST_KB = 256, USUAL_KB = 8192 };

/* Threads get what the limit was when the program was started, unless they are told otherwise. */
static void set_of_threads(size_t nbytes) {
    pthread_attr_t a;
    if (pthread_attr_init(&a) != 0) return;
    if (pthread_attr_setstacksize(&a, nbytes) == 0) pthread_setattr_default_np(&a);
    pthread_attr_destroy(&a);
}

bool cli_stack_suffices(void) {
    struct rlimit r;
    const rlim_t least = (rlim_t)LEAST_KB << 10, usual = (rlim_t)USUAL_KB << 10;
    if (getrlimit(RLIMIT_STACK, &r) != 0 || r.rlim_cur == RLIM_INFINITY || r.rlim_cur >= least)
        return true;
    rlim_t was = r.rlim_cur;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > usual ? usual : r.rlim_max;
    if (r.rlim_cur >= least && setrlimit(RLIMIT_STACK, &r) == 0) {
        set_of_threads((size_t)r.rlim_cur);
        return true;
    }
    bool fixed = r.rlim_max != RLIM_INFINITY && r.rlim_max < least;
    ls_log("the stack is limited to %llu kB, and %d are needed; %s: ulimit -s %d",
           (unsigned long long)was >> 10, LEAST_KB,
           fixed ? "it is a hard limit, which only root can raise" : "raise it", USUAL_KB);
    return false;
}
