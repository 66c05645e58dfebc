/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/local/checkpoints.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/checkpoint/choose.h"
#include "common/checkpoint/named.h"
#include "common/pure/object_path.h"
#include "common/storage/storage.h"

struct known_checkpoint {
    struct known_checkpoint *next;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    char *path;
};

static cadre_status open_objects(
    struct local_checkpoints *checkpoints, const char *folder, struct cadre_error *error)
{
    size_t length = strlen(folder);
    while (folder[length - 1] == '/') {
        length--;
    }
    checkpoints->folder = strndup(folder, length);
    return checkpoints->folder != NULL ? CADRE_OK
                                       : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                             "no memory for the checkpoint folder");
}

cadre_status local_checkpoints_open(
    struct local_checkpoints *checkpoints, const char *folder, struct cadre_error *error)
{
    *checkpoints = (struct local_checkpoints){0};
    if (folder == NULL) {
        return CADRE_OK;
    }
    const char *fault = object_folder_fault(folder);
    if (fault != NULL) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "the checkpoint folder '%.200s' %s", folder, fault);
    }
    if (object_path_is(folder)) {
        return open_objects(checkpoints, folder, error);
    }
    CADRE_TRY(folder_make_durable(folder, 0755, error));
    checkpoints->folder = realpath(folder, NULL);
    return checkpoints->folder != NULL
               ? CADRE_OK
               : cadre_error_errno(error, errno, "cannot find the checkpoint folder %s", folder);
}

void local_checkpoints_close(struct local_checkpoints *checkpoints)
{
    while (checkpoints->known != NULL) {
        struct known_checkpoint *next = checkpoints->known->next;
        free(checkpoints->known->path);
        free(checkpoints->known);
        checkpoints->known = next;
    }
    free(checkpoints->folder);
    *checkpoints = (struct local_checkpoints){0};
}

/* Takes `path` over; NULL: no memory. */
static cadre_status add_path(struct local_checkpoints *checkpoints,
    const uint8_t sha256[LIMIT_SHA256_BYTES], char *path, struct cadre_error *error)
{
    struct known_checkpoint *known = calloc(1, sizeof *known);
    if (known == NULL || path == NULL) {
        free(known);
        free(path);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to record a checkpoint");
    }
    known->path = path;
    memcpy(known->sha256, sha256, sizeof known->sha256);
    known->next = checkpoints->known;
    checkpoints->known = known;
    return CADRE_OK;
}

cadre_status local_checkpoints_add(struct local_checkpoints *checkpoints,
    const uint8_t sha256[LIMIT_SHA256_BYTES], const char *folder, const char *name,
    struct cadre_error *error)
{
    return add_path(checkpoints, sha256, storage_join(folder, name), error);
}

cadre_status local_checkpoints_find(const struct local_checkpoints *checkpoints,
    const struct checkpoint_ref *checkpoint, char **ret_path, struct cadre_error *error)
{
    const struct known_checkpoint *known = checkpoints->known;
    while (known != NULL &&
           memcmp(known->sha256, checkpoint->manifest_sha256, sizeof known->sha256) != 0) {
        known = known->next;
    }
    int length = -1;
    if (known != NULL) {
        length = asprintf(ret_path, "%s", known->path);
    } else if (checkpoint->shared && checkpoints->folder != NULL) {
        length = asprintf(ret_path, "%s/%s", checkpoints->folder, checkpoint->path);
    } else {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "the checkpoint of step %" PRIu64 " is not on this machine", checkpoint->position);
    }
    if (length < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another task");
    }
    return CADRE_OK;
}

static cadre_status read_named(struct local_checkpoints *checkpoints, const char *path,
    struct core_checkpoint *ret_checkpoint, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *absolute =
        storage_is_object(path) ? strdup(path) : realpath(path, NULL);
    CADRE_CLEANUP(checkpoint_named_free) struct checkpoint_named named = {0};
    if (absolute == NULL) {
        return cadre_error_errno(error, errno, "cannot read the checkpoint %s", path);
    }
    cadre_status status = checkpoint_named_read(NULL, absolute, &named, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status, "cannot go on");
    }
    CADRE_TRY(status);
    CADRE_TRY(checkpoint_named_check_size(NULL, &named, error)); /* before any task starts */
    *ret_checkpoint = (struct core_checkpoint){
        .position = named.content.position, .manifest_bytes = named.text_bytes};
    memcpy(ret_checkpoint->manifest_sha256, named.sha256, sizeof named.sha256);
    snprintf(ret_checkpoint->path, sizeof ret_checkpoint->path, "%s", strrchr(absolute, '/') + 1);
    return add_path(checkpoints, named.sha256, strdup(absolute), error);
}

cadre_status local_checkpoints_read(struct local_checkpoints *checkpoints, const char *path,
    struct core_checkpoint *ret_checkpoint, struct cadre_error *error)
{
    cadre_status status = read_named(checkpoints, path, ret_checkpoint, error);
    return status == CADRE_OK ? CADRE_OK : checkpoint_suggest_other(path, error);
}
