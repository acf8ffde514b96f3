/* prometheus.h - the figures of all runs, as Prometheus reads them: its text format, version 0.0.4.
 *
 * Names begin with lockstep_ and end with their base unit: seconds, bytes, a ratio from 0 to 1;
 * counters end with _total. Every figure has the label `run`. A figure that is not known is left
 * out. A counter of a run that is resumed from an earlier step goes back, as Prometheus expects of
 * a program that is started again.
 *
 * Source: https://prometheus.io/docs/instrumenting/exposition_formats/
 */
#ifndef LS_WATCH_PROMETHEUS_H
#define LS_WATCH_PROMETHEUS_H

#include "watch/watcher.h"

#define LS_PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

void ls_prometheus_write(const ls_watcher *, ls_buf *out);

#endif
