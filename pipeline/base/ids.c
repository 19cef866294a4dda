/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "pipeline/base/clock.h"

void pl_uuid(char buf[40])
{
    unsigned char b[16] = { 0 };

    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        memcpy(b, &(double){ pl_clock() }, sizeof(double));
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4, RFC 4122 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(buf + at, 40 - (size_t)at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

const char *pl_scheduler(const char **job, const char **task)
{
    static const char *const known[][3] = {
        { "slurm", "SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID" },
        { "pbs", "PBS_JOBID", "PBS_ARRAY_INDEX" },
        { "lsf", "LSB_JOBID", "LSB_JOBINDEX" },
        { "sge", "JOB_ID", "SGE_TASK_ID" },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        *job = getenv(known[i][1]);
        *task = getenv(known[i][2]);
        /* JOB_ID alone is too common a name to mean Grid Engine. */
        if (*job != NULL && (i < 3 || *task != NULL))
            return known[i][0];
    }
    *job = *task = NULL;
    return NULL;
}
