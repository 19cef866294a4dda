/* pipeline/base/error.h - how every directory reports failure.
 *
 * A function that can fail returns pl_code; PL_OK is zero. When it also takes
 * `pl_error *err` (always the last parameter) err is filled exactly when the
 * result is not PL_OK; pass NULL to keep only the code. Below the commands
 * nothing prints, exits or aborts. */
#ifndef PL_BASE_ERROR_H
#define PL_BASE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Ignoring a returned pl_code is a compiler warning where the language has [[nodiscard]]: C23 and C++17. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define PL_NODISCARD [[nodiscard]]
#else
#define PL_NODISCARD
#endif

/* Codes are grouped by what the caller should do next. */
typedef enum PL_NODISCARD pl_code {
    PL_OK = 0,
    PL_EINPUT,  /* this record is unusable: reject it, go on                   */
    PL_ECONFIG, /* the settings are wrong: stop before any work                */
    PL_ELIMIT,  /* finished or stopped with more failures than allowed         */
    PL_ELOCK,   /* another run holds the work directory                        */
    PL_EDATA,   /* a database, checkpoint or model file is not what it must be */
    PL_EIO,     /* a file could not be read or written: stop, can be resumed   */
    PL_ENOMEM,  /* an allocation was refused: stop, can be resumed             */
    PL_EDEVICE, /* the GPU failed: stop, or start again on the CPU             */
    PL_ESTOP,   /* asked to stop: the state is good, run again to continue     */
    PL_EBUG,    /* an error in the program itself: report it                   */
    PL_NCODES
} pl_code;

typedef struct pl_error {
    pl_code code;
    char where[128]; /* "library.smi:1841" or "stage graph"; may be empty    */
    char text[384];  /* one line, no newline, says what was found and why    */
} pl_error;

/* The exit status of a command that ends with this code: 0 1 2 3 4 5 6 7 75, see docs/FORMATS.md. */
int pl_code_exit(pl_code code);

/* Fills err (if not NULL) with the code and the text, empties err->where, and returns code, so a check is one line. */
pl_code pl_fail(pl_error *err, pl_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fills err->where, unless an inner call already did. Does nothing when err is NULL. */
void pl_at(pl_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
