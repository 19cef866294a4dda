/* pipeline/store/pages.h - every page of results.db has a checksum, which is verified whenever the page is read.
 *
 * PL_PAGES_VFS is a VFS (the file layer of SQLite) on top of SQLite's default one. If a database reserves PL_PAGE_SUM
 * bytes at the end of each page, this VFS stores there a hash of the rest of the page and of the page number when the page
 * is written, and compares it when the page is read. Any SQLite can read such a file. A file without reserved bytes is
 * read and written as usual.
 *
 * Other programs that write to the file leave an old checksum, or none. If a checksum differs, the judge therefore
 * checks the whole content of the database. If that is intact, the pages are accepted, and pl_pages_renew gives them
 * new checksums. Otherwise the read fails with SQLITE_IOERR_DATA. */
#ifndef PL_PAGES_H
#define PL_PAGES_H

#include <sqlite3.h>
#include <stdbool.h>

#include "pipeline/base/error.h"

#define PL_PAGES_VFS "molsieve"

enum { PL_PAGE_SUM = 8 };

#ifndef SQLITE_IOERR_DATA /* SQLite before 3.33 does not define these two */
#define SQLITE_IOERR_DATA (SQLITE_IOERR | (32 << 8))
#endif
#ifndef SQLITE_FCNTL_RESERVE_BYTES
#define SQLITE_FCNTL_RESERVE_BYTES 38
#endif

enum { PL_PAGES_WHY = 512 }; /* bytes of a message */

/* Whether the content of a database is intact, even if another program wrote some of its pages. False: why says the file, what
 * is wrong and what to do. */
typedef bool pl_pages_judge(const char *path, char why[PL_PAGES_WHY]);

/* Registers the VFS; call it before the first open. Later calls do nothing. */
pl_code pl_pages_start(pl_pages_judge *judge, pl_error *err);
/* The message about the database that was found damaged last, on any connection; "" if none was. With a db only if it was
 * that database. */
void pl_pages_why(sqlite3 *db, char out[PL_PAGES_WHY]);
/* For one of our databases, open for writing: from now on, pages that other programs wrote get new checksums. */
void pl_pages_renew(sqlite3 *db);
/* Reserves room for checksums; for a database without tables, or before a VACUUM. */
void pl_pages_reserve(sqlite3 *db);

#endif
