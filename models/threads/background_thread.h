/* models/threads/background_thread.h - one background thread that does one piece of work at a time for one caller.
 *
 * If the system refuses a thread, nn_aside_begin does the work itself before it returns. */
#ifndef NN_BACKGROUND_THREAD_H
#define NN_BACKGROUND_THREAD_H

#include <stdbool.h>

typedef struct nn_aside nn_aside;

nn_aside *nn_aside_new(void);    /* NULL: no memory                              */
void nn_aside_free(nn_aside *a); /* waits for work in progress; NULL is fine     */

/* Starts work(ctx). The caller must first have waited for the work before it. */
void nn_aside_begin(nn_aside *a, void (*work)(void *ctx), void *ctx);
bool nn_aside_busy(nn_aside *a); /* true while the work is not finished          */
void nn_aside_wait(nn_aside *a); /* until the work is finished; returns at once if none was started */

#endif
