/* pipeline/base/spelling.h - American spellings of settings, values and options: `neutralize` is read as `neutralise`.
 *
 * A new name with a British spelling needs a line in spelling.c; a test looks for those without one. */
#ifndef PL_BASE_SPELLING_H
#define PL_BASE_SPELLING_H

#include <stdbool.h>

enum { PL_SPELLED = 64 };

/* Whether the word has an American spelling; out: the British one. Longer words than PL_SPELLED have none. */
bool pl_british(const char *word, char out[PL_SPELLED]);
/* The other way. */
bool pl_american(const char *word, char out[PL_SPELLED]);

#endif
