/* SPDX-License-Identifier: Apache-2.0
 * All-gather of sizes that the replicas do not know of each other: the sizes first. Works on any
 * peer. */
#include <inttypes.h>
#include <stdlib.h>

#include "worker/library/mesh/mesh.h"

struct offer {
    uint64_t bytes;
    uint64_t wrong; /* there is no memory behind it */
};

/* Every replica checks the same offers, and finds the same fault in them. */
static cadre_status gather_any_check(const struct offer *offers, uint32_t count, size_t *ret_sizes,
    size_t *ret_total, struct cadre_error *error)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (offers[i].wrong != 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %" PRIu32 " called all_gather with %" PRIu64 " bytes at NULL", i,
                offers[i].bytes);
        }
        if (offers[i].bytes > MESH_GATHER_BYTES_MAX - total) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "replica %" PRIu32 " called all_gather with %" PRIu64 " bytes, on top of %" PRIu64
                " of the others; the limit is %zu",
                i, offers[i].bytes, total, MESH_GATHER_BYTES_MAX);
        }
        ret_sizes[i] = (size_t)offers[i].bytes;
        total += offers[i].bytes;
    }
    *ret_total = (size_t)total;
    return CADRE_OK;
}

cadre_status mesh_gather_any(struct mesh *mesh, uint32_t local_replica, uint32_t replica_count,
    const void *data, size_t bytes, void **ret_data, size_t *ret_sizes, struct cadre_error *error)
{
    const struct mesh_ops *ops = mesh->ops;
    struct offer own = {.bytes = bytes, .wrong = bytes > 0 && data == NULL};
    struct offer *offers = calloc(replica_count, sizeof *offers);
    size_t total = 0;
    void *memory = NULL;
    *ret_data = NULL;
    if (offers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the sizes of %" PRIu32 " replicas", replica_count);
    }
    cadre_status status =
        ops->all_gather(mesh, local_replica, &own, sizeof own, NULL, offers, NULL, error);
    if (status == CADRE_OK) {
        status = gather_any_check(offers, replica_count, ret_sizes, &total, error);
    }
    free(offers);
    CADRE_TRY(status);
    memory = malloc(total + 1);
    if (memory == NULL) {
        /* The others are in the second collective already. */
        ops->abort(mesh, "a replica has no memory for what it gathers");
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu bytes gathered from %" PRIu32 " replicas", total, replica_count);
    }
    status = ops->all_gather(mesh, local_replica, data, bytes, ret_sizes, memory, NULL, error);
    if (status != CADRE_OK) {
        free(memory);
        return status;
    }
    *ret_data = memory;
    return CADRE_OK;
}
