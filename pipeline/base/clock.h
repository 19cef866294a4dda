/* pipeline/base/clock.h - what time it is. */
#ifndef PL_CLOCK_H
#define PL_CLOCK_H

/* "2026-01-31T12:34:56Z" */
const char *pl_utc_now(char buf[32]);
/* Seconds of a clock that never jumps. */
double pl_clock(void);

#endif
