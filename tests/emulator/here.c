/* SPDX-License-Identifier: Apache-2.0 */
/* For a program that is run by hand: the emulated plugin that was built with it. */
#include <stdlib.h>

__attribute__((constructor)) static void plugins_here(void)
{
    if (getenv("MOLSIEVE_PLUGINS") == NULL) {
        (void)setenv("MOLSIEVE_PLUGINS", EMULATED, 0);
        (void)setenv("MOLSIEVE_CUDA_FENCES", "1", 0);
    }
}
