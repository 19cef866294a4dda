/* models/threads/background_thread.h - one background thread that does one piece of work at a time for one caller.
 *
 * If the system refuses a thread, nn_background_begin does the work itself before it returns. */
#ifndef NN_BACKGROUND_THREAD_H
#define NN_BACKGROUND_THREAD_H

#include <stdbool.h>

typedef struct nn_background nn_background;

nn_background *nn_background_new(void);    /* NULL: no memory                              */
void nn_background_free(nn_background *a); /* waits for work in progress; NULL is fine     */

/* Starts work(ctx). The caller must first have waited for the work before it. */
void nn_background_begin(nn_background *a, void (*work)(void *ctx), void *ctx);
bool nn_background_busy(nn_background *a); /* true while the work is not finished          */
void nn_background_wait(nn_background *a); /* until the work is finished; returns at once if none was started */

#endif
