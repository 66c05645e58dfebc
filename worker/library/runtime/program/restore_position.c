/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/program/checkpoints.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/checkpoint/choose.h"
#include "common/checkpoint/content.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"

cadre_status restore_position(const char *path, uint64_t *ret_position, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    CADRE_CLEANUP(checkpoint_content_free) struct checkpoint_content content = {0};
    size_t size = 0;
    cadre_status status = storage_get(NULL, path, LIMIT_MANIFEST_BYTES, &text, &size, error);
    if (status == CADRE_OK) {
        status = checkpoint_content_read(text, size, &content, error);
    }
    if (status != CADRE_OK) {
        cadre_error_wrap(error, status,
            "go on from the checkpoint '%s', whose manifest (its .json file) CADRE_RESTORE names",
            path);
        return checkpoint_suggest_other(path, error);
    }
    *ret_position = content.position;
    return CADRE_OK;
}

bool restore_is_folder(const char *path)
{
    return checkpoint_is_folder(path);
}

cadre_status restore_choose(char *path, size_t path_bytes, uint64_t *ret_position,
    char ret_note[LIMIT_TEXT_BYTES], struct cadre_error *error)
{
    CADRE_ASSERT(path_bytes > 0);
    CADRE_ASSERT(path[0] != '\0');
    CADRE_CLEANUP(checkpoint_choice_free) struct checkpoint_choice choice = {0};
    cadre_status status = checkpoint_choose(path, &choice, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "go on from the folder that CADRE_RESTORE names");
    }
    if (strlen(choice.path) >= path_bytes) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the path %.200s... of a checkpoint is over %zu bytes", choice.path, path_bytes - 1);
    }
    memcpy(path, choice.path, strlen(choice.path) + 1);
    memcpy(ret_note, choice.note, LIMIT_TEXT_BYTES);
    *ret_position = choice.position;
    return CADRE_OK;
}
