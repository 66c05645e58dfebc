/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/state/restore_position.h"

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/checkpoint/content.h"

cadre_status restore_position(const char *path, uint64_t *ret_position, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    CADRE_CLEANUP(checkpoint_content_free) struct checkpoint_content content = {0};
    size_t size = 0;
    cadre_status status = file_read(path, LIMIT_MANIFEST_BYTES, &text, &size, error);
    if (status == CADRE_OK) {
        status = checkpoint_content_read(text, size, &content, error);
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status,
            "go on from the checkpoint '%s', whose manifest (its .json file) CADRE_RESTORE names",
            path);
    }
    *ret_position = content.position;
    return CADRE_OK;
}
