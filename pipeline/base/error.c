/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/error.h"

#include <stdarg.h>
#include <stdio.h>

static const int exit_status[PL_NCODES] = {
    [PL_OK] = 0,
    [PL_EINPUT] = 1,
    [PL_ECONFIG] = 2,
    [PL_ELIMIT] = 3,
    [PL_ELOCK] = 4,
    [PL_EDATA] = 5,
    [PL_EIO] = 6,
    [PL_ENOMEM] = 6,
    [PL_EDEVICE] = 7,
    [PL_ESTOP] = 75,
    [PL_EBUG] = 1,
};

int pl_code_exit(pl_code code)
{
    return (unsigned)code < PL_NCODES ? exit_status[code] : 1;
}

/* One line, whatever a file had in it: no control character reaches a terminal. */
static void keep_one_line(char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = ' ';
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
        keep_one_line(err->text);
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
    keep_one_line(err->where);
}
