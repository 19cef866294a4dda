/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "stages/files/own_files.h"

static const char *folder_of(const char *path, pl_arena *mem)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return ".";
    return slash == path ? "/" : pl_strndup(mem, path, (size_t)(slash - path));
}

/* /dev/null, a pipe, a terminal: a file beside it that takes its name would replace the device itself. */
static bool is_stream(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 && (S_ISCHR(at.st_mode) || S_ISFIFO(at.st_mode) || S_ISSOCK(at.st_mode));
}

static pl_code open_fd(st_out *out, const char *path, int fd, pl_error *err)
{
    const char *mode = pl_ends_with(path, ".gz") ? "wb6" : "wbT"; /* "T": zlib writes the bytes as they are */

    out->file = fd < 0 ? NULL : gzdopen(fd, mode);
    if (out->file != NULL)
        return PL_OK;
    if (fd >= 0)
        (void)close(fd);
    return errno ? pl_fail_errno(err, out->stream ? path : out->tmp) : pl_fail(err, PL_ENOMEM, "%s: no memory to write it", path);
}

pl_code st_out_check(const char *output, const char *input, pl_error *err)
{
    struct stat in, out;

    if (output == NULL || stat(input, &in) != 0 || stat(output, &out) != 0)
        return PL_OK;
    return pl_stat_is_same(&in, &out) && S_ISREG(in.st_mode)
               ? pl_fail(err, PL_ECONFIG, "--output %s is the file that is read; choose another name", output)
               : PL_OK;
}

pl_code st_out_check_stdout(const char *input, pl_error *err)
{
    struct stat in, out;

    if (stat(input, &in) != 0 || fstat(STDOUT_FILENO, &out) != 0)
        return PL_OK;
    return pl_stat_is_same(&in, &out) && S_ISREG(in.st_mode)
               ? pl_fail(err, PL_ECONFIG, "%s: standard output is the file that is read; write to another file", input)
               : PL_OK;
}

pl_code st_out_guard(const char *path, pl_error *err)
{
    if (st_is_database(path))
        return pl_fail(err, PL_ECONFIG, "%s is a database and is not replaced; choose another name", path);
    if (st_is_beside_results(path))
        return pl_fail(err, PL_ECONFIG, "%s is a file of the run itself; choose another name", path);
    return PL_OK;
}

pl_code st_out_open(st_out *out, const char *path, pl_arena *mem, pl_error *err)
{
    const char *folder = folder_of(path, mem);
    pl_code code;

    *out = (st_out){ .path = pl_strdup(mem, path), .tmp = pl_sprintf(mem, "%s.tmp", path), .stream = is_stream(path) };
    if (folder == NULL || out->path == NULL || out->tmp == NULL)
        return pl_fail(err, PL_ENOMEM, "%s: no memory to write it", path);
    errno = 0;
    if (out->stream)
        return open_fd(out, path, open(path, O_WRONLY | O_CLOEXEC), err);
    if (st_is_model(path))
        return pl_fail(err, PL_ECONFIG, "%s is a model and is not replaced; choose another name", path);
    code = st_out_guard(path, err);
    if (code == PL_OK)
        code = pl_mkdirs(folder, err);
    if (code != PL_OK)
        return code;
    errno = 0;
    return open_fd(out, path, open(out->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666), err);
}

static pl_code fail_write(st_out *out, pl_error *err)
{
    return errno ? pl_fail_errno(err, out->path) : pl_fail(err, PL_EIO, "%s: cannot be written", out->path);
}

pl_code st_out_add(st_out *out, const pl_text *text, pl_error *err)
{
    if (!pl_text_ok(text))
        return pl_fail(err, PL_ENOMEM, "%s: no memory for a row", out->path);
    errno = 0;
    if (text->len > 0 && gzwrite(out->file, text->s, (unsigned)text->len) != (int)text->len)
        return fail_write(out, err);
    return PL_OK;
}

static pl_code sync_path(const char *path, int flags, pl_error *err)
{
    int fd = open(path, flags | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0, saved = errno;

    if (fd >= 0)
        (void)close(fd);
    errno = saved;
    return failed ? pl_fail_errno(err, path) : PL_OK;
}

pl_code st_out_keep(st_out *out, pl_error *err)
{
    gzFile file = out->file;
    pl_code code;

    out->file = NULL;
    errno = 0;
    if (gzclose(file) != Z_OK) {
        code = fail_write(out, err);
        if (!out->stream)
            (void)unlink(out->tmp);
        return code;
    }
    if (out->stream)
        return PL_OK;
    code = sync_path(out->tmp, O_RDONLY, err);
    if (code == PL_OK && rename(out->tmp, out->path) != 0)
        code = pl_fail_errno(err, out->path);
    if (code != PL_OK)
        (void)unlink(out->tmp);
    else
        code = pl_file_sync_name(out->path, err);
    return code;
}

void st_out_close(st_out *out)
{
    if (out->file == NULL)
        return;
    (void)gzclose(out->file);
    if (!out->stream)
        (void)unlink(out->tmp);
    out->file = NULL;
}
