/* stages/steps/ingest/label_text.h - texts that stand where a label has a number. */
#ifndef ST_LABEL_TEXT_H
#define ST_LABEL_TEXT_H

/* A text where a number is expected. */
typedef enum st_label_text {
    ST_TEXT_COMMA, /* "1,5"                                   */
    ST_TEXT_LIMIT, /* ">10", "<= 5": censored, not measured   */
    ST_TEXT_TWICE, /* two texts, of a record of SDF with two fields of one name */
    ST_TEXT_OTHER,
    ST_TEXTS
} st_label_text;

st_label_text st_label_text_of(const char *text);

#endif
