/* SPDX-License-Identifier: Apache-2.0
 * Reads variables from their servers and keeps the shards' versions for pushes. */
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/served/read_versions.h"

cadre_status served_versions(
    const cadre_variable *variable, uint64_t **ret_versions, struct cadre_error *error)
{
    size_t shards = (size_t)variable->served->layout.shards;
    CADRE_ASSERT(shards > 0);
    *ret_versions = malloc(shards * sizeof **ret_versions);
    if (*ret_versions == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the versions of variable '%s'", variable->name);
    }
    for (size_t i = 0; i < shards; i++) {
        (*ret_versions)[i] = READ_VERSION_NONE;
    }
    return CADRE_OK;
}

cadre_status served_read(const cadre_variable *variable, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint64_t *versions = NULL;
    const struct served *served = variable->served;
    struct request like = {.kind = REQUEST_PULL, .into = into, .min_steps = step};
    if (rows->ids == NULL && rows->count == 0 && served->layout.rows > 0) {
        return CADRE_OK; /* an empty slice */
    }
    if (served->part.variable != NULL) {
        return served_slot_read(variable, rows, step, into, error);
    }
    CADRE_TRY(served_versions(variable, &versions, error));
    if (rows->ids == NULL) {
        const struct row_range range = {.first = rows->first, .rows = rows->count};
        CADRE_TRY(served_call_range(variable, range, &like, NULL, versions, error));
    } else {
        const struct row_list list = {.ids = rows->ids, .count = (size_t)rows->count};
        like.kind = REQUEST_GATHER;
        CADRE_TRY(served_call_rows(variable, list, &like, NULL, versions, error));
    }
    read_versions_record(served->views, ps_job_closure(), versions);
    return CADRE_OK;
}
