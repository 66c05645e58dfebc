/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/received_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "coordinator/daemon/contents/recent_outputs.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"

cadre_status received_content_put(const struct daemon *daemon, const struct sha256 *hash, int fd,
    const char *temporary, const char *target, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(daemon->objects, hash->bytes);
    struct stat facts;
    CADRE_TRY(objects_put_file(daemon->objects, path, fd, error));
    if (fstat(fd, &facts) == 0 && rename(temporary, target) == 0) { /* else it is fetched */
        object_cache_came(daemon->object_cache, (uint64_t)facts.st_size);
    }
    return CADRE_OK;
}

static cadre_status look_before(const struct daemon *daemon, const char *path,
    uint64_t *ret_replaced, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    struct cadre_error why = {0};
    *ret_replaced = 0;
    if (daemon->quota == NULL) {
        return CADRE_OK;
    }
    cadre_status status = objects_look(daemon->objects, path, &object, &why);
    if (status == CADRE_OK) {
        *ret_replaced = storage_info_of(object)->bytes;
        storage_close(object);
    } else if (status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

/* It has bytes or refers to a file, and what it was before may be the other one, which goes first.
 */
cadre_status received_output_put(const struct daemon *daemon, const struct received_output *output,
    uint64_t *ret_replaced, struct cadre_error *error)
{
    struct objects *objects = daemon->objects;
    const char *name = output->name;
    CADRE_FREE_AT_EXIT char *path =
        name != NULL ? object_name_of_output(objects, output->job, name) : NULL;
    CADRE_FREE_AT_EXIT char *reference =
        name != NULL ? object_name_of_reference(objects, output->job, name) : NULL;
    if (output->kept != NULL) {
        CADRE_TRY(artifacts_check_link(
            output->kept, output->checkpoint, output->refers_bytes, output->name, error));
    }
    CADRE_TRY(look_before(daemon, path, ret_replaced, error));
    CADRE_TRY(objects_remove(objects, output->kept != NULL ? path : reference, error));
    struct stat facts = {0};
    bool is_reference = output->kept != NULL;
    CADRE_TRY(is_reference ? objects_put(objects, reference, "", 0, error)
                           : objects_put_file(objects, path, output->fd, error));
    (void)(is_reference || fstat(output->fd, &facts));
    recent_outputs_note(
        daemon->recent_outputs, output->job, name, (uint64_t)facts.st_size, is_reference);
    return CADRE_OK;
}
