/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/root_marks.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/storage/storage.h"

#define DEADLINE_US (5 * CADRE_US_PER_S)

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
}

static cadre_status open_client(struct storage_client **ret_client, struct cadre_error *error)
{
    const struct storage_options options = {.deadline_us = DEADLINE_US};
    return storage_client_open(&options, ret_client, error);
}

static size_t length_of(const char *root)
{
    size_t length = strlen(root);
    while (length > 1 && root[length - 1] == '/') {
        length--;
    }
    return length;
}

bool root_is_same(const char *a, const char *b)
{
    return length_of(a) == length_of(b) && strncmp(a, b, length_of(a)) == 0;
}

cadre_status root_mark_read(
    const char *root, const char *name, char ret_text[ROOT_TEXT_BYTES], struct cadre_error *error)
{
    struct storage_client *client = NULL;
    CADRE_FREE_AT_EXIT char *path = storage_join(root, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    struct cadre_error why = {0};
    size_t size = 0;
    ret_text[0] = '\0';
    if (path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(open_client(&client, error));
    cadre_status status = storage_get(client, path, ROOT_TEXT_BYTES - 1, &text, &size, &why);
    storage_client_close(client);
    if (status == CADRE_OK) {
        snprintf(ret_text, ROOT_TEXT_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
    } else if (status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

cadre_status root_mark_write(
    const char *root, const char *name, const char *text, struct cadre_error *error)
{
    struct storage_client *client = NULL;
    CADRE_FREE_AT_EXIT char *path = storage_join(root, name);
    CADRE_FREE_AT_EXIT char *record = NULL;
    int length = asprintf(&record, "%s\n", text);
    if (length < 0) {
        record = NULL;
    }
    if (path == NULL || record == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(open_client(&client, error));
    cadre_status status = storage_put(client, path, record, (size_t)length, error);
    storage_client_close(client);
    return status;
}

cadre_status root_mark_remove(const char *root, const char *name, struct cadre_error *error)
{
    struct storage_client *client = NULL;
    CADRE_FREE_AT_EXIT char *path = storage_join(root, name);
    if (path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(open_client(&client, error));
    cadre_status status = storage_remove(client, path, error);
    storage_client_close(client);
    return status;
}

cadre_status root_marks_check(const char *root, struct cadre_error *error)
{
    char other[ROOT_TEXT_BYTES];
    CADRE_TRY(root_mark_read(root, ROOT_MARK_MOVING, other, error));
    if (other[0] != '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the contents in %.200s are not whole, because the copy of %.200s to it was not "
            "finished: run cadre-coordinator with --copy-contents %.200s once more",
            root, other, other);
    }
    CADRE_TRY(root_mark_read(root, ROOT_MARK_MOVED, other, error));
    if (other[0] != '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the contents in %.200s were copied to %.200s, where they count since: start with "
            "--contents %.200s; if those of here are to count again, remove "
            "%.200s/" ROOT_MARK_MOVED,
            root, other, other, root);
    }
    return CADRE_OK;
}
