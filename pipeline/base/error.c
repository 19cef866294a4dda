/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    int exit_status;
} codes[PL_NCODES] = {
    [PL_OK] = { "ok", 0 },
    [PL_EINPUT] = { "bad input", 1 },
    [PL_ECONFIG] = { "bad config", 2 },
    [PL_ELIMIT] = { "too many failures", 3 },
    [PL_ELOCK] = { "locked", 4 },
    [PL_EDATA] = { "bad data", 5 },
    [PL_EIO] = { "i/o error", 6 },
    [PL_ENOMEM] = { "out of memory", 6 },
    [PL_EDEVICE] = { "device error", 7 },
    [PL_ESTOP] = { "stopped early", 75 },
    [PL_EBUG] = { "internal error", 1 },
};

const char *pl_code_name(pl_code code)
{
    return (unsigned)code < PL_NCODES ? codes[code].name : "unknown code";
}

int pl_code_exit(pl_code code)
{
    return (unsigned)code < PL_NCODES ? codes[code].exit_status : 1;
}

pl_code pl_fail(pl_error *err, pl_code code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        err->code = code;
        err->where[0] = '\0';
        va_start(ap, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
    }
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
}
