/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "pipeline/base/text.h"

/* One sink for the program, set before any thread starts. */
static struct {
    pl_sink *sink;
    void *ctx;
    pl_level max;
} to;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pl_log_to(pl_sink *sink, void *ctx, pl_level max)
{
    to.sink = sink;
    to.ctx = ctx;
    to.max = max;
}

void pl_log(pl_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (to.sink == NULL || level > to.max)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pl_clean_line(line);
    (void)pthread_mutex_lock(&lock);
    to.sink(to.ctx, level, line);
    (void)pthread_mutex_unlock(&lock);
}
