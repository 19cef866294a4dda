/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/rank/written.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/base/sha256.h"

enum { NS_PER_S = 1000000000 };

typedef struct mark {
    long long size, mtime_ns;
    char sha256[65];
} mark;

static bool is_file(const char *path, mark *m)
{
    struct stat at;

    if (stat(path, &at) != 0 || !S_ISREG(at.st_mode))
        return false;
    *m = (mark){ .size = at.st_size, .mtime_ns = (long long)at.st_mtim.tv_sec * NS_PER_S + at.st_mtim.tv_nsec };
    return true;
}

pl_code st_written_check(pl_store *s, const char *format, const char *path, st_written *out, pl_error *err)
{
    char text[160], a[32], b[32];
    mark then = { 0 }, now;
    pl_code code = pl_db_text(s->db, text, sizeof text, err, "SELECT value FROM meta WHERE key='write %q'", format);

    *out = (st_written){ 0 };
    if (code != PL_OK || sscanf(text, "%lld %lld %64s", &then.size, &then.mtime_ns, then.sha256) != 3 || !is_file(path, &now))
        return code;
    if (now.size != then.size) {
        (void)snprintf(out->how, sizeof out->how, "%s byte%s, not %s", pl_count_str(now.size, a), now.size == 1 ? "" : "s",
                       pl_count_str(then.size, b));
    } else if (now.mtime_ns != then.mtime_ns) {
        code = pl_sha256_file(path, now.sha256, err);
        if (code == PL_OK && strcmp(now.sha256, then.sha256) != 0)
            (void)snprintf(out->how, sizeof out->how, "same size, other bytes");
    }
    out->changed = out->how[0] != '\0';
    return code;
}

pl_code st_written_put(pl_store *s, const char *format, const char *path, pl_error *err)
{
    mark m;
    pl_code code;

    if (!is_file(path, &m))
        return PL_OK;
    code = pl_sha256_file(path, m.sha256, err);
    return code == PL_OK ? pl_db_execf(s->db, err, "INSERT OR REPLACE INTO meta(key,value) VALUES('write %q','%lld %lld %s')",
                                       format, m.size, m.mtime_ns, m.sha256)
                         : code;
}

pl_code st_written_forget(pl_store *s, pl_error *err)
{
    return pl_db_exec(s->db, "DELETE FROM meta WHERE key LIKE 'write %'", err);
}
