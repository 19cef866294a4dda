/* pipeline/base/log.h - log messages for people; never part of a result. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

typedef enum pl_level { PL_ERROR, PL_WARN, PL_INFO, PL_DEBUG } pl_level;
typedef void pl_sink(void *ctx, pl_level level, const char *line); /* line has no newline */

/* Sends messages up to level max to sink; NULL: nowhere, the default. Call it before any thread starts. */
void pl_log_to(pl_sink *sink, void *ctx, pl_level max);
/* Any thread. The sink gets one line at a time, at most 1,023 bytes, without control characters. */
void pl_log(pl_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
