/* SPDX-License-Identifier: Apache-2.0 */
/* Sets MOLSIEVE_PLUGINS of a program that is run by hand to the emulated plugin of its build, and MOLSIEVE_CUBLASLT to its library. */
#include <stdlib.h>

__attribute__((constructor)) static void plugins_here(void)
{
    if (getenv("MOLSIEVE_PLUGINS") == NULL) {
        (void)setenv("MOLSIEVE_PLUGINS", EMULATED, 0);
        (void)setenv("MOLSIEVE_CUDA_FENCES", "1", 0);
        (void)setenv("MOLSIEVE_CUBLASLT", EMULATED "/libcublasLt.so", 0);
    }
}
