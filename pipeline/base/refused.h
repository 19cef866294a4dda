/* pipeline/base/refused.h - the size of the last allocation that the system refused, for error messages. */
#ifndef PL_BASE_REFUSED_H
#define PL_BASE_REFUSED_H

#include <stddef.h>

/* Call this where malloc returned NULL; any thread may. The next pl_fail with PL_ENOMEM adds the size to its message. */
void pl_refused(size_t bytes);

#endif
