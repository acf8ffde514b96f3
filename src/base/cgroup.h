/* cgroup.h - what this process's control groups let it use: memory and processor time.
 *
 * Containers, Slurm and systemd limit processes by control groups, of version 1 or 2, whose files
 * lie below LS_CGROUP_ROOT; LS_CGROUP_SELF says which groups this process is in. A group's limit
 * holds for all groups below it: the least on the way up counts.
 */
#ifndef LS_BASE_CGROUP_H
#define LS_BASE_CGROUP_H

#define LS_CGROUP_ROOT "/sys/fs/cgroup"
#define LS_CGROUP_SELF "/proc/self/cgroup"

/* Bytes of memory; 0: there is no limit, or none that can be read. */
double ls_cgroup_memory(const char *root, const char *self);

/* Processors' worth of time, e.g. 1.5; 0: no limit. */
double ls_cgroup_cores(const char *root, const char *self);

#endif
