/* models/family/xgboost_calls.h - the functions of XGBoost's library that xgboost.c calls. Tests put functions of their own in place of
 * these. */
#ifndef NN_XGBOOST_CALLS_H
#define NN_XGBOOST_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* As xgboost/c_api.h declares them. A handle is a void *; a result other than 0 is an error. */
typedef struct nn_xgboost_calls {
    const char *(*last_error)(void);
    void (*version)(int *major, int *minor, int *patch);
    int (*build)(const char **json);
    int (*set_global)(const char *json);
    int (*rows_open)(const char *first, const char *column, const char *value, uint64_t n_columns, const char *settings,
                     void **out);
    int (*rows_floats)(void *rows, const char *field, const float *value, uint64_t n);
    int (*rows_free)(void *rows);
    int (*open)(void *const rows[], uint64_t n, void **out);
    int (*option)(void *booster, const char *name, const char *value);
    int (*config)(void *booster, uint64_t *n, const char **json);
    int (*round)(void *booster, int round, void *rows);
    int (*round_by)(void *booster, void *rows, float *first, float *second, uint64_t n);
    int (*dump)(void *booster, const char *map, int with_covers, const char *format, uint64_t *n, const char ***out);
    int (*predict)(void *booster, void *rows, const char *settings, const uint64_t **shape, uint64_t *n_dims, const float **out);
    int (*free)(void *booster);
} nn_xgboost_calls;

enum { NN_XGBOOST_CALLS = sizeof(nn_xgboost_calls) / sizeof(void (*)(void)) };

typedef struct nn_xgboost_name {
    size_t at; /* in nn_xgboost_calls */
    const char *name;
} nn_xgboost_name;

extern const nn_xgboost_name nn_xgboost_names[NN_XGBOOST_CALLS];

#endif
