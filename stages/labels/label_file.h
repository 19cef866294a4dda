/* stages/labels/label_file.h - measured values of molecules of a screen, from a table: whose they are, and what is wrong with them.
 *
 * A row names its molecule by InChIKey, title (identifier) or SMILES, which is prepared as the library was. All that it has of these must
 * mean the same molecule. All problems are found before anything is stored. */
#ifndef ST_LABEL_FILE_H
#define ST_LABEL_FILE_H

#include "chem/records/relation.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"

typedef struct st_label_ask {
    const char *path, *format; /* format NULL: found out                                                  */
    const char *property;      /* the label; NULL: the only property of the database that is a column     */
    const char *column;        /* NULL: as the property                                                    */
    const char *unit;          /* of the column; NULL: not said                                            */
    double factor;             /* a value times this is the label; 0: not said                             */
    bool is_class;             /* of a property that is made                                               */
    bool make, replace;        /* make: the property may be unknown; replace: other values are overwritten */
} st_label_ask;

/* A label to store. */
typedef struct st_label_row {
    const char *inchikey, *property; /* as in st_measured; property: also that of a limit */
    int64_t mol_id, line;
    double value;
    bool known; /* the database has it */
} st_label_row;

typedef struct st_label_file {
    const char *path, *property, *unit, *column;
    const char *stated;                   /* the unit as only tables state it; "": none          */
    const char *unread;                   /* a file of the library that could not be compared with it; NULL: none */
    ch_units units;                       /* that it states                                      */
    bool is_class, exists;                /* exists: the database has the property               */
    int64_t n_rows, n_empty, n_limits;    /* n_limits: that give no label                        */
    int64_t n_twice, n_known, n_replaced; /* twice: rows with a value that an earlier row has    */
    st_label_row *row;                    /* [n]                                                 */
    int64_t n, cap, round;                /* round: the one they belong to                       */
    int64_t n_problems;
    pl_text problems; /* "measured.csv:3: ..\n", of the first PROBLEMS_MAX */
} st_label_file;

/* Reads and judges the file; texts are in mem. ECONFIG: which column or property is meant cannot be told, with what there is. */
pl_code st_label_file_read(st_label_file *out, const st_label_ask *ask, pl_store *s, pl_arena *mem, pl_error *err);
/* Stores what is new, in one transaction. Only without problems. */
pl_code st_label_file_store(const st_label_file *f, pl_store *s, pl_error *err);
void st_label_file_free(st_label_file *f); /* zeroed is fine */

#endif
