/* stages/commands/about/doctor.h - the checks of `molsieve doctor`. */
#ifndef ST_DOCTOR_H
#define ST_DOCTOR_H

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef enum st_health { ST_GOOD, ST_NOTE, ST_BAD } st_health;

typedef struct st_finding {
    const char *name; /* "worker"                      */
    st_health health;
    const char *text; /* what was found, and what to do */
} st_finding;

typedef struct st_findings {
    pl_arena *mem;
    st_finding list[48];
    int n;
} st_findings;

void st_find(st_findings *f, const char *name, st_health health, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Program, processor, memory, limits, accelerators. */
void st_doctor_machine(st_findings *f);
/* The file system of `dir`: kind, free space, locks, a database that is written and read. */
void st_doctor_disk(st_findings *f, const char *dir);
/* The chemistry worker: found, its library, one known molecule through it. */
void st_doctor_chemistry(st_findings *f);

#endif
