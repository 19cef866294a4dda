/* chem/features/feature_table.h - the descriptors that models learn from, one line each: name, unit (NULL: none), meaning.
 * To add one: a line at its block's end, its computation in chem/features, and CH_FEATURES_VERSION + 1. */
#ifndef CH_FEATURE_TABLE_H
#define CH_FEATURE_TABLE_H

#define CH_FEATURES(X)                                      \
    X(mw, "u", "molecular weight, average isotopic masses") \
    X(n_heavy, NULL, "atoms other than hydrogen")

#endif
