/* pipeline/pages.h - every page of results.db carries a checksum of itself, verified whenever the page is read.
 *
 * PL_PAGES_VFS is SQLite's own access to files and, on top of it: where a database has PL_PAGE_SUM reserved bytes at the
 * end of each page, they get a hash of the rest of the page and its number when the page is written, and are compared
 * when it is read. Any SQLite reads such a file, and one without reserved bytes is read and written as ever.
 *
 * Other programs that write leave the old reserved bytes, or none. A page that does not match is therefore first
 * judged: the judge looks at the contents. If they are right, the page is taken as it is, and pl_pages_renew gives all pages
 * new checksums. If not, the read ends with SQLITE_IOERR_DATA. */
#ifndef PL_PAGES_H
#define PL_PAGES_H

#include <sqlite3.h>
#include <stdbool.h>

#include "pipeline/base/error.h"

#define PL_PAGES_VFS "molsieve"

enum { PL_PAGE_SUM = 8 };

#ifndef SQLITE_IOERR_DATA /* before SQLite 3.33, which neither says the one nor knows the other */
#define SQLITE_IOERR_DATA (SQLITE_IOERR | (32 << 8))
#endif
#ifndef SQLITE_FCNTL_RESERVE_BYTES
#define SQLITE_FCNTL_RESERVE_BYTES 38
#endif

/* Whether the contents of a database are right, whoever wrote its pages. */
typedef bool pl_pages_judge(const char *path);

/* Once, before the first open; later calls do nothing. */
pl_code pl_pages_start(pl_pages_judge *judge, pl_error *err);
/* Of a database that is written, and is ours: pages that other programs wrote get checksums, now and later. */
void pl_pages_renew(sqlite3 *db);
/* A database without tables yet, or before a VACUUM, gets room for checksums. */
void pl_pages_reserve(sqlite3 *db);

#endif
