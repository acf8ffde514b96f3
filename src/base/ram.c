/* ram.c - see ram.h.
 *
 * sysconf(_SC_PHYS_PAGES) is not asked: where a filter of system calls refuses sysinfo(), the C
 * library returns what lies on its stack.
 */
#include "base/ram.h"

#include <math.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "base/cgroup.h"

double ls_ram_machine(const char *meminfo) {
    struct sysinfo info;
    char line[128];
    double kb = 0;
    if (sysinfo(&info) == 0 && info.totalram)
        return (double)info.totalram * (info.mem_unit ? info.mem_unit : 1);
    FILE *f = fopen(meminfo, "re");
    while (f && kb <= 0 && fgets(line, sizeof line, f)) sscanf(line, "MemTotal: %lf kB", &kb);
    if (f) fclose(f);
    return kb > 0 ? kb * 1024 : (double)INFINITY;
}

ls_ram ls_ram_allowed(void) {
    double machine = ls_ram_machine(LS_RAM_MEMINFO);
    double group = ls_cgroup_memory(LS_CGROUP_ROOT, LS_CGROUP_SELF);
    bool of_group = group > 0 && group < machine;
    return (ls_ram){of_group ? group : machine, of_group};
}
