/* ram.h - how much memory this process may use: the machine's, or less where a control group limits
 * it (a container, Slurm, systemd).
 */
#ifndef LS_BASE_RAM_H
#define LS_BASE_RAM_H

#include <stdbool.h>

#define LS_RAM_MEMINFO "/proc/meminfo"

typedef struct ls_ram {
    double nbytes; /* INFINITY: the system does not say it */
    bool of_group; /* a control group's limit, not the machine's memory */
} ls_ram;
ls_ram ls_ram_allowed(void);

/* Bytes of the machine, by sysinfo(), or by the file where that is refused; INFINITY: neither says
 * it. */
double ls_ram_machine(const char *meminfo);

#endif
