/* crew.h - the processes of an asynchronous run, seen from outside. */
#ifndef LS_TEST_CREW_H
#define LS_TEST_CREW_H

#include <dirent.h>

#include "cli/program.h"
#include "listeners.h"

/* The children of any thread of a process. */
static inline int all_children(pid_t parent, pid_t *pids, int most) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", parent);
    DIR *d = opendir(path);
    int n = 0, pid = 0;
    for (struct dirent *t; d && (t = readdir(d));) {
        char list[384];
        snprintf(list, sizeof list, "%s/%s/children", path, t->d_name);
        FILE *f = *t->d_name == '.' ? NULL : fopen(list, "r");
        while (f && n < most && fscanf(f, "%d", &pid) == 1) pids[n++] = pid;
        if (f) fclose(f);
    }
    if (d) closedir(d);
    return n;
}

/* The process that starts workers and servers; then these. */
static inline int crew_of(pid_t run, pid_t *nursery_p, pid_t *pids, int most) {
    if (all_children(run, nursery_p, 1) != 1) return 0;
    return all_children(*nursery_p, pids, most);
}

/* Of these processes of a run that listens, only the last one does: its gate. */
static inline void check_gate_listens(const pid_t *pids, int n) {
    char text[1024];
    for (int i = 0; i < n; i++)
        assert_int_equal(listeners_of(pids[i], text, sizeof text) > 0, i == n - 1);
}

#endif
