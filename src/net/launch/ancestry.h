/* ancestry.h - which process, of this one and those that started it, set a variable of the
 * environment: a variable that this process has and its parent began with is inherited. */
#ifndef LS_NET_LAUNCH_ANCESTRY_H
#define LS_NET_LAUNCH_ANCESTRY_H

/* The process that set a variable, or the nearest one whose environment can't be read. */
typedef struct ls_ancestor {
    int distance;  /* 0: this process itself, since it began; 1: its parent ... */
    char name[16]; /* its program's name in the kernel; "": unknown */
} ls_ancestor;

void ls_ancestry_find(const char *variable, ls_ancestor *a_p);

#endif
