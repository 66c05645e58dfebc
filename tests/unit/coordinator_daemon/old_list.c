/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_daemon/old_list.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

#define LISTED_MAX 256

/* The linker's names: of the function that tests replace, and of what replaces it. */
cadre_status __real_objects_list(struct objects *objects, const char *folder, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error);
cadre_status __wrap_objects_list(struct objects *objects, const char *folder, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error);

static struct {
    bool stopped;
    size_t count;
    char *paths[LISTED_MAX];
    struct storage_info infos[LISTED_MAX];
} listed;

cadre_status __wrap_objects_list(struct objects *objects, const char *folder, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    if (!listed.stopped) {
        return __real_objects_list(objects, folder, deep, each, user, error);
    }
    for (size_t i = 0; i < listed.count; i++) {
        const struct storage_entry entry = {.path = listed.paths[i], .info = listed.infos[i]};
        size_t length = strlen(folder);
        if (strncmp(entry.path, folder, length) == 0 && entry.path[length] == '/' &&
            !each(user, &entry)) {
            break;
        }
    }
    return CADRE_OK;
}

static bool note_listed(void *user, const struct storage_entry *entry)
{
    (void)user;
    assert_true(listed.count < LISTED_MAX);
    listed.paths[listed.count] = strdup(entry->path);
    listed.infos[listed.count++] = entry->info;
    return true;
}

void lists_stop(struct objects *objects, const char *root)
{
    struct cadre_error error = {0};
    lists_go_on();
    assert_ok(__real_objects_list(objects, root, true, note_listed, NULL, &error), &error);
    listed.stopped = true;
}

void lists_go_on(void)
{
    for (size_t i = 0; i < listed.count; i++) {
        free(listed.paths[i]);
    }
    listed.count = 0;
    listed.stopped = false;
}
