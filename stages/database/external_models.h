/* stages/database/external_models.h - how the row of `model` of a program of the user's differs from one of a model file. */
#ifndef ST_EXTERNAL_MODELS_H
#define ST_EXTERNAL_MODELS_H

/* A condition of SQL; table is "" or "m.". Their metadata begin with {"external":true,"property_id":N, */
#define ST_IS_EXTERNAL(table) "substr(" table "metadata_json,1,16)='{\"external\":true'"

/* Whether a program scored the property of which table ("p.") has the id; asks the index for each program, of which there are few. */
#define ST_IS_OF_PROGRAM(table)                                                    \
    "EXISTS(SELECT 1 FROM model o CROSS JOIN prediction x ON x.property_id=" table \
    "property_id AND x.model_id=o.model_id WHERE " ST_IS_EXTERNAL("o.") ")"

/* Whether the row of `property` is that of a program that may not have scored anything yet. */
#define ST_WAITS_FOR_PROGRAM \
    "EXISTS(SELECT 1 FROM model WHERE metadata_json LIKE '{\"external\":true,\"property_id\":'||property_id||',%')"

#endif
