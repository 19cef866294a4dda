/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/own_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>


/* ---- one name ---- */

/* One more part of a path: "." is none, ".." takes one away. False: too long. */
static bool add_part(char *out, const char *part, size_t n)
{
    size_t len = strlen(out);
    char *slash = strrchr(out, '/');

    if (n == 0 || (n == 1 && part[0] == '.'))
        return true;
    if (n == 2 && part[0] == '.' && part[1] == '.') {
        *(slash != NULL ? slash : out) = '\0';
        return true;
    }
    if (len + n + 2 > PATH_MAX)
        return false;
    out[len] = '/';
    memcpy(out + len + 1, part, n);
    out[len + 1 + n] = '\0';
    return true;
}

/* The longest existing part of the path by its canonical name, the rest appended as written. */
bool st_path_canonical(char *out, const char *path)
{
    char head[PATH_MAX], there[PATH_MAX];
    size_t n = (size_t)snprintf(head, sizeof head, "%s%s", path[0] == '/' ? "" : "./", path);
    const size_t n_added = path[0] == '/' ? 0 : 2;
    const char *rest;
    bool fits = n < sizeof head;

    while (fits && realpath(head, there) == NULL) {
        while (n > 0 && head[n - 1] == '/')
            n--;
        while (n > 0 && head[n - 1] != '/')
            n--;
        head[n] = '\0';
        if (n == 0)
            return false;
    }
    (void)snprintf(out, PATH_MAX, "%s", fits && strcmp(there, "/") != 0 ? there : "");
    rest = path + (n > n_added ? n - n_added : 0);
    while (fits && *rest != '\0') {
        size_t len = strcspn(rest, "/");
        fits = add_part(out, rest, len);
        rest += len + (rest[len] == '/');
    }
    return fits;
}

/* ---- names of the run ---- */

static bool begins(const char *text, const char *with) { return strncasecmp(text, with, strlen(with)) == 0; }

/* The folder of a path, "" for /; the file's name follows it. */
static const char *split(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL)
        return path;
    *slash = '\0';
    return slash + 1;
}

/* results.db, results.db-wal, results.db.format5, results.db.lock, results.previous.db, results.merging.db-wal */
static bool is_of_database(const char *folder, const char *name, const char *database)
{
    static const char *const copies[] = { ".previous.db", ".merging.db" };
    char own[PATH_MAX], stem[PATH_MAX];
    const char *base;
    size_t n;

    if (!st_path_canonical(own, database))
        return false;
    base = split(own);
    if (strcmp(own, folder) != 0)
        return false;
    if (begins(name, base))
        return true;
    n = strlen(base);
    n = n > 3 && strcmp(base + n - 3, ".db") == 0 ? n - 3 : n;
    for (int i = 0; i < 2; i++) {
        (void)snprintf(stem, sizeof stem, "%.*s%s", (int)n, base, copies[i]);
        if (begins(name, stem))
            return true;
    }
    return false;
}

static bool is_of_workdir(const char *path, const char *workdir)
{
    static const char *const files[] = { ".lock", ".reserve", "heartbeat.json", "ranks-" };
    static const char *const folders[] = { "models/", "checkpoints/", "shards/" };
    char own[PATH_MAX];
    size_t n;

    if (!st_path_canonical(own, workdir))
        return false;
    n = strlen(own);
    if (strncmp(path, own, n) != 0 || path[n] != '/')
        return false;
    path += n + 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strchr(path, '/') == NULL && begins(path, files[i]))
            return true;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (begins(path, folders[i]))
            return true;
    return false;
}

bool st_is_own(const pl_workflow *wf, const char *path)
{
    char full[PATH_MAX], folder[PATH_MAX];
    const char *name;

    if (!st_path_canonical(full, path))
        return false;
    (void)snprintf(folder, sizeof folder, "%s", full);
    name = split(folder);
    return is_of_workdir(full, wf->workdir) || is_of_database(folder, name, wf->storage.results) ||
           is_of_database(folder, name, wf->storage.features);
}

static bool head_read(char head[16], const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && read(fd, head, 16) == 16;

    if (fd >= 0)
        (void)close(fd);
    return good;
}

bool st_is_database(const char *path)
{
    char head[16];

    return head_read(head, path) && memcmp(head, "SQLite format 3", 16) == 0;
}

/* Safetensors begin with the length of a JSON object, in eight bytes; its upper four are zero, and no text has such bytes. */
bool st_is_model(const char *path)
{
    char head[16];

    return head_read(head, path) && memcmp(head + 4, "\0\0\0\0{", 5) == 0;
}

bool st_is_beside_results(const char *path)
{
    char folder[PATH_MAX], results[PATH_MAX], features[PATH_MAX + 16];
    pl_workflow beside = { .workdir = folder };

    if (!st_path_canonical(folder, path))
        return false;
    (void)split(folder);
    if (snprintf(results, sizeof results, "%s/results.db", folder) >= (int)sizeof results || !st_is_database(results))
        return false;
    (void)snprintf(features, sizeof features, "%s/features.db", folder);
    beside.storage.results = results;
    beside.storage.features = features;
    return st_is_own(&beside, path);
}
