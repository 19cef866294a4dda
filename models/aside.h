/* models/aside.h - one thread beside the caller's, asleep unless there is something to do.
 *
 * For one caller. Where the system has no thread to give, things are done at once by the caller. */
#ifndef NN_ASIDE_H
#define NN_ASIDE_H

#include <stdbool.h>

typedef struct nn_aside nn_aside;

nn_aside *nn_aside_new(void);      /* NULL when refused                            */
void nn_aside_free(nn_aside *a);   /* waits for what is being done; NULL is fine   */

/* Begins work(ctx); what was begun before must have been waited for. */
void nn_aside_begin(nn_aside *a, void (*work)(void *ctx), void *ctx);
bool nn_aside_busy(nn_aside *a);   /* not done yet                                 */
void nn_aside_wait(nn_aside *a);   /* until it is done; nothing begun is fine      */

#endif
