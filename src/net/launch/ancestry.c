/* ancestry.c - see ancestry.h.
 *
 * /proc/PID/environ has the variables with which a program began, not those that it has set since.
 * Walking up the parents, the first process without the variable (with the same value) has set it
 * for its child. Processes of other users, and those outside of a container, can't be looked at:
 * the walk ends there.
 */
#include "net/launch/ancestry.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { MOST = 64 }; /* processes that are asked */

static FILE *open_of(int pid, const char *file) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return fopen(path, "re");
}

/* Did the process begin with this text, "NAME=value"? False also if that can't be read. */
static bool began_with(int pid, const char *text) {
    FILE *f = open_of(pid, "environ");
    char *one = NULL;
    size_t room = 0;
    bool found = false;
    while (f && !found && getdelim(&one, &room, 0, f) > 0) found = strcmp(one, text) == 0;
    free(one);
    if (f) fclose(f);
    return found;
}

/* 0: there is none, or it is outside of this container. The program's name, in parentheses, may
 * contain any characters. */
static int parent_of(int pid) {
    char text[512], state = 0;
    int parent = 0;
    FILE *f = open_of(pid, "stat");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %9d", &state, &parent) == 2 ? parent : 0;
}

static void read_name(int pid, char name[16]) {
    FILE *f = open_of(pid, "comm");
    if (!f || !fgets(name, 16, f)) name[0] = 0;
    if (f) fclose(f);
    name[strcspn(name, "\n")] = 0;
}

void ls_ancestry_find(const char *variable, ls_ancestor *a_p) {
    const char *value = getenv(variable);
    char *text = ls_format("%s=%s", variable, value ? value : "");
    int pid = getpid(), distance = 0;
    while (pid > 0 && distance < MOST && began_with(pid, text)) {
        pid = parent_of(pid);
        distance++;
    }
    *a_p = (ls_ancestor){.distance = distance};
    if (pid > 0) read_name(pid, a_p->name);
    free(text);
}
