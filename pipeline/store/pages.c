/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/store/pages.h"

#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/hash.h"

enum {
    HEADER = 100,
    SIZE_AT = 16,
    RESERVED_AT = 20
}; /* SQLite's file format: bytes of the header; offsets of page size and reserved bytes */

/* Our data of an open file. It follows the file object of the VFS below in the same allocation, pages.at bytes in. */
typedef struct page_file {
    sqlite3_io_methods methods; /* those of below, except read and write */
    const sqlite3_io_methods *below;
    const char *path;
    int page;        /* bytes of a page; 0: not known yet    */
    bool sums, ours; /* pages have room for checksums; pl_pages_renew was called */
    bool excused;    /* the content was found intact: compare no checksums */
} page_file;

static struct {
    sqlite3_vfs vfs, *below;
    pl_pages_judge *judge;
    size_t at;              /* offset of page_file in a file object, bytes */
    char why[PL_PAGES_WHY]; /* of the last judge that found damage */
    char of[PATH_MAX];      /* the database that this is about */
    pthread_mutex_t lock;
} pages = { .lock = PTHREAD_MUTEX_INITIALIZER };

static page_file *page_file_of(sqlite3_file *file) { return (page_file *)((char *)file + pages.at); }

/* ---- checksums of pages ---- */

static uint64_t sum_of(const unsigned char *page, int n, sqlite3_int64 at)
{
    return pl_hash64(page, (size_t)n - PL_PAGE_SUM, (uint64_t)(at / n) + 1);
}

static bool holds(const unsigned char *page, int n, sqlite3_int64 at)
{
    uint64_t sum = sum_of(page, n, at);
    return memcmp(page + n - PL_PAGE_SUM, &sum, PL_PAGE_SUM) == 0;
}

static bool is_page(const page_file *p, int n, sqlite3_int64 at) { return n == p->page && at % n == 0; }

/* Takes page size and reserved bytes from the header of the file. */
static void read_header(page_file *p, const unsigned char *head)
{
    int size = head[SIZE_AT] << 8 | head[SIZE_AT + 1];

    if (memcmp(head, "SQLite format 3", 16) != 0)
        return;
    p->page = size == 1 ? 65536 : size;
    p->sums = head[RESERVED_AT] == PL_PAGE_SUM && p->page >= 512;
}

/* Whether the first page has a valid checksum although its header says that there are none: then that byte is damaged. */
static bool hides_sums(const page_file *p, unsigned char *page, int n, sqlite3_int64 at)
{
    unsigned char said = page[RESERVED_AT];
    bool hides;

    if (at != 0 || p->sums || !is_page(p, n, at))
        return false;
    page[RESERVED_AT] = PL_PAGE_SUM;
    hides = holds(page, n, at);
    page[RESERVED_AT] = said;
    return hides;
}

/* Writes new checksums where they differ. If a page is changed at the same time, its checksum will differ and be judged again. */
static void renew(sqlite3_file *file, page_file *p)
{
    sqlite3_int64 size = 0;
    unsigned char *page = malloc((size_t)p->page);
    int rc = page != NULL ? p->below->xFileSize(file, &size) : SQLITE_NOMEM;

    for (sqlite3_int64 at = 0; rc == SQLITE_OK && at + p->page <= size; at += p->page) {
        uint64_t sum;
        rc = p->below->xRead(file, page, p->page, at);
        if (rc != SQLITE_OK || holds(page, p->page, at))
            continue;
        sum = sum_of(page, p->page, at);
        rc = p->below->xWrite(file, &sum, PL_PAGE_SUM, at + p->page - PL_PAGE_SUM);
    }
    free(page);
    p->excused = rc != SQLITE_OK;
}

/* Keeps the message about a damaged database. */
static void keep_why(const page_file *p, const char why[PL_PAGES_WHY])
{
    (void)pthread_mutex_lock(&pages.lock);
    memcpy(pages.why, why, PL_PAGES_WHY);
    (void)snprintf(pages.of, sizeof pages.of, "%s", p->path);
    (void)pthread_mutex_unlock(&pages.lock);
}

/* Whether the content is intact; keeps the message if it is not. */
static bool is_intact(const page_file *p)
{
    char why[PL_PAGES_WHY] = "";
    bool intact = pages.judge(p->path, why);

    if (!intact)
        keep_why(p, why);
    return intact;
}

/* The byte in the first page that says whether there are checksums is wrong; all else may be intact. */
static int fail_hidden(const page_file *p)
{
    char why[PL_PAGES_WHY] = "";

    if (is_intact(p)) {
        (void)snprintf(why, sizeof why, "%.400s: damaged in its first page; put back a copy, or run with --fresh", p->path);
        keep_why(p, why);
    }
    return SQLITE_IOERR_DATA;
}

void pl_pages_why(sqlite3 *db, char out[PL_PAGES_WHY])
{
    const char *path = db != NULL ? sqlite3_db_filename(db, "main") : NULL;

    out[0] = '\0';
    (void)pthread_mutex_lock(&pages.lock);
    if (db == NULL || (path != NULL && strcmp(path, pages.of) == 0))
        memcpy(out, pages.why, PL_PAGES_WHY);
    (void)pthread_mutex_unlock(&pages.lock);
}

static int judge_page(sqlite3_file *file, page_file *p)
{
    if (!is_intact(p))
        return SQLITE_IOERR_DATA;
    p->excused = true;
    if (p->ours)
        renew(file, p);
    return SQLITE_OK;
}

/* ---- the VFS ---- */

static int read_some(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    page_file *p = page_file_of(file);
    int rc = p->below->xRead(file, to, n, at);

    if (rc != SQLITE_OK)
        return rc;
    if (at == 0 && n >= HEADER)
        read_header(p, to);
    if (hides_sums(p, to, n, at))
        return fail_hidden(p);
    if (!p->sums || p->excused || !is_page(p, n, at) || holds(to, n, at))
        return SQLITE_OK;
    return judge_page(file, p);
}

/* SQLite does not use the reserved bytes, so the checksum is written into SQLite's own buffer. */
static int write_some(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    page_file *p = page_file_of(file);
    uint64_t sum;

    if (at == 0 && n >= HEADER)
        read_header(p, from);
    if (p->sums && is_page(p, n, at)) {
        sum = sum_of(from, n, at);
        memcpy((char *)from + n - PL_PAGE_SUM, &sum, PL_PAGE_SUM);
    }
    return p->below->xWrite(file, from, n, at);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
    page_file *p = page_file_of(file);
    int granted = flags, rc = pages.below->xOpen(pages.below, name, file, flags, &granted);

    (void)vfs;
    if (got != NULL)
        *got = granted;
    if (rc != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_DB) == 0)
        return rc;
    *p = (page_file){ .methods = *file->pMethods, .below = file->pMethods, .path = name };
    p->methods.iVersion =
        p->methods.iVersion < 2 ? p->methods.iVersion : 2; /* no memory mapping (version 3): it would bypass read_some */
    p->methods.xRead = read_some;
    p->methods.xWrite = write_some;
    file->pMethods = &p->methods;
    return SQLITE_OK;
}

pl_code pl_pages_start(pl_pages_judge *judge, pl_error *err)
{
    pl_code code = PL_OK;

    (void)pthread_mutex_lock(&pages.lock);
    if (pages.below == NULL) {
        sqlite3_vfs *below = sqlite3_vfs_find(NULL);
        if (below != NULL) {
            pages.vfs = *below;
            pages.at = ((size_t)below->szOsFile + 15) / 16 * 16;
            pages.vfs.szOsFile = (int)(pages.at + sizeof(page_file));
            pages.vfs.zName = PL_PAGES_VFS;
            pages.vfs.xOpen = open_file;
            pages.judge = judge;
        }
        if (below != NULL && sqlite3_vfs_register(&pages.vfs, 0) == SQLITE_OK)
            pages.below = below;
        else
            code = pl_fail(err, PL_EBUG, "SQLite could not register the VFS of the page checksums");
    }
    (void)pthread_mutex_unlock(&pages.lock);
    return code;
}

void pl_pages_renew(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    page_file *p;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (file == NULL)
        return;
    p = page_file_of(file);
    if (file->pMethods != &p->methods) /* a database in memory */
        return;
    p->ours = true;
    if (p->excused)
        renew(file, p);
}

void pl_pages_reserve(sqlite3 *db)
{
    int n = PL_PAGE_SUM;
    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
}
