/* SPDX-License-Identifier: Apache-2.0 */
/* tests/toy_folder.h - a test that works in a folder of its own. Include it after cmocka.h. */
#ifndef TOY_FOLDER_H
#define TOY_FOLDER_H

#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "toy.h"

typedef struct toy_folder {
    char dir[256], back[4096];
} toy_folder;

/* Makes a folder and goes there. */
static inline void toy_enter(toy_folder *f)
{
    assert_non_null(getcwd(f->back, sizeof f->back));
    toy_directory(f->dir);
    assert_int_equal(chdir(f->dir), 0);
}

/* Goes back and removes the folder. */
static inline void toy_leave(const toy_folder *f)
{
    assert_int_equal(chdir(f->back), 0);
    toy_remove(f->dir);
}

static inline void write_text(const char *path, const char *text)
{
    pl_error err = { 0 };

    if (pl_file_write(path, (pl_bytes){ text, strlen(text) }, &err) != PL_OK)
        fail_msg("%s", err.text);
}

#endif
