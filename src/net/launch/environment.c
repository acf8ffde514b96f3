/* environment.c - see environment.h.
 *
 * A table names the variables of each launcher. A step of Slurm's srun can also start programs that
 * speak PMI or PMIx (srun --mpi=pmi2, --mpi=pmix): those variables give neither the local rank nor
 * an address, so for them the step's own variables are asked as well.
 *
 * This is the only file that asks the environment for this process's rank.
 */
#include "net/launch/environment.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/launch/ancestry.h"

enum { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, NFIELDS };
enum { NALTERNATIVES = 3 };

/* A job's SLURM_NTASKS is what was asked for; the step's number of tasks is what runs, so it comes
 * first. In a shell that salloc opens as an interactive step they are 8 and 1, for example. */
#define STEP_SIZE "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"

static const struct {
    const char *name;
    const char *fields[NFIELDS][NALTERNATIVES]; /* the first that is set counts */
} launchers[] = {
    [LS_LAUNCHER_NONE] = {.name = "none"},
    [LS_LAUNCHER_LOCKSTEP] = {.name = "lockstep",
                              .fields = {[RANK] = {"LOCKSTEP_RANK"},
                                         [SIZE] = {"LOCKSTEP_SIZE"},
                                         [LOCAL_RANK] = {"LOCKSTEP_LOCAL_RANK"},
                                         [LOCAL_SIZE] = {"LOCKSTEP_LOCAL_SIZE"}}},
    [LS_LAUNCHER_TORCHRUN] = {.name = "torchrun",
                              .fields = {[RANK] = {"RANK"},
                                         [SIZE] = {"WORLD_SIZE"},
                                         [LOCAL_RANK] = {"LOCAL_RANK"},
                                         [LOCAL_SIZE] = {"LOCAL_WORLD_SIZE"}}},
    [LS_LAUNCHER_OPENMPI] = {.name = "Open MPI",
                             .fields = {[RANK] = {"OMPI_COMM_WORLD_RANK"},
                                        [SIZE] = {"OMPI_COMM_WORLD_SIZE"},
                                        [LOCAL_RANK] = {"OMPI_COMM_WORLD_LOCAL_RANK"},
                                        [LOCAL_SIZE] = {"OMPI_COMM_WORLD_LOCAL_SIZE"}}},
    [LS_LAUNCHER_PMI] = {.name = "PMI",
                         .fields = {[RANK] = {"PMI_RANK"},
                                    [SIZE] = {"PMI_SIZE"},
                                    [LOCAL_RANK] = {"MPI_LOCALRANKID"},
                                    [LOCAL_SIZE] = {"MPI_LOCALNRANKS"}}},
    [LS_LAUNCHER_PMIX] =
        {.name = "PMIx",
         .fields = {[RANK] = {"PMIX_RANK"}, [SIZE] = {"OMPI_COMM_WORLD_SIZE", STEP_SIZE}}},
    /* The local rank and size: see read_step(). */
    [LS_LAUNCHER_SLURM] = {.name = "Slurm",
                           .fields = {[RANK] = {"SLURM_PROCID"}, [SIZE] = {STEP_SIZE}}},
};

enum { NLAUNCHERS = sizeof launchers / sizeof *launchers };

typedef struct variable {
    const char *name, *value; /* value: NULL if it is not set */
} variable;

static variable find(const char *name) { return (variable){name, getenv(name)}; }

/* The first of the names that is set, else the first name without a value. */
static variable find_field(ls_launcher launcher, int field) {
    const char *const *names = launchers[launcher].fields[field];
    for (int i = 0; i < NALTERNATIVES && names[i]; i++)
        if (getenv(names[i])) return find(names[i]);
    return (variable){names[0], NULL};
}

/* Takes 1 to 18 digits off the text. */
static bool take_number(const char **text, long long *n_p) {
    size_t ndigits = strspn(*text, "0123456789");
    if (ndigits < 1 || ndigits > 18) return false;
    *n_p = strtoll(*text, NULL, 10);
    *text += ndigits;
    return true;
}

static bool is_number(const char *text, long long *n_p) {
    return take_number(&text, n_p) && !*text;
}

/* `since` is the variable that decides `high`; it has no value if none does. */
static ls_status read_number(variable v, int low, int high, variable since, int *n_p, ls_error *e) {
    long long n = 0;
    if (is_number(v.value, &n) && n >= low && n <= high) {
        *n_p = (int)n;
        return LS_OK;
    }
    if (since.value)
        return ls_fail(e, LS_EINVAL,
                       "%s is '%.60s'; expected a whole number from %d to %d, since %s is %.60s",
                       v.name, v.value, low, high, since.name, since.value);
    return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected a whole number from %d to %d", v.name,
                   v.value, low, high);
}

/* Were the variables set by hand? Launchers set more of them. */
static bool is_by_hand(ls_launcher launcher) {
    if (launcher == LS_LAUNCHER_LOCKSTEP)
        return !getenv("LOCKSTEP_SHM") && !getenv("LOCKSTEP_HOST");
    return launcher == LS_LAUNCHER_TORCHRUN && !getenv("TORCHELASTIC_RUN_ID");
}

/* `missing` may stand for one of several names. */
static ls_status missing_failed(variable set, ls_launcher launcher, int missing, ls_error *e) {
    const char *const *names = launchers[launcher].fields[missing];
    char list[128] = "";
    size_t len = 0;
    for (int i = 0; i < NALTERNATIVES && names[i]; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? " or " : "", names[i]);
    bool by_hand = is_by_hand(launcher);
    return ls_fail(e, LS_EINVAL, "%s is '%.60s' but %s is not set; expected both%s%s", set.name,
                   set.value, list, by_hand ? ", or neither" : " from ",
                   by_hand ? "" : launchers[launcher].name);
}

static ls_status read_launcher(ls_launcher launcher, ls_environment *env, ls_error *e) {
    variable rank = find_field(launcher, RANK), size = find_field(launcher, SIZE);
    variable local_rank = find_field(launcher, LOCAL_RANK);
    variable local_size = find_field(launcher, LOCAL_SIZE), none = {0};
    env->launcher = launcher;
    if (!rank.value) return missing_failed(size, launcher, RANK, e);
    if (!size.value) return missing_failed(rank, launcher, SIZE, e);
    LS_TRY(read_number(size, 1, LS_MAX_WORKERS, none, &env->size, e));
    LS_TRY(read_number(rank, 0, env->size - 1, size, &env->rank, e));
    if (local_size.value) LS_TRY(read_number(local_size, 1, env->size, size, &env->local_size, e));
    if (!local_rank.value) return LS_OK;
    if (local_size.value)
        return read_number(local_rank, 0, env->local_size - 1, local_size, &env->local_rank, e);
    return read_number(local_rank, 0, env->size - 1, size, &env->local_rank, e);
}

/* ---- which launcher started this process ----
 *
 * A user's shell, an outer launcher or an image may have left variables of another launcher. The
 * launcher that is nearest among the processes that started this one counts (ancestry.h). */

/* A launcher whose rank is set. */
typedef struct candidate {
    ls_launcher launcher;
    const char *rank, *size; /* the values; size: NULL if it is not set */
    ls_ancestor from;
} candidate;

typedef struct candidates {
    candidate at[NLAUNCHERS]; /* [n] in the table's order */
    int n;
} candidates;

/* The program that has set the rank or the size: one of the variables may be an outer
 * launcher's. */
static ls_ancestor find_origin(ls_launcher launcher) {
    variable size = find_field(launcher, SIZE);
    ls_ancestor a, b;
    ls_ancestry_find(find_field(launcher, RANK).name, &a);
    if (!size.value) return a;
    ls_ancestry_find(size.name, &b);
    return b.distance < a.distance ? b : a;
}

/* Open MPI's library sets the variables of its launcher in its own process if that launcher has not
 * started it: they say nothing beside those of one that has. */
static void drop_own(candidates *c) {
    int n = 0;
    bool started = false;
    for (int i = 0; i < c->n; i++) started = started || c->at[i].from.distance > 0;
    for (int i = 0; i < c->n; i++) {
        const candidate *x = &c->at[i];
        bool of_library = x->launcher == LS_LAUNCHER_OPENMPI || x->launcher == LS_LAUNCHER_PMIX;
        if (started && of_library && x->from.distance == 0) continue;
        c->at[n++] = *x;
    }
    c->n = n;
}

/* Slurm sets SLURM_PROCID=0 in a batch script, too, along with the whole job's SLURM_NTASKS; a
 * program that runs there without srun is alone. Only a step has a SLURM_STEP_ID. */
static candidates find_candidates(void) {
    candidates c = {.n = 0};
    for (int i = LS_LAUNCHER_LOCKSTEP; i < NLAUNCHERS; i++) {
        variable rank = find_field((ls_launcher)i, RANK), size = find_field((ls_launcher)i, SIZE);
        if (!rank.value || (i == LS_LAUNCHER_SLURM && !getenv("SLURM_STEP_ID"))) continue;
        c.at[c.n++] =
            (candidate){.launcher = (ls_launcher)i, .rank = rank.value, .size = size.value};
    }
    for (int i = 0; c.n > 1 && i < c.n; i++) c.at[i].from = find_origin(c.at[i].launcher);
    drop_own(&c);
    return c;
}

static bool agree(const candidate *a, const candidate *b) {
    return a->size && b->size && strcmp(a->rank, b->rank) == 0 && strcmp(a->size, b->size) == 0;
}

/* Is this the program that starts the launcher's workers? */
static bool is_of(const char *program, ls_launcher launcher) {
    static const char *const names[NLAUNCHERS][6] = {
        [LS_LAUNCHER_LOCKSTEP] = {"lockstep"},
        [LS_LAUNCHER_TORCHRUN] = {"torchrun", "pt_elastic"},
        [LS_LAUNCHER_OPENMPI] = {"orted", "orterun", "prte", "mpirun", "mpiexec"},
        [LS_LAUNCHER_PMI] = {"hydra_", "slurmstepd"},
        [LS_LAUNCHER_PMIX] = {"orted", "orterun", "prte", "mpirun", "mpiexec", "slurmstepd"},
        [LS_LAUNCHER_SLURM] = {"slurmstepd"}};
    for (int i = 0; i < 6 && names[launcher][i]; i++)
        if (strncmp(program, names[launcher][i], strlen(names[launcher][i])) == 0) return true;
    return false;
}

/* mpirun inside Slurm starts its daemons with srun, whose variables the workers inherit. */
static bool is_inside(const candidate *a, const candidate *b) {
    return b->launcher == LS_LAUNCHER_SLURM &&
           (a->launcher == LS_LAUNCHER_OPENMPI || a->launcher == LS_LAUNCHER_PMI ||
            a->launcher == LS_LAUNCHER_PMIX);
}

static ls_status fail_contradiction(const candidate *a, const candidate *b, ls_error *e) {
    const char *const *names[] = {launchers[a->launcher].fields[RANK],
                                  launchers[b->launcher].fields[RANK]};
    return ls_fail(e, LS_EINVAL,
                   "%s is '%.20s' of '%.20s' (%s), but %s is '%.20s' of '%.20s' (%s): unset the "
                   "variables of the launcher that has not started this program",
                   *names[0], a->rank, a->size ? a->size : "?", ls_launcher_title(a->launcher),
                   *names[1], b->rank, b->size ? b->size : "?", ls_launcher_title(b->launcher));
}

/* a: set last, by hand. As many ranks as those of the launcher around it, or fewer, can't be other
 * ranks: each worker would believe, say, that it is alone. */
static ls_status check_by_hand(const candidate *a, const candidate *b, ls_error *e) {
    long long own = 0, around = 0;
    if (!is_by_hand(a->launcher) || agree(a, b) || !a->size || !b->size ||
        !is_number(a->size, &own) || !is_number(b->size, &around) || own > around)
        return LS_OK;
    return fail_contradiction(a, b, e);
}

/* Chooses among the candidates at the least distance: the one whose own program is there, else the
 * first, if that is clear. */
static ls_status choose(const candidates *c, const candidate **chosen_p, ls_error *e) {
    const candidate *best = &c->at[0];
    for (int i = 1; i < c->n; i++) {
        const candidate *x = &c->at[i];
        int nearer = best->from.distance - x->from.distance;
        bool own = is_of(x->from.name, x->launcher) && !is_of(best->from.name, best->launcher);
        if (nearer > 0 || (nearer == 0 && (own || (!best->size && x->size)))) best = x;
    }
    for (int i = 0; i < c->n; i++) {
        const candidate *x = &c->at[i];
        bool tied = x != best && x->from.distance == best->from.distance;
        bool clear = !tied || !x->size || agree(best, x) || is_inside(best, x) ||
                     is_of(best->from.name, best->launcher);
        if (!clear) return fail_contradiction(best, x, e);
        if (x != best) LS_TRY(check_by_hand(best, x, e));
    }
    *chosen_p = best;
    return LS_OK;
}

/* Where worker 0 listens. */

static bool take_host(ls_environment *env, const char *host, size_t len) {
    if (len < 1 || len >= sizeof env->host) return false;
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)host[i]) || strchr("[]/,", host[i])) return false;
    memcpy(env->host, host, len);
    env->host[len] = 0;
    return true;
}

/* host:port or [ipv6]:port. More than one colon without brackets could be read in two ways. */
static ls_status read_host_and_port(ls_environment *env, variable v, ls_error *e) {
    const char *host = v.value, *colon = strrchr(v.value, ':');
    size_t len = colon ? (size_t)(colon - host) : 0;
    bool bracketed = len >= 2 && host[0] == '[' && host[len - 1] == ']';
    if (bracketed) {
        host++;
        len -= 2;
    }
    long long port = 0;
    if (!colon || (!bracketed && memchr(host, ':', len)) || !is_number(colon + 1, &port) ||
        !take_host(env, host, len))
        return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected host:port or [ipv6]:port", v.name,
                       v.value);
    if (port < 1 || port > 65535)
        return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected a port from 1 to 65535", v.name,
                       v.value);
    env->port = (int)port;
    return LS_OK;
}

/* Was the address set with the rank of a launcher that is further away than the chosen one? Then it
 * is that launcher's. */
static bool is_left_over(const char *name, ls_launcher launcher, const candidates *c,
                         const candidate *chosen) {
    ls_ancestor from;
    for (int i = 0; i < c->n; i++) {
        if (c->at[i].launcher != launcher || c->at[i].from.distance <= chosen->from.distance)
            continue;
        ls_ancestry_find(name, &from);
        return from.distance >= c->at[i].from.distance;
    }
    return false;
}

static ls_status read_address(ls_environment *env, const candidates *c, const candidate *chosen,
                              ls_error *e) {
    variable ours = find("LOCKSTEP_ADDR"), none = {0};
    if (ours.value && !is_left_over(ours.name, LS_LAUNCHER_LOCKSTEP, c, chosen))
        return read_host_and_port(env, ours, e);
    variable host = find("MASTER_ADDR"), port = find("MASTER_PORT");
    if (is_left_over(host.name, LS_LAUNCHER_TORCHRUN, c, chosen)) return LS_OK;
    if (!host.value && !port.value) return LS_OK;
    if (!host.value || !port.value) {
        variable set = host.value ? host : port, missing = host.value ? port : host;
        return ls_fail(e, LS_EINVAL, "%s is '%.60s' but %s is not set; expected both", set.name,
                       set.value, missing.name);
    }
    LS_TRY(read_number(port, 1, 65535, none, &env->port, e));
    if (!take_host(env, host.value, strlen(host.value)))
        return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected the name or address of a host",
                       host.name, host.value);
    /* By default torchrun's agent of the first host serves its own store on that port. */
    const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    env->port_taken = env->launcher == LS_LAUNCHER_TORCHRUN && agent && strcmp(agent, "True") == 0;
    return LS_OK;
}

/* Slurm's lists of nodes:
 *
 *     list  = entry { "," entry }
 *     entry = one or more of: a character, "[" range { "," range } "]"
 *     range = digits [ "-" digits ]
 *
 * An entry stands for all combinations; its first host takes the first number of each bracket, with
 * its leading zeros. */

typedef struct host_name {
    char text[256];
    size_t len;
} host_name;

static bool append(host_name *host, const char *text, size_t len) {
    if (host->len + len >= sizeof host->text) return false;
    memcpy(host->text + host->len, text, len);
    host->len += len;
    return true;
}

/* Takes the ranges in brackets, and the closing bracket. Returns what is wrong at *p, or NULL. */
static const char *take_ranges(const char **p, host_name *host) {
    for (bool first = true;; first = false) {
        const char *start = *p;
        long long low = 0, high = 0;
        if (!take_number(p, &low)) return "expected a number";
        if (first && !append(host, start, (size_t)(*p - start))) return "expected a shorter name";
        if (**p == '-') {
            (*p)++;
            if (!take_number(p, &high)) return "expected a number";
            if (high < low) return "expected a range that rises before here";
        }
        if (**p == ']') break;
        if (**p != ',') return "expected ',', '-' or ']'";
        (*p)++;
    }
    (*p)++;
    return NULL;
}

/* Takes an entry, up to a comma or the end. */
static const char *take_entry(const char **p, host_name *host) {
    const char *start = *p;
    while (**p && **p != ',') {
        if (**p == '[') {
            (*p)++;
            const char *wrong = take_ranges(p, host);
            if (wrong) return wrong;
            continue;
        }
        if (**p == ']' || !isgraph((unsigned char)**p)) return "expected a host's name";
        if (!append(host, *p, 1)) return "expected a shorter name";
        (*p)++;
    }
    return *p == start ? "expected a host's name" : NULL;
}

static ls_status nodelist_first(variable list, char *host_p, size_t n, ls_error *e) {
    host_name first = {0};
    const char *p = list.value, *wrong = take_entry(&p, &first);
    while (!wrong && *p) {
        host_name other = {0};
        p++;
        wrong = take_entry(&p, &other);
    }
    if (wrong)
        return ls_fail(e, LS_EINVAL, "%s is '%.120s'; at character %td: %s", list.name, list.value,
                       p - list.value + 1, wrong);
    if (first.len >= n)
        return ls_fail(e, LS_EINVAL, "%s: the name %.120s has %zu characters; at most %zu fit",
                       list.name, first.text, first.len, n ? n - 1 : 0);
    memcpy(host_p, first.text, first.len + 1);
    return LS_OK;
}

ls_status ls_nodelist_first(const char *list, char *host_p, size_t n, ls_error *e) {
    return nodelist_first((variable){"the list of nodes", list}, host_p, n, e);
}

/* A step of Slurm's srun. */

/* Is this process a task of srun itself? mpirun inside Slurm starts its own daemons with srun, and
 * the workers that these start inherit the daemon's variables: another rank, another size. If rank
 * and size agree (one worker a host), so does the rest. */
static bool is_task_of_step(const ls_environment *env) {
    variable rank = find_field(LS_LAUNCHER_SLURM, RANK), size = find_field(LS_LAUNCHER_SLURM, SIZE);
    long long task = -1, ntasks = -1;
    return (env->launcher == LS_LAUNCHER_SLURM || env->launcher == LS_LAUNCHER_PMI ||
            env->launcher == LS_LAUNCHER_PMIX) &&
           getenv("SLURM_STEP_ID") && rank.value && is_number(rank.value, &task) &&
           task == env->rank && size.value && is_number(size.value, &ntasks) && ntasks == env->size;
}

/* Takes "2(x3)" or "2", followed by a comma or the end. */
static bool take_tasks(const char **text, long long *ntasks_p, long long *nnodes_p) {
    if (!take_number(text, ntasks_p)) return false;
    *nnodes_p = 1;
    if (**text == '(') {
        if ((*text)[1] != 'x') return false;
        *text += 2;
        if (!take_number(text, nnodes_p) || **text != ')') return false;
        (*text)++;
    }
    return **text == ',' || !**text;
}

/* SLURM_STEP_TASKS_PER_NODE lists the number of tasks of each node: "2(x3),1" is 2, 2, 2, 1.
 * SLURM_NTASKS_PER_NODE is not used: it is what was asked for, an upper limit. */
static ls_status read_step_local_size(ls_environment *env, ls_error *e) {
    variable list = find("SLURM_STEP_TASKS_PER_NODE"), node = find("SLURM_NODEID"), none = {0};
    if (!list.value || !node.value) return LS_OK;
    int n = 0;
    LS_TRY(read_number(node, 0, LS_MAX_WORKERS - 1, none, &n, e));
    long long left = n, ntasks = 0, nnodes = 0;
    for (const char *p = list.value;; p++) {
        if (!take_tasks(&p, &ntasks, &nnodes) || ntasks < 1 || ntasks > env->size)
            return ls_fail(e, LS_EINVAL,
                           "%s is '%.60s'; expected numbers of tasks from 1 to %d, such as 2(x3),1",
                           list.name, list.value, env->size);
        if (left < nnodes) break;
        left -= nnodes;
        if (!*p)
            return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected a node of %s, which is '%.60s'",
                           node.name, node.value, list.name, list.value);
    }
    env->local_size = (int)ntasks;
    return LS_OK;
}

/* The first node of a step runs task 0. All tasks must derive the port without communicating. It
 * should clash neither with another job on the same node, hence the job's number, nor with the
 * ports that the kernel gives to outgoing connections, from 32768 on. Two steps of one job that run
 * at once on the same first node do clash; they need LOCKSTEP_ADDR. */
static ls_status read_step_address(ls_environment *env, ls_error *e) {
    variable list = find("SLURM_STEP_NODELIST"), job = find("SLURM_JOB_ID");
    if (!list.value) list = find("SLURM_NODELIST");
    if (!list.value || !job.value) return LS_OK;
    long long number = 0;
    if (!is_number(job.value, &number))
        return ls_fail(e, LS_EINVAL, "%s is '%.60s'; expected a whole number", job.name, job.value);
    LS_TRY(nodelist_first(list, env->host, sizeof env->host, e));
    env->port = (int)(20000 + number % 10000);
    return LS_OK;
}

static ls_status read_step(ls_environment *env, ls_error *e) {
    if (env->local_rank < 0 && env->local_size < 0) {
        LS_TRY(read_step_local_size(env, e));
        variable local_rank = find("SLURM_LOCALID"), none = {0};
        int nlocal = env->local_size > 0 ? env->local_size : env->size;
        if (local_rank.value)
            LS_TRY(read_number(local_rank, 0, nlocal - 1, none, &env->local_rank, e));
    }
    return env->port ? LS_OK : read_step_address(env, e);
}

/* Programs that each believe they are alone would all do the whole work, and write to the same
 * files. Under another launcher, such as srun, WORLD_SIZE may be meant for other programs. */
static ls_status check_alone(ls_error *e) {
    variable size = find("WORLD_SIZE");
    if (!size.value || strcmp(size.value, "1") == 0) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "WORLD_SIZE is '%.60s' but RANK is not set: set RANK, too, from 0 to WORLD_SIZE - "
        "1, or unset WORLD_SIZE for a program that is alone",
        size.value);
}

/* Is our own size set without a rank? That is a mistake, while another launcher's size may be meant
 * for other programs (check_alone()). */
static bool is_ours_alone(void) { return getenv("LOCKSTEP_SIZE") && !getenv("LOCKSTEP_RANK"); }

ls_status ls_environment_read(ls_environment *env_p, ls_error *e) {
    ls_environment env = {.rank = 0, .size = 1, .local_rank = -1, .local_size = -1};
    candidates c = find_candidates();
    const candidate *chosen = NULL;
    if (is_ours_alone()) return read_launcher(LS_LAUNCHER_LOCKSTEP, &env, e);
    if (c.n) {
        LS_TRY(choose(&c, &chosen, e));
        LS_TRY(read_launcher(chosen->launcher, &env, e));
        LS_TRY(read_address(&env, &c, chosen, e));
        if (is_task_of_step(&env)) LS_TRY(read_step(&env, e));
    }
    if (!c.n) LS_TRY(check_alone(e));
    *env_p = env;
    return LS_OK;
}

const char *ls_launcher_name(ls_launcher launcher) {
    return (unsigned)launcher < NLAUNCHERS ? launchers[launcher].name : "unknown launcher";
}

const char *ls_launcher_title(ls_launcher launcher) {
    return is_by_hand(launcher) ? "the environment" : ls_launcher_name(launcher);
}
