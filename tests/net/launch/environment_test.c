/* environment_test.c - each launcher's variables as it sets them, which one counts, and what is
 * refused. */
#include "net/launch/environment.h"

#include <unistd.h>

#include "test.h"

static const char *const variables[] = {
    "LOCKSTEP_RANK",
    "LOCKSTEP_SIZE",
    "LOCKSTEP_LOCAL_RANK",
    "LOCKSTEP_LOCAL_SIZE",
    "LOCKSTEP_ADDR",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RUN_ID",
    "LOCKSTEP_SHM",
    "LOCKSTEP_HOST",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "PMIX_RANK",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_JOB_ID",
    "SLURM_NODELIST",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_STEP_NODELIST",
};

static int clear(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    return 0;
}

/* "NAME=value NAME=value ..." */
static void set(const char *assignments) {
    char *text = strdup(assignments), *rest = NULL;
    for (char *one = strtok_r(text, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        assert_non_null(value);
        *value++ = 0;
        bool known = false; /* else clear() would leave it to the next test */
        for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
            known = known || strcmp(variables[i], one) == 0;
        if (!known) fail_msg("%s is not in the list of variables", one);
        assert_int_equal(setenv(one, value, 1), 0);
    }
    free(text);
}

static ls_environment read_with(const char *assignments) {
    ls_environment env = {0};
    ls_error e = {0};
    clear(NULL);
    set(assignments);
    assert_ls_ok(ls_environment_read(&env, &e), e);
    return env;
}

static void assert_is(ls_environment env, ls_launcher launcher, int rank, int size, int local_rank,
                      int local_size) {
    assert_string_equal(ls_launcher_name(env.launcher), ls_launcher_name(launcher));
    assert_int_equal(env.rank, rank);
    assert_int_equal(env.size, size);
    assert_int_equal(env.local_rank, local_rank);
    assert_int_equal(env.local_size, local_size);
}

static void assert_listens(ls_environment env, const char *host, int port) {
    assert_string_equal(env.host, host);
    assert_int_equal(env.port, port);
}

static void assert_refused(const char *assignments, const char *text) {
    ls_environment env = {.rank = 77}, was = env;
    ls_error e = {0};
    clear(NULL);
    set(assignments);
    assert_ls_fails(ls_environment_read(&env, &e), LS_EINVAL, text, e);
    assert_memory_equal(&env, &was, sizeof env);
    assert_null(strchr(e.msg, '\n'));
}

#define TORCHRUN "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 "
#define OPENMPI                                                                                    \
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=0 "                  \
    "OMPI_COMM_WORLD_LOCAL_SIZE=1 PMIX_RANK=2 "
#define HYDRA "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 "
/* srun -N 3 -n 5 in a job of 8 tasks, 4 a node: task 3, on the second node */
#define SRUN                                                                                       \
    "SLURM_JOB_ID=4213375 SLURM_PROCID=3 SLURM_NTASKS=5 SLURM_LOCALID=1 SLURM_NODEID=1 "           \
    "SLURM_NTASKS_PER_NODE=4 SLURM_NODELIST=node[001-004] SLURM_STEP_ID=0 "                        \
    "SLURM_STEP_NUM_TASKS=5 SLURM_STEP_TASKS_PER_NODE=2(x2),1 SLURM_STEP_NODELIST=node[002-004] "

static void test_alone(void **state) {
    (void)state;
    assert_is(read_with(""), LS_LAUNCHER_NONE, 0, 1, -1, -1);
    assert_listens(read_with(""), "", 0);
    /* An address, or a size, may be left over from other programs. */
    ls_environment env = read_with("LOCKSTEP_ADDR=a:1 MASTER_ADDR=b WORLD_SIZE=1 PMI_SIZE=3");
    assert_is(env, LS_LAUNCHER_NONE, 0, 1, -1, -1);
    assert_listens(env, "", 0);
}

static void test_lockstep(void **state) {
    (void)state;
    ls_environment env = read_with("LOCKSTEP_RANK=7 LOCKSTEP_SIZE=8 LOCKSTEP_LOCAL_RANK=3 "
                                   "LOCKSTEP_LOCAL_SIZE=4 LOCKSTEP_ADDR=node1.example.org:65535");
    assert_is(env, LS_LAUNCHER_LOCKSTEP, 7, 8, 3, 4);
    assert_listens(env, "node1.example.org", 65535);
    env = read_with("LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1048576 LOCKSTEP_ADDR=[fe80::1%eth0]:1");
    assert_is(env, LS_LAUNCHER_LOCKSTEP, 0, 1048576, -1, -1);
    assert_listens(env, "fe80::1%eth0", 1);
    env = read_with("LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1 LOCKSTEP_LOCAL_RANK=0");
    assert_is(env, LS_LAUNCHER_LOCKSTEP, 0, 1, 0, -1);
    assert_listens(env, "", 0);
}

static void test_torchrun(void **state) {
    (void)state;
    ls_environment env = read_with(TORCHRUN "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500");
    assert_is(env, LS_LAUNCHER_TORCHRUN, 5, 8, 1, 4);
    assert_listens(env, "10.0.0.1", 29500);
    assert_false(env.port_taken);
    env = read_with(TORCHRUN "MASTER_ADDR=::1 MASTER_PORT=1 TORCHELASTIC_USE_AGENT_STORE=True");
    assert_listens(env, "::1", 1);
    assert_true(env.port_taken);
    env = read_with(TORCHRUN "MASTER_ADDR=::1 MASTER_PORT=1 TORCHELASTIC_USE_AGENT_STORE=False");
    assert_false(env.port_taken);
    env = read_with(TORCHRUN "LOCKSTEP_ADDR=a:2 MASTER_ADDR=b MASTER_PORT=1 "
                             "TORCHELASTIC_USE_AGENT_STORE=True");
    assert_listens(env, "a", 2);
    assert_false(env.port_taken);
}

static void test_mpi(void **state) {
    (void)state;
    assert_is(read_with(OPENMPI), LS_LAUNCHER_OPENMPI, 2, 3, 0, 1);
    assert_is(read_with(HYDRA), LS_LAUNCHER_PMI, 1, 4, 1, 2);
    assert_listens(read_with(HYDRA), "", 0);
    assert_listens(read_with(HYDRA "MASTER_ADDR=b MASTER_PORT=2"), "b", 2);
    assert_listens(read_with(OPENMPI "LOCKSTEP_ADDR=c:3"), "c", 3);
    assert_is(read_with("PMIX_RANK=1 OMPI_COMM_WORLD_SIZE=2"), LS_LAUNCHER_PMIX, 1, 2, -1, -1);
    assert_is(read_with("PMIX_RANK=1 SLURM_NTASKS=3"), LS_LAUNCHER_PMIX, 1, 3, -1, -1);
}

static void test_slurm(void **state) {
    (void)state;
    ls_environment env = read_with(SRUN);
    assert_is(env, LS_LAUNCHER_SLURM, 3, 5, 1, 2);
    assert_listens(env, "node002", 23375);
    env = read_with(SRUN "SLURM_PROCID=4 SLURM_LOCALID=0 SLURM_NODEID=2");
    assert_is(env, LS_LAUNCHER_SLURM, 4, 5, 0, 1);
    assert_listens(read_with(SRUN "MASTER_ADDR=b MASTER_PORT=2"), "b", 2);
    assert_listens(read_with(SRUN "LOCKSTEP_ADDR=c:3 SLURM_STEP_NODELIST=[ignored"), "c", 3);
    /* The fewest variables that suffice. */
    env = read_with("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_NODELIST=n "
                    "SLURM_JOB_ID=4294967295");
    assert_is(env, LS_LAUNCHER_SLURM, 1, 2, -1, -1);
    assert_listens(env, "n", 27295);
    assert_listens(read_with("SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0"), "", 0);
}

/* Inside a job, but not started by srun. */
static void test_slurm_alone(void **state) {
    (void)state;
    /* A shell that salloc opened on the login node. */
    assert_is(read_with("SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_NODELIST=n[1-4]"), LS_LAUNCHER_NONE, 0,
              1, -1, -1);
    /* A batch script. */
    assert_is(read_with("SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_NODELIST=n[1-4] SLURM_PROCID=0 "
                        "SLURM_LOCALID=0 SLURM_NODEID=0"),
              LS_LAUNCHER_NONE, 0, 1, -1, -1);
    /* A shell that salloc opened as an interactive step. */
    const char *step = "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_NODELIST=n[1-4] SLURM_PROCID=0 "
                       "SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_ID=4294967290 "
                       "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_NODELIST=n1";
    assert_is(read_with(step), LS_LAUNCHER_SLURM, 0, 1, 0, 1);
}

/* srun --mpi=pmix and --mpi=pmi2 set these beside their own variables. */
static void test_slurm_with_pmi(void **state) {
    (void)state;
    ls_environment env = read_with(SRUN "PMIX_RANK=3");
    assert_is(env, LS_LAUNCHER_PMIX, 3, 5, 1, 2);
    assert_listens(env, "node002", 23375);
    env = read_with(SRUN "PMI_RANK=3 PMI_SIZE=5");
    assert_is(env, LS_LAUNCHER_PMI, 3, 5, 1, 2);
    assert_listens(env, "node002", 23375);
    /* mpirun's daemon is srun's task, the worker is not. */
    env = read_with(SRUN HYDRA);
    assert_is(env, LS_LAUNCHER_PMI, 1, 4, 1, 2);
    assert_listens(env, "", 0);
    assert_listens(read_with(SRUN OPENMPI), "", 0);
}

/* All agree: a wrapper has copied one launcher's variables to another's names. */
static void test_agreement(void **state) {
    (void)state;
    static const struct {
        const char *removed;
        ls_launcher then;
    } steps[] = {
        {"PATH_OF_NOTHING", LS_LAUNCHER_LOCKSTEP},
        {"LOCKSTEP_RANK", LS_LAUNCHER_TORCHRUN},
        {"RANK", LS_LAUNCHER_OPENMPI},
        {"OMPI_COMM_WORLD_RANK", LS_LAUNCHER_PMI},
        {"PMI_RANK", LS_LAUNCHER_PMIX},
        {"PMIX_RANK", LS_LAUNCHER_SLURM},
        {"SLURM_PROCID", LS_LAUNCHER_NONE},
    };
    clear(NULL);
    set("SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 PMIX_RANK=2 PMI_RANK=2 PMI_SIZE=3 "
        "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 RANK=2 WORLD_SIZE=3 LOCKSTEP_RANK=2 "
        "LOCKSTEP_SIZE=3");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        unsetenv(steps[i].removed);
        if (i == 1) unsetenv("LOCKSTEP_SIZE");
        if (i == 2) unsetenv("WORLD_SIZE");
        ls_environment env = {0};
        ls_error e = {0};
        assert_ls_ok(ls_environment_read(&env, &e), e);
        assert_string_equal(ls_launcher_name(env.launcher), ls_launcher_name(steps[i].then));
        assert_int_equal(env.rank, steps[i].then == LS_LAUNCHER_NONE ? 0 : 2);
    }
    /* A launcher that doesn't count is not checked either. */
    assert_is(read_with(HYDRA "SLURM_PROCID=x SLURM_STEP_ID=0 PMIX_RANK=-1"), LS_LAUNCHER_PMI, 1, 4,
              1, 2);
    /* A rank without a size is no launcher beside a whole one. */
    assert_is(read_with(HYDRA "RANK=0"), LS_LAUNCHER_PMI, 1, 4, 1, 2);
}

/* ---- variables that are left over ---- */

/* How the test starts itself: it prints what it finds. */
static const char SHOW[] = "show";
static char self[4096];

static int show(void) {
    ls_environment env;
    ls_error e = {0};
    if (ls_environment_read(&env, &e) != LS_OK)
        printf("%s\n", e.msg);
    else
        printf("%s %d/%d %s:%d\n", ls_launcher_name(env.launcher), env.rank, env.size, env.host,
               env.port);
    return 0;
}

/* The first line that a command prints. */
static void expect_shown(const char *command, const char *want) {
    char line[512] = "";
    clear(NULL);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    if (!fgets(line, sizeof line, f)) line[0] = 0;
    pclose(f);
    if (!strstr(line, want)) fail_msg("%s\nprinted: %s\nexpected: %s", command, line, want);
}

/* In each way that workers are started, and with what its launcher sets. */
static const struct {
    const char *name, *worker, *left;
} ways[] = {
    {"lockstep 1/2", "LOCKSTEP_RANK=1 LOCKSTEP_SIZE=2 LOCKSTEP_SHM=3",
     "LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1 LOCKSTEP_SHM=3 LOCKSTEP_ADDR=old:1"},
    {"torchrun 1/2", "RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x",
     "RANK=0 WORLD_SIZE=1 MASTER_ADDR=old MASTER_PORT=1"},
    {"Open MPI 1/2", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1",
     "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0"},
    {"PMI 1/2", "PMI_RANK=1 PMI_SIZE=2", "PMI_RANK=0 PMI_SIZE=1"},
    {"Slurm 1/2", "SLURM_PROCID=1 SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2",
     "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1"},
};
enum { NWAYS = sizeof ways / sizeof *ways };

/* Whatever the shell around a launcher has exported, the launcher counts, and neither the other's
 * address. */
static void test_left_over(void **state) {
    (void)state;
    char command[8192], want[64];
    for (int inner = 0; inner < NWAYS; inner++)
        for (int outer = 0; outer < NWAYS; outer++) {
            if (inner == outer) continue;
            snprintf(command, sizeof command, "env %s sh -c 'env %s \"%s\" %s; :'",
                     ways[outer].left, ways[inner].worker, self, SHOW);
            snprintf(want, sizeof want, "%s :0", ways[inner].name);
            expect_shown(command, want);
        }
}

/* The variables are set twice, by a launcher inside of itself: the inner ones replace the outer
 * ones. */
static void test_nested(void **state) {
    (void)state;
    char command[8192];
    snprintf(command, sizeof command,
             "env RANK=0 WORLD_SIZE=2 sh -c 'env PMI_RANK=0 PMI_SIZE=2 sh -c \"env RANK=0 "
             "WORLD_SIZE=4 TORCHELASTIC_RUN_ID=x \\\"%s\\\" %s; :\"; :'",
             self, SHOW);
    expect_shown(command, "torchrun 0/4"); /* by its size alone */
}

/* Variables that come to a worker together: the program that starts it decides, if it is known. */
static void test_together(void **state) {
    (void)state;
    static const struct {
        const char *starter, *variables, *want;
    } cases[] = {
        {"slurmstepd", "RANK=0 WORLD_SIZE=1 SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2",
         "Slurm 1/2"},
        {"slurmstepd", "PMI_RANK=1 PMI_SIZE=2 RANK=0 WORLD_SIZE=2", "PMI 1/2"},
        {"hydra_pmi_proxy", "RANK=0 WORLD_SIZE=1 PMI_RANK=1 PMI_SIZE=2", "PMI 1/2"},
        {"orted", "RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
         "Open MPI 1/2"},
        {"mpirun.openmpi", "PMI_RANK=0 PMI_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
         "Open MPI 1/2"},
        {"a-shell", "RANK=0 WORLD_SIZE=1 PMI_RANK=1 PMI_SIZE=2",
         "RANK is '0' of '1' (the environment), but PMI_RANK is '1' of '2' (PMI): unset the "
         "variables"},
        {"a-shell", "LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1 RANK=1 WORLD_SIZE=2",
         "LOCKSTEP_RANK is '0' of '1' (the environment), but RANK is '1' of '2' (the environment)"},
        {"a-shell", "RANK=1 WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2 MASTER_ADDR=a MASTER_PORT=2",
         "torchrun 1/2 a:2"},
    };
    char command[8192], dir[] = "/tmp/lockstep-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command,
                 "cd %s; ln -sf /bin/sh %s; ./%s -c 'env %s \"%s\" %s; :'; rm %s", dir,
                 cases[i].starter, cases[i].starter, cases[i].variables, self, SHOW,
                 cases[i].starter);
        expect_shown(command, cases[i].want);
    }
    rmdir(dir);
}

/* Ranks that are set by hand in a launcher's worker: with its values, or with more ranks. */
static void test_by_hand(void **state) {
    (void)state;
    static const struct {
        const char *variables, *want;
    } cases[] = {
        {"RANK=0 WORLD_SIZE=1",
         "RANK is '0' of '1' (the environment), but PMI_RANK is '1' of '2' (PMI)"},
        {"RANK=0 WORLD_SIZE=2",
         "RANK is '0' of '2' (the environment), but PMI_RANK is '1' of '2' (PMI)"},
        {"LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1",
         "LOCKSTEP_RANK is '0' of '1' (the environment), but PMI_RANK"},
        {"RANK=1 WORLD_SIZE=2", "torchrun 1/2"},
        {"RANK=9 WORLD_SIZE=16", "torchrun 9/16"},
        {"RANK=0 WORLD_SIZE=1 TORCHELASTIC_RUN_ID=x", "torchrun 0/1"},
    };
    char command[8192];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command, "env PMI_RANK=1 PMI_SIZE=2 sh -c 'env %s \"%s\" %s; :'",
                 cases[i].variables, self, SHOW);
        expect_shown(command, cases[i].want);
    }
}

static void test_bad_numbers(void **state) {
    (void)state;
    assert_refused("LOCKSTEP_RANK=0 LOCKSTEP_SIZE=0",
                   "LOCKSTEP_SIZE is '0'; expected a whole number from 1 to 1048576");
    assert_refused("WORLD_SIZE=4", "WORLD_SIZE is '4' but RANK is not set: set RANK, too");
    assert_refused("WORLD_SIZE=four", "WORLD_SIZE is 'four' but RANK is not set");
    assert_refused("WORLD_SIZE=", "WORLD_SIZE is '' but RANK is not set");
    assert_is(read_with("WORLD_SIZE=4 PMI_RANK=1 PMI_SIZE=3"), LS_LAUNCHER_PMI, 1, 3, -1, -1);
    assert_refused("RANK=0 WORLD_SIZE=1048577",
                   "WORLD_SIZE is '1048577'; expected a whole number from 1 to 1048576");
    assert_refused("RANK=4 WORLD_SIZE=4",
                   "RANK is '4'; expected a whole number from 0 to 3, since WORLD_SIZE is 4");
    assert_refused("PMI_RANK=-1 PMI_SIZE=4", "PMI_RANK is '-1'; expected a whole number from 0");
    static const char *const wrong[] = {
        "", "x", "1x", "+1", "1.", "0x1", "1e1", "99999999999999999999999", "-0", "4294967297"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char assignments[100], text[100];
        snprintf(assignments, sizeof assignments, "PMI_RANK=%s PMI_SIZE=4", wrong[i]);
        snprintf(text, sizeof text, "PMI_RANK is '%s'; expected a whole number", wrong[i]);
        assert_refused(assignments, text);
        snprintf(assignments, sizeof assignments, "PMI_RANK=0 PMI_SIZE=%s", wrong[i]);
        snprintf(text, sizeof text, "PMI_SIZE is '%s'; expected a whole number", wrong[i]);
        assert_refused(assignments, text);
    }
    assert_refused(OPENMPI "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                   "OMPI_COMM_WORLD_LOCAL_SIZE is '4'; expected a whole number from 1 to 3, since "
                   "OMPI_COMM_WORLD_SIZE is 3");
    assert_refused(OPENMPI "OMPI_COMM_WORLD_LOCAL_RANK=1",
                   "OMPI_COMM_WORLD_LOCAL_RANK is '1'; expected a whole number from 0 to 0, since "
                   "OMPI_COMM_WORLD_LOCAL_SIZE is 1");
    assert_refused("RANK=1 WORLD_SIZE=4 LOCAL_RANK=4", "LOCAL_RANK is '4'; expected");
}

static void test_missing(void **state) {
    (void)state;
    assert_refused("LOCKSTEP_RANK=0", "LOCKSTEP_RANK is '0' but LOCKSTEP_SIZE is not set");
    assert_refused("LOCKSTEP_SIZE=2 " TORCHRUN,
                   "LOCKSTEP_SIZE is '2' but LOCKSTEP_RANK is not set");
    assert_refused("RANK=0", "RANK is '0' but WORLD_SIZE is not set; expected both, or neither");
    assert_refused("OMPI_COMM_WORLD_RANK=0", "but OMPI_COMM_WORLD_SIZE is not set");
    assert_refused("PMI_RANK=0", "but PMI_SIZE is not set");
    assert_refused("PMIX_RANK=0", "PMIX_RANK is '0' but OMPI_COMM_WORLD_SIZE or "
                                  "SLURM_STEP_NUM_TASKS or SLURM_NTASKS is not set");
    assert_refused("SLURM_PROCID=0 SLURM_STEP_ID=0",
                   "but SLURM_STEP_NUM_TASKS or SLURM_NTASKS is not set");
    assert_refused(TORCHRUN "MASTER_ADDR=a", "MASTER_ADDR is 'a' but MASTER_PORT is not set");
    assert_refused(TORCHRUN "MASTER_PORT=1", "MASTER_PORT is '1' but MASTER_ADDR is not set");
}

static void test_bad_addresses(void **state) {
    (void)state;
    assert_refused(HYDRA "MASTER_ADDR=a MASTER_PORT=0",
                   "MASTER_PORT is '0'; expected a whole number from 1 to 65535");
    assert_refused(HYDRA "MASTER_ADDR=a MASTER_PORT=65536", "MASTER_PORT is '65536'; expected");
    assert_refused(HYDRA "MASTER_ADDR= MASTER_PORT=1", "MASTER_ADDR is ''; expected the name");
    assert_refused(HYDRA "MASTER_ADDR=tcp://a MASTER_PORT=1", "MASTER_ADDR is 'tcp://a'; expected");
    static const char *const wrong[] = {"a",      "a:", "a:x",  "::1:5", "[::1]", "",
                                        "[::1]5", ":5", "[]:5", "[a:5",  "a]:5",  "a/b:5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char assignments[200], text[100];
        snprintf(assignments, sizeof assignments, HYDRA "LOCKSTEP_ADDR=%s", wrong[i]);
        snprintf(text, sizeof text, "LOCKSTEP_ADDR is '%s'; expected host:port or [ipv6]:port",
                 wrong[i]);
        assert_refused(assignments, text);
    }
    assert_refused(HYDRA "LOCKSTEP_ADDR=a:65536",
                   "LOCKSTEP_ADDR is 'a:65536'; expected a port from 1 to 65535");
    char assignments[500] = HYDRA "LOCKSTEP_ADDR=";
    size_t n = strlen(assignments);
    memset(assignments + n, 'h', 255);
    memcpy(assignments + n + 255, ":5", 3);
    assert_int_equal(strlen(read_with(assignments).host), 255);
    memcpy(assignments + n + 255, "h:5", 4);
    assert_refused(assignments, "expected host:port");
}

static void test_bad_steps(void **state) {
    (void)state;
    assert_refused(SRUN "SLURM_STEP_NODELIST=node[1-",
                   "SLURM_STEP_NODELIST is 'node[1-'; at character 8: expected a number");
    assert_refused(SRUN "SLURM_JOB_ID=x", "SLURM_JOB_ID is 'x'; expected a whole number");
    assert_refused(SRUN "SLURM_LOCALID=2",
                   "SLURM_LOCALID is '2'; expected a whole number from 0 to 1");
    assert_refused(SRUN "SLURM_NODEID=3",
                   "SLURM_NODEID is '3'; expected a node of SLURM_STEP_TASKS_PER_NODE, which is "
                   "'2(x2),1'");
    assert_refused(SRUN "SLURM_NODEID=-1", "SLURM_NODEID is '-1'; expected a whole number");
    static const char *const wrong[] = {"",      "x",      "2(",    "2(x",   "2(x1",
                                        "2(1),", "2(x1)3", "0(x9)", "6(x9)", "1,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char assignments[600], text[100];
        snprintf(assignments, sizeof assignments, SRUN "SLURM_STEP_TASKS_PER_NODE=%s", wrong[i]);
        snprintf(text, sizeof text, "SLURM_STEP_TASKS_PER_NODE is '%s'; expected numbers of tasks",
                 wrong[i]);
        assert_refused(assignments, text);
    }
}

static void test_node_lists(void **state) {
    (void)state;
    static const struct {
        const char *list, *first;
    } good[] = {
        {"node1", "node1"},
        {"localhost,b", "localhost"},
        {"node[5]", "node5"},
        {"node[003-007,010],other-[1-2]x", "node003"},
        {"other-[1-2]x,node[003-007]", "other-1x"},
        {"node[010,003-007]", "node010"},
        {"node[09-11]", "node09"},
        {"rack[0-1]n[08-15]-ib", "rack0n08-ib"},
        {"a.b-c_d[2-2]", "a.b-c_d2"},
        {"[1-3]", "1"},
        {"n[000000000000000001-2]", "n000000000000000001"},
    };
    ls_error e = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char host[256] = "?";
        assert_ls_ok(ls_nodelist_first(good[i].list, host, sizeof host, &e), e);
        assert_string_equal(host, good[i].first);
    }
    static const char *const bad[] = {
        "",         ",",    ",a",    "a,",    "a,,b",  "n[",       "n[]",
        "n[1",      "n[1-", "n[-]",  "n[-2]", "n[1,]", "n[,1]",    "n[2-1]",
        "n[1-2-3]", "n[a]", "n[1 ]", "n]",    "n[1]]", "n[[1]]",   "n[1][2",
        "a b",      "a\n",  "ok,n[", "ok,n]", "ok,,",  "n[1-2]x]", "n[1234567890123456789]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char host[256] = "?";
        if (ls_nodelist_first(bad[i], host, sizeof host, &e) != LS_EINVAL)
            fail_msg("'%s' is taken for %s", bad[i], host);
        assert_string_equal(host, "?");
    }
    assert_ls_fails(ls_nodelist_first("ok,n[1-3", (char[8]){0}, 8, &e), LS_EINVAL,
                    "the list of nodes is 'ok,n[1-3'; at character 9: expected ',', '-' or ']'", e);
}

/* A name of 5 fits into 6, not into 5; a name of 255 is the longest. */
static void test_long_names(void **state) {
    (void)state;
    char host[300] = "?", list[300];
    ls_error e = {0};
    assert_ls_fails(ls_nodelist_first("node[1-2]", host, 5, &e), LS_EINVAL,
                    "the name node1 has 5 characters; at most 4 fit", e);
    assert_ls_fails(ls_nodelist_first("n", host, 0, &e), LS_EINVAL, "at most 0 fit", e);
    assert_string_equal(host, "?");
    assert_ls_ok(ls_nodelist_first("node[1-2]", host, 6, &e), e);
    assert_string_equal(host, "node1");
    memset(list, 'n', 256);
    list[255] = 0;
    assert_ls_ok(ls_nodelist_first(list, host, sizeof host, &e), e);
    assert_int_equal(strlen(host), 255);
    list[255] = 'n';
    list[256] = 0;
    assert_ls_fails(ls_nodelist_first(list, host, sizeof host, &e), LS_EINVAL,
                    "expected a shorter name", e);
    memcpy(list + 254, "[12]", 5);
    assert_ls_fails(ls_nodelist_first(list, host, sizeof host, &e), LS_EINVAL,
                    "expected a shorter name", e);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], SHOW) == 0) return show();
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alone, clear),
        cmocka_unit_test_setup(test_lockstep, clear),
        cmocka_unit_test_setup(test_torchrun, clear),
        cmocka_unit_test_setup(test_mpi, clear),
        cmocka_unit_test_setup(test_slurm, clear),
        cmocka_unit_test_setup(test_slurm_alone, clear),
        cmocka_unit_test_setup(test_slurm_with_pmi, clear),
        cmocka_unit_test_setup(test_agreement, clear),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test_setup(test_bad_numbers, clear),
        cmocka_unit_test_setup(test_missing, clear),
        cmocka_unit_test_setup(test_bad_addresses, clear),
        cmocka_unit_test_setup(test_bad_steps, clear),
        cmocka_unit_test_setup(test_node_lists, clear),
        cmocka_unit_test_setup(test_long_names, clear),
    };
    return cmocka_run_group_tests(tests, clear, NULL);
}
