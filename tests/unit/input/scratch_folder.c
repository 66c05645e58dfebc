/* SPDX-License-Identifier: Apache-2.0
 * A folder for a test's files; see scratch_folder.h. */
#include "tests/unit/input/scratch_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/input/cmocka_unit.h"

static char folder[256];

int scratch_setup(void **state)
{
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cadre-input-XXXXXX", parent != NULL ? parent : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

int scratch_teardown(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return -1;
    }
    struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    return rmdir(folder);
}

const char *scratch_path(const char *name)
{
    static char paths[8][512];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *scratch_write(const char *name, const void *bytes, size_t size)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}
