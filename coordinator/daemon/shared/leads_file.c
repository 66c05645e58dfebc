/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/leads_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

#define TEXT_BYTES 64

static char *path_of(const char *state_dir)
{
    char *path = NULL;
    return asprintf(&path, "%s/leads", state_dir) >= 0 ? path : NULL;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
}

cadre_status leads_file_write(
    const char *state_dir, struct log_nonce nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(state_dir);
    char text[TEXT_BYTES];
    int length =
        snprintf(text, sizeof text, "%016" PRIx64 " %016" PRIx64 "\n", nonce.high, nonce.low);
    return path != NULL ? file_write_atomic(path, text, (size_t)length, 0600, error)
                        : no_memory(error);
}

cadre_status leads_file_read(
    const char *state_dir, bool *ret_leads, struct log_nonce *ret_nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(state_dir);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    *ret_leads = false;
    if (path == NULL) {
        return no_memory(error);
    }
    if (access(path, F_OK) != 0) {
        return CADRE_OK;
    }
    CADRE_TRY(file_read(path, TEXT_BYTES, &text, &size, error));
    if (sscanf(text, "%16" SCNx64 " %16" SCNx64, &ret_nonce->high, &ret_nonce->low) != 2) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s holds no nonce: remove it, and another coordinator leads after --ha-lease", path);
    }
    *ret_leads = true;
    return CADRE_OK;
}

void leads_file_remove(const char *state_dir)
{
    CADRE_FREE_AT_EXIT char *path = path_of(state_dir);
    if (path != NULL) {
        (void)unlink(path);
    }
}
