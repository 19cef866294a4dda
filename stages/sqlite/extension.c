/* SPDX-License-Identifier: Apache-2.0 */
/* molsieve_sqlite.so: the functions of stages/expression/chemistry.h for any program that uses SQLite.
 *
 *   sqlite3 results.db ".load molsieve_sqlite" "SELECT ..."
 *   datasette results.db --load-extension molsieve_sqlite.so
 *
 * Open Babel is not in this library: the confined worker program reads SMILES and patterns. It is $MOLSIEVE_CHEM, or molsieve-chem
 * beside this file or in ../bin or ../../bin, or in PATH. */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stages/expression/chemistry.h"

int sqlite3_molsievesqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

/* The folder of this library. */
static bool own_folder(char *out, size_t n)
{
    static const int here;
    Dl_info info = { 0 };
    char real[PATH_MAX];
    char *slash;

    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, real) == NULL)
        return false;
    slash = strrchr(real, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return snprintf(out, n, "%s", real) < (int)n;
}

/* NULL: none near this library; then PATH is searched. */
static const char *find_worker(char *out, size_t n)
{
    static const char *const places[] = { "", "/../bin", "/../../bin" };
    const char *named = getenv("MOLSIEVE_CHEM");
    char folder[PATH_MAX];

    if (named != NULL && named[0] != '\0')
        return named;
    for (size_t i = 0; own_folder(folder, sizeof folder) && i < sizeof places / sizeof *places; i++)
        if (snprintf(out, n, "%s%s/molsieve-chem", folder, places[i]) < (int)n && access(out, X_OK) == 0)
            return out;
    return NULL;
}

__attribute__((visibility("default"))) int sqlite3_molsievesqlite_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    char path[PATH_MAX + 32];
    ch_worker_opts opts = st_chemistry_limits();
    pl_error err = { 0 };

    SQLITE_EXTENSION_INIT2(api);
    opts.program = find_worker(path, sizeof path);
    if (st_chemistry_add(db, &opts, &err) == PL_OK)
        return SQLITE_OK;
    if (message != NULL)
        *message = sqlite3_mprintf("molsieve: %s", err.text);
    return SQLITE_ERROR;
}
