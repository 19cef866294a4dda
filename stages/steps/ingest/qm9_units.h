/* stages/steps/ingest/qm9_units.h - units of the QM9 properties, as in the original files
 * (Ramakrishnan, Dral, Rupp, von Lilienfeld, Sci. Data 1, 140022 (2014), table 3). */
#ifndef ST_QM9_UNITS_H
#define ST_QM9_UNITS_H

/* NULL when it is not a QM9 property. Valid only for records of QM9, as names such as "A" are ambiguous elsewhere. */
const char *st_qm9_unit(const char *name);

#endif
