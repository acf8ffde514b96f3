/* mpi.c - see mpi.h. The transport itself is in mpi/plugin.c. */
#include "net/mpi/mpi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/floats.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/plugin.h"
#include "base/plural.h"
#include "base/thread.h"
#include "base/waiting.h"
#include "net/launch/environment.h"

typedef ls_status plugin_open(int interface, ls_net **net_p, ls_error *e);

static const struct {
    const char *which, *name, *package;
    bool built; /* with this library */
} mpis[] = {{"openmpi", "Open MPI", "libopenmpi-dev", LOCKSTEP_BUILT_openmpi},
            {"mpich", "MPICH", "libmpich-dev", LOCKSTEP_BUILT_mpich}};
enum { NMPIS = sizeof mpis / sizeof *mpis };

/* The MPI that started the program. If only PMIx's variables are set, it is Open MPI. Under a
 * launcher that is none of these, their variables are looked at: an mpirun may be around it. */
static ls_status which_started(const char **which_p, ls_error *e) {
    ls_environment env;
    LS_TRY(ls_environment_read(&env, e));
    bool pmi = env.launcher == LS_LAUNCHER_PMI;
    bool openmpi = env.launcher == LS_LAUNCHER_OPENMPI || env.launcher == LS_LAUNCHER_PMIX;
    if (openmpi || (!pmi && getenv("OMPI_COMM_WORLD_SIZE")))
        *which_p = "openmpi";
    else if (pmi || getenv("PMI_RANK"))
        *which_p = "mpich";
    else
        *which_p = getenv("PMIX_RANK") ? "openmpi" : NULL;
    return LS_OK;
}

/* The plugin's path, or NULL; the caller frees it. */
static char *find_plugin(const char *which) {
    char *name = ls_format("lockstep-mpi-%s.so", which), *path = ls_plugin_find(name);
    free(name);
    return path;
}

static ls_status fail_missing(int mpi, ls_error *e) {
    const char *which = mpis[mpi].which, *asked = getenv("LOCKSTEP_PLUGINS");
    if (!mpis[mpi].built)
        return ls_fail(e, LS_EINVAL,
                       "this lockstep was built without %s: install %s and build it again, or name "
                       "its compiler with cmake -DLOCKSTEP_MPICC_%s=...",
                       mpis[mpi].name, mpis[mpi].package, which);
    if (asked && *asked)
        return ls_fail(e, LS_EINVAL,
                       "the plugin lockstep-mpi-%s.so is not in LOCKSTEP_PLUGINS=%.200s, beside "
                       "the program, or in %s",
                       which, asked, ls_plugin_dir);
    return ls_fail(e, LS_EINVAL,
                   "the plugin lockstep-mpi-%s.so, which was built with this lockstep, is neither "
                   "beside the program (plugins/, ../lib/lockstep/) nor where it is installed "
                   "(%s): set LOCKSTEP_PLUGINS to the directory that contains it",
                   which, ls_plugin_dir);
}

/* ---- opening ---- */

/* Loads a plugin, which stays loaded: MPI's libraries don't survive being unloaded. */
static ls_status load(int mpi, plugin_open **open_p, ls_error *e) {
    LS_FLOATS();
    const char *which = mpis[mpi].which;
    char *path = find_plugin(which);
    if (!path) return fail_missing(mpi, e);
    /* Open MPI loads parts of its own, which look for its symbols in the program. */
    void *plugin = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!plugin) {
        ls_fail(e, LS_EINVAL, "%s can't be loaded: %s", path, dlerror());
        free(path);
        return LS_EINVAL;
    }
    void *symbol = dlsym(plugin, "ls_mpi_plugin_open");
    if (!symbol) ls_fail(e, LS_EINVAL, "%s is not a plugin of Lockstep", path);
    free(path);
    if (!symbol) return LS_EINVAL;
    /* ISO C has no conversion of data to function pointers; POSIX has this one. */
    memcpy(open_p, &symbol, sizeof symbol);
    return LS_OK;
}

/* To this MPI, a program that another MPI's launcher has started is alone. */
static ls_status check_size(ls_net *net, int mpi, ls_error *e) {
    ls_environment env;
    LS_TRY(ls_environment_read(&env, e));
    if (env.launcher == LS_LAUNCHER_NONE || env.size == net->size) return LS_OK;
    return ls_fail(
        e, LS_EINVAL, "%s sees %d worker%s, but %s gives %d: they are not of the same MPI",
        mpis[mpi].name, net->size, ls_plural(net->size), ls_launcher_title(env.launcher), env.size);
}

/* ---- MPI_Init, which waits for all workers, and can't be given up ---- */

typedef struct init_watch {
    int rank; /* -1: not known */
    int64_t end_ns, timeout_ns;
    ls_waiting_report report;
    bool over;
    pthread_mutex_t lock;
    pthread_cond_t ended;
} init_watch;

/* mpirun then ends the others. What this worker held back is written before (base/log.h). */
static _Noreturn void give_up(const init_watch *w) {
    ls_log_release(true);
    ls_log("worker %d: not all workers have called MPI_Init within %.0f s (timeout_s of the group; "
           "of a run parallel.timeout_s): one has ended before it, or could not be started. "
           "MPI_Init can't be given up, so this process ends",
           w->rank, (double)w->timeout_ns / 1e9);
    _exit(1);
}

static void *watch_init(void *arg) {
    init_watch *w = arg;
    int s = 0;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        if (ls_waiting_report_due(&w->report, &s)) {
            ls_log_at_once("worker %d has waited %d s in MPI_Init for the other workers: one may "
                           "have ended before it",
                           w->rank, s);
        }
        int64_t next = w->report.next_ns;
        if (w->timeout_ns >= 0 && ls_clock_ns() >= w->end_ns) give_up(w);
        if (w->timeout_ns >= 0 && w->end_ns < next) next = w->end_ns;
        pthread_cond_timedwait(&w->ended, &w->lock,
                               &(struct timespec){next / 1000000000, next % 1000000000});
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* open() under the watch of a thread; without one, where the system lets this process have none. */
static ls_status open_watched(plugin_open *open, int64_t timeout_ns, ls_net **net_p, ls_error *e) {
    pthread_condattr_t monotonic;
    pthread_t thread;
    ls_environment env = {.rank = -1};
    LS_TRY(ls_environment_read(&env, e));
    init_watch w = {.rank = env.rank, .timeout_ns = timeout_ns};
    w.report = ls_waiting_report_begin();
    w.end_ns = w.report.began_ns + timeout_ns;
    pthread_mutex_init(&w.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w.ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    bool runs = ls_thread_start(&thread, watch_init, &w) == 0;
    ls_status s = open(LS_NET_INTERFACE, net_p, e);
    pthread_mutex_lock(&w.lock);
    w.over = true;
    pthread_cond_signal(&w.ended);
    pthread_mutex_unlock(&w.lock);
    if (runs) pthread_join(thread, NULL);
    pthread_cond_destroy(&w.ended);
    pthread_mutex_destroy(&w.lock);
    return s;
}

ls_status ls_mpi_open(const char *which, int64_t timeout_ns, ls_net **net_p, ls_error *e) {
    if (!which) LS_TRY(which_started(&which, e));
    if (!which)
        return ls_fail(e, LS_EINVAL, "%s",
                       "the transport 'mpi' needs an mpirun or srun that starts the workers: "
                       "OMPI_COMM_WORLD_SIZE, PMI_RANK and PMIX_RANK are not set");
    int mpi = 0;
    while (mpi < NMPIS && strcmp(mpis[mpi].which, which) != 0) mpi++;
    if (mpi == NMPIS)
        return ls_fail(e, LS_EINVAL, "there is no MPI '%.40s': openmpi, mpich", which);
    plugin_open *open = NULL;
    ls_net *net = NULL;
    LS_TRY(load(mpi, &open, e));
    LS_TRY(open_watched(open, timeout_ns, &net, e));
    ls_status s = check_size(net, mpi, e);
    if (s == LS_OK)
        *net_p = net;
    else
        net->ops->close(net);
    return s;
}
