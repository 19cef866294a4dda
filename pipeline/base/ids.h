/* pipeline/base/ids.h - names of a run: its own, and the one of the job it runs in. */
#ifndef PL_IDS_H
#define PL_IDS_H

/* 32 hexadecimal digits, different for every run. */
void pl_uuid(char buf[40]);
/* "slurm", "pbs", "lsf", "sge" or NULL; *job and *task borrowed from the environment or NULL. */
const char *pl_scheduler(const char **job, const char **task);

#endif
