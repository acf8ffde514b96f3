/* compiler_log.h - what a device's compiler printed, for an error's one line. */
#ifndef LS_DEVICE_COMPILER_LOG_H
#define LS_DEVICE_COMPILER_LOG_H

/* The first line of the log that has an error, else the first that has anything; of *length_p
 * characters. */
const char *ls_compiler_log_line(const char *log, int *length_p);

#endif
