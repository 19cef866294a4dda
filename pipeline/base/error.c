/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/error.h"
#include "pipeline/base/refused.h"
#include "pipeline/base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const int exit_status[PL_NCODES] = {
    [PL_OK] = 0,  [PL_EINPUT] = 1, [PL_ECONFIG] = 2, [PL_ELIMIT] = 3, [PL_ELOCK] = 4, [PL_EDATA] = 5,
    [PL_EIO] = 6, [PL_ENOMEM] = 6, [PL_EDEVICE] = 7, [PL_ESTOP] = 75, [PL_EBUG] = 1,
};

int pl_code_exit(pl_code code) { return (unsigned)code < PL_NCODES ? exit_status[code] : 1; }

/* ---- out of memory ---- */

static atomic_size_t last_refused;

void pl_refused(size_t bytes) { atomic_store(&last_refused, bytes); }

/* "training" -> "training: out of memory (the system refused 512.0 MB)" */
static void say_memory(char *text, size_t size)
{
    size_t bytes = atomic_exchange(&last_refused, 0), n = strlen(text);

    if (strstr(text, "memory") == NULL)
        (void)snprintf(text + n, size - n, ": out of memory");
    n = strlen(text);
    if (bytes > 0)
        (void)snprintf(text + n, size - n, " (the system refused %.1f MB)", 1e-6 * (double)bytes);
}

/* ---- messages ---- */

enum { WHOLE = 8192 }; /* bytes of a message before it is cut: more than the longest path */

/* Of a message that does not fit, the beginning and the end: in "PATH: REASON" the path may be of any length. */
static void put_text(char *to, size_t size, const char *text)
{
    static const char gap[] = " ... ";
    const size_t n = strlen(text), head = size / 2, tail = size - head - strlen(gap); /* tail: with the NUL */

    if (n < size) {
        memcpy(to, text, n + 1);
        return;
    }
    memcpy(to, text, head);
    memcpy(to + head, gap, strlen(gap));
    memcpy(to + head + strlen(gap), text + n + 1 - tail, tail);
}

pl_code pl_fail(pl_error *err, pl_code code, const char *fmt, ...)
{
    char text[WHOLE];
    va_list ap;

    if (err == NULL)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (code == PL_ENOMEM)
        say_memory(text, sizeof text);
    *err = (pl_error){ .code = code };
    put_text(err->text, sizeof err->text, text);
    pl_clean_line(err->text);
    return code;
}

void pl_at(pl_error *err, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL || err->where[0] != '\0')
        return;
    va_start(ap, fmt);
    (void)vsnprintf(err->where, sizeof err->where, fmt, ap);
    va_end(ap);
    pl_clean_line(err->where);
}
