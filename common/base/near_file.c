/* SPDX-License-Identifier: Apache-2.0
 * Which file a user meant by a path that does not exist. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/near_miss.h"

#define ENTRIES_MAX 10000 /* of a folder: no more are looked at */

static bool near_file_fits(int folder_fd, const char *name, bool executable)
{
    struct stat status;
    return fstatat(folder_fd, name, &status, 0) == 0 &&
           (!executable || (S_ISREG(status.st_mode) && faccessat(folder_fd, name, X_OK, 0) == 0));
}

bool near_miss_file(const char *path, bool executable, char ret_path[NEAR_MISS_PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    int lead = slash != NULL ? (int)(slash + 1 - path) : 0;
    char folder[NEAR_MISS_PATH_BYTES];
    struct near_miss search;
    ret_path[0] = '\0';
    if (lead >= NEAR_MISS_PATH_BYTES) {
        return false;
    }
    snprintf(folder, sizeof folder, "%.*s", lead, path);
    DIR *entries = opendir(lead > 0 ? folder : ".");
    if (entries == NULL) {
        return false;
    }
    near_miss_begin(&search, path + lead);
    const struct dirent *entry = readdir(entries);
    for (int seen = 0; entry != NULL && seen < ENTRIES_MAX; seen++, entry = readdir(entries)) {
        if (entry->d_name[0] != '.' && near_file_fits(dirfd(entries), entry->d_name, executable)) {
            near_miss_offer(&search, entry->d_name);
        }
    }
    closedir(entries);
    int length = snprintf(ret_path, NEAR_MISS_PATH_BYTES, "%s%s",
        lead > 0     ? folder
        : executable ? "./"
                     : "",
        search.best);
    return search.best[0] != '\0' && length < NEAR_MISS_PATH_BYTES;
}
