/* SPDX-License-Identifier: Apache-2.0
 * Meshes of some of a job's tasks, on the listener and the addresses of the mesh of all, and with a
 * key made from its key. plain_group.c and plain_pair.c call it. */
#include <string.h>

#include "common/base/clock.h"
#include "worker/library/runtime/plain/plain.h"

cadre_status plain_mesh_post(struct plain *plain, const struct plain_mesh_of *of,
    uint8_t ret_key[MESH_KEY_BYTES], struct mesh **ret_mesh, struct cadre_error *error)
{
    uint64_t timeout_us = plain->environment->collective_timeout_us;
    struct mesh_config config = {
        .generation = plain->roster.generation.number,
        .rank = of->rank,
        .members = of->members,
        .member_count = of->count,
        .numbers = of->numbers,
        .listener = of->count > 1 ? plain->listener : NULL,
        .form_deadline_us = timeout_us > 0 ? clock_monotonic_us() + timeout_us : CADRE_TIME_NEVER,
        .collective_timeout_us = timeout_us,
    };
    mesh_key_derive(of->key, of->which, 3, config.key, &config.nonce);
    memcpy(ret_key, config.key, sizeof config.key);
    CADRE_TRY(mesh_host_ops.form_post(&config, ret_mesh, error));
    task_attach_mesh(plain->task, *ret_mesh);
    return CADRE_OK;
}

void plain_mesh_close(struct plain *plain, struct mesh *mesh)
{
    if (mesh != NULL) {
        task_detach_mesh(plain->task, mesh);
        mesh->ops->close(mesh);
    }
}
