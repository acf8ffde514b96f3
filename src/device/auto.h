/* auto.h - which device this process would use if it had the choice. */
#ifndef LS_DEVICE_AUTO_H
#define LS_DEVICE_AUTO_H

typedef struct ls_device_auto {
    char name[32];   /* for ls_device_open(): "cuda", "opencl:2"; "": no device, so the cores */
    char text[1100]; /* for people: the device's own name, or why there is none */
    int n;           /* of ls_device_auto_count() */
} ls_device_auto;

/* Device cuda if there is one that can be used, else a GPU of OpenCL, else none. Devices are opened
 * in a process of their own: drivers can't be used in a process that is forked later. Must not run
 * beside other threads. */
void ls_device_auto_find(ls_device_auto *);
/* How many workers of this host can have a device of that name each for itself: 1 of a name with a
 * number. 0: any number of them, or it can't be used. Likewise in a process of its own. */
int ls_device_auto_count(const char *name);

#endif
