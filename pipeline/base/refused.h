/* pipeline/base/refused.h - how much memory the system last refused, for the message that says so. */
#ifndef PL_BASE_REFUSED_H
#define PL_BASE_REFUSED_H

#include <stddef.h>

/* Called where an allocation is refused; from any thread. pl_fail adds it to a PL_ENOMEM, once. */
void pl_refused(size_t bytes);

#endif
