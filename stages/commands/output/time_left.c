/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stages/commands/output/run_words.h"

/* ---- what schedulers say: the end of the job, 0 if they do not ---- */

/* "   EndTime=2026-01-31T12:00:00 Deadline=N/A" of scontrol. */
static time_t slurm_end(const char *text)
{
    const char *at = strstr(text, " EndTime=");
    struct tm tm = { .tm_isdst = -1 };

    return at != NULL && strptime(at + 9, "%Y-%m-%dT%H:%M:%S", &tm) != NULL ? mktime(&tm) : 0;
}

/* "    Resource_List.walltime = 01:00:00" and "    stime = Sat Jan 31 11:00:00 2026" of qstat. */
static time_t pbs_end(const char *text)
{
    const char *limit = strstr(text, " Resource_List.walltime = "), *start = strstr(text, " stime = ");
    struct tm tm = { .tm_isdst = -1 };
    long h, m, s;

    if (limit == NULL || start == NULL || sscanf(strchr(limit, '=') + 1, "%ld:%ld:%ld", &h, &m, &s) != 3 ||
        strptime(start + 9, "%a %b %d %H:%M:%S %Y", &tm) == NULL)
        return 0;
    return mktime(&tm) + (h * 60 + m) * 60 + s;
}

/* "0:59 L", hours and minutes that are left, of bjobs. */
static time_t lsf_end(const char *text)
{
    long h, m;

    return sscanf(text, "%ld:%ld", &h, &m) == 2 ? time(NULL) + (h * 60 + m) * 60 : 0;
}

static const struct asked {
    const char *job, *array_job, *task; /* variables; array_job NULL: job                    */
    const char *open, *close;           /* around the task: 12_3, 12[3]                      */
    const char *command;
    time_t (*end)(const char *text);
} schedulers[] = {
    { "SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "_", "", "scontrol show job '%s' 2>/dev/null", slurm_end },
    { "PBS_JOBID", NULL, NULL, NULL, NULL, "qstat -f '%s' 2>/dev/null", pbs_end }, /* "12[3].server" of a task */
    { "LSB_JOBID", NULL, "LSB_JOBINDEX", "[", "]", "bjobs -noheader -o time_left '%s' 2>/dev/null", lsf_end },
};

static bool job_name(const struct asked *a, const char *job, char *out, size_t size)
{
    const char *task = a->task != NULL ? getenv(a->task) : NULL;
    const char *whole = a->array_job != NULL ? getenv(a->array_job) : job;
    int n;

    if (whole != NULL && task != NULL && (a->array_job != NULL || strcmp(task, "0") != 0))
        n = snprintf(out, size, "%s%s%s%s", whole, a->open, task, a->close);
    else
        n = snprintf(out, size, "%s", job);
    return n > 0 && (size_t)n < size &&
           out[strspn(out, "0123456789abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ_.-[]")] == '\0';
}

static time_t ask(const struct asked *a, const char *name)
{
    char command[256], line[1024];
    pl_text text = { 0 };
    time_t end;
    FILE *p;

    (void)snprintf(command, sizeof command, a->command, name);
    p = popen(command, "r");
    while (p != NULL && fgets(line, sizeof line, p) != NULL)
        pl_text_add(&text, line);
    if (p != NULL)
        (void)pclose(p);
    end = a->end(pl_text_str(&text));
    pl_text_free(&text);
    return end;
}

double st_time_left(double limit, double warn)
{
    const char *known = getenv("SLURM_JOB_END_TIME");
    int64_t seconds = 0;
    time_t end = 0;
    char name[128];
    double left;

    if (limit >= 0)
        return limit;
    if (known != NULL && pl_parse_int(known, &seconds))
        end = (time_t)seconds;
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers && end == 0; i++) {
        const char *job = getenv(schedulers[i].job);
        if (job != NULL && job_name(&schedulers[i], job, name, sizeof name))
            end = ask(&schedulers[i], name);
    }
    if (end == 0)
        return 0;
    left = difftime(end, time(NULL));
    left -= warn < left / 4 ? warn : left / 4; /* a job of one minute still works for most of it */
    return left > 1 ? left : 1;
}
