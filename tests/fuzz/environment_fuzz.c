/* environment_fuzz.c - variables of launchers with arbitrary values, and Slurm's lists of nodes.
 * The input is lines: a byte that picks the variable, then its value. */
#include "fuzz.h"
#include "net/launch/environment.h"

static const char *const names[] = {
    "LOCKSTEP_RANK",
    "LOCKSTEP_SIZE",
    "LOCKSTEP_LOCAL_RANK",
    "LOCKSTEP_LOCAL_SIZE",
    "LOCKSTEP_ADDR",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMIX_RANK",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_NODELIST",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
    "SLURM_NODELIST",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    "SLURM_NODEID",
    "SLURM_STEP_TASKS_PER_NODE",
    "TORCHELASTIC_USE_AGENT_STORE",
};
enum { NNAMES = sizeof names / sizeof *names };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
    char *text = malloc(nbytes + 1), host[64] = "as it was";
    ls_environment env;
    ls_error e = {0};
    memcpy(text, data, nbytes);
    text[nbytes] = 0;
    if (ls_nodelist_first(text, host, sizeof host, &e) == LS_OK)
        FUZZ_CHECK(host[0] && strlen(host) < sizeof host);
    else
        FUZZ_CHECK(strcmp(host, "as it was") == 0 && e.code == LS_EINVAL && e.msg[0]);
    for (int i = 0; i < NNAMES; i++) unsetenv(names[i]);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line) setenv(names[(unsigned char)*line % NNAMES], line + 1, 1);
    if (ls_environment_read(&env, &e) == LS_OK) {
        FUZZ_CHECK(env.size >= 1 && env.size <= LS_MAX_WORKERS);
        FUZZ_CHECK(env.rank >= 0 && env.rank < env.size);
        FUZZ_CHECK(env.port >= 0 && env.port <= 65535);
        FUZZ_CHECK(memchr(env.host, 0, sizeof env.host));
    } else {
        FUZZ_CHECK(e.code == LS_EINVAL && e.msg[0]);
    }
    free(text);
    return 0;
}
