/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/merge/shard_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stages/files/own_files.h"
#include "stages/merge/merge.h"

bool st_shard_read(pl_shard *out, const char *text)
{
    int k, n;
    char more;

    if (sscanf(text, "%5d/%5d%c", &k, &n, &more) != 2 || n < 1 || k < 0 || k >= n)
        return false;
    *out = (pl_shard){ k, n };
    return true;
}

/* ---- where the file goes ---- */

static pl_code check_folder(const char *path, pl_arena *mem, pl_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *dir = slash == NULL ? "." : pl_strndup(mem, path, slash == path ? 1 : (size_t)(slash - path));
    struct stat at;

    if (dir == NULL)
        return pl_fail(err, PL_ENOMEM, "a path");
    if (stat(dir, &at) != 0)
        return pl_fail(err, PL_EIO, "--out %s: %s: %s; make the folder first", path, dir, strerror(errno));
    if (!S_ISDIR(at.st_mode) || access(dir, W_OK | X_OK) != 0)
        return pl_fail(err, PL_EIO, "--out %s: no files can be made in %s", path, dir);
    return PL_OK;
}

/* An existing file is replaced only if it is of the same shard. */
static pl_code check_existing(const st_shard_file *f, const pl_schema *schema, pl_arena *mem, pl_error *err)
{
    static const char advice[] = "choose another name, or remove the file";
    pl_store *s = NULL;
    const char *text = "";
    pl_shard has = { 0 };

    if (st_is_database(f->path) && pl_store_open_read(&s, f->path, schema, NULL) == PL_OK)
        (void)pl_store_shard(s, &text, mem, NULL);
    pl_store_close(s);
    if (!st_shard_read(&has, text))
        return pl_fail(err, PL_ECONFIG, "--out %s: the file exists, and it is not a sound file of a shard; %s", f->path, advice);
    if (has.k != f->shard.k)
        return pl_fail(err, PL_ECONFIG, "--out %s: the file of shard %s, and this is shard %d/%d; %s", f->path, text,
                       (int)f->shard.k, (int)f->shard.n, advice);
    return PL_OK;
}

pl_code st_shard_file_place(const st_shard_file *f, const pl_workflow *wf, const pl_schema *schema, pl_arena *mem, pl_error *err)
{
    struct stat at;
    pl_code code;

    if (f->path[0] == '\0' || f->path[strlen(f->path) - 1] == '/')
        return pl_fail(err, PL_ECONFIG, "--out '%s': a file is expected, such as shard-%d.db", f->path, (int)f->shard.k);
    if (st_is_own(wf, f->path))
        return pl_fail(err, PL_ECONFIG, "--out %s: a file of the run itself; choose another name", f->path);
    code = check_folder(f->path, mem, err);
    if (code != PL_OK || stat(f->path, &at) != 0)
        return code;
    if (!S_ISREG(at.st_mode))
        return pl_fail(err, PL_ECONFIG, "--out %s: exists and is no regular file; choose another name", f->path);
    return check_existing(f, schema, mem, err);
}

/* ---- making it ---- */

pl_code st_shard_file_write(void *ctx, pl_store *store, const pl_workflow *wf, pl_arena *mem, pl_error *err)
{
    const st_shard_file *f = ctx;
    pl_packed blocks[ST_MERGE_KINDS];
    const char *lacks = st_merge_lacks(store, wf, mem);
    const char *shard = pl_sprintf(mem, "%d/%d", (int)f->shard.k, (int)f->shard.n);
    int n = st_merge_read_blocks(blocks, wf, store, mem);

    if (shard == NULL)
        return pl_fail(err, PL_ENOMEM, "a shard");
    if (lacks != NULL) /* --until is refused before, so all stages are done */
        return pl_fail(err, PL_EBUG, "%s is not written: %s", f->path, lacks);
    pl_fault("shard", "file");
    return pl_store_pack(store, f->path, shard, blocks, n, mem, err);
}
