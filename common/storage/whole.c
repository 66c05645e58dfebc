/* SPDX-License-Identifier: Apache-2.0
 * A small object as a whole. */
#include <stdlib.h>

#include "common/pure/object_path.h"
#include "common/storage/storage.h"

static cadre_status read_whole(const struct storage_object *object, size_t limit, char **ret_bytes,
    size_t *ret_size, struct cadre_error *error)
{
    uint64_t size = storage_info_of(object)->bytes;
    const char *path = storage_path_of(object);
    if (size > limit) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%.*s has %llu bytes; at most %zu are read", (int)object_url_shown(path), path,
            (unsigned long long)size, limit);
    }
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %llu bytes of %.*s", (unsigned long long)size,
            (int)object_url_shown(path), path);
    }
    cadre_status status =
        size == 0 ? CADRE_OK : storage_read(object, 0, bytes, (size_t)size, error);
    if (status != CADRE_OK) {
        free(bytes);
        return status;
    }
    bytes[size] = '\0';
    *ret_bytes = bytes;
    *ret_size = (size_t)size;
    return CADRE_OK;
}

cadre_status storage_get(struct storage_client *client, const char *path, size_t limit,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    CADRE_TRY(storage_open(client, path, &object, error));
    cadre_status status = read_whole(object, limit, ret_bytes, ret_size, error);
    storage_close(object);
    return status;
}
