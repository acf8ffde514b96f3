/* cgroup.h - the memory and processor time that this process's control groups allow it.
 *
 * Containers, Slurm and systemd limit processes by control groups, version 1 or 2. Their files
 * are below LS_CGROUP_ROOT; LS_CGROUP_SELF says which groups this process is in. A group's limit
 * also applies to the groups below it, so the smallest limit up to the root counts.
 */
#ifndef LS_BASE_CGROUP_H
#define LS_BASE_CGROUP_H

#define LS_CGROUP_ROOT "/sys/fs/cgroup"
#define LS_CGROUP_SELF "/proc/self/cgroup"

/* Bytes of memory; 0: no limit, or it can't be read. */
double ls_cgroup_memory(const char *root, const char *self);

/* Processors' worth of time, e.g. 1.5; 0: no limit. */
double ls_cgroup_cores(const char *root, const char *self);

#endif
