/* plugin.h - files that belong to the library and are installed beside it: MPI's transports, and
 * kernels compiled for GPUs. */
#ifndef LS_BASE_PLUGIN_H
#define LS_BASE_PLUGIN_H

/* Where `make install` puts them. */
extern const char ls_plugin_dir[];

/* The path of the file `name`, or NULL; the caller frees it. It is looked for in $LOCKSTEP_PLUGINS;
 * beside the program that runs; beside the shared library; then, for a program that is linked
 * statically and lies elsewhere, in ls_plugin_dir and the directories of $LD_LIBRARY_PATH. */
char *ls_plugin_find(const char *name);

#endif
