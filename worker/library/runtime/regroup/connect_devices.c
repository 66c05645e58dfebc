/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/connect_devices.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/mesh/mesh_device.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/replica_pool.h"

static uint64_t regroup_connect_devices_offer(
    const cadre_strategy *strategy, const char **ret_reason)
{
    *ret_reason = "";
    return strategy->mesh_devices == NULL
               ? 0
               : mesh_device_offer(strategy->mesh_devices, strategy->local_replicas, ret_reason);
}

void connect_devices_offer(const cadre_strategy *strategy, struct member_status *member_status)
{
    CADRE_ASSERT(member_status->devices == 0);
    const char *reason;
    member_status->devices = regroup_connect_devices_offer(strategy, &reason);
    member_status->flags |= strategy->mesh_devices != NULL ? MEMBER_STATUS_DEVICES : 0;
}

void connect_devices_reason(const cadre_strategy *strategy, char *text, size_t size)
{
    const struct device_summary *summary = &strategy->regroup->device_summary;
    const char *own;
    uint64_t word = regroup_connect_devices_offer(strategy, &own);
    if (strategy->mesh_devices != NULL && word == 0) {
        snprintf(text, size, "%s", own);
    } else if (summary->cannot != UINT32_MAX) {
        snprintf(text, size, "the task of rank %u has no GPU for each of its replicas, or no NCCL",
            summary->cannot);
    } else if (summary->differs != UINT32_MAX) {
        snprintf(text, size, "the task of rank %u has another NCCL than that of rank 0",
            summary->differs);
    } else {
        snprintf(text, size, "%s", mesh_device_reason(strategy->mesh));
    }
}

/* Whether this task prints the reason: the first one does, and one that has devices and is the
 * reason itself. */
static bool connect_devices_explains(const cadre_strategy *strategy)
{
    const char *own;
    uint64_t word = regroup_connect_devices_offer(strategy, &own);
    return strategy->roster.rank == 0 || (strategy->mesh_devices != NULL && word == 0);
}

static void connect_devices_warn(cadre_strategy *strategy)
{
    char reason[CADRE_ERROR_TEXT_BYTES / 2];
    uint64_t generation = strategy->roster.generation.number;
    if (strategy->replica_count == 1 || strategy->regroup->warned_devices == generation + 1) {
        return;
    }
    strategy->regroup->warned_devices = generation + 1;
    if (connect_devices_explains(strategy)) {
        connect_devices_reason(strategy, reason, sizeof reason);
        show_warning("the GPUs of this job are not connected, and sums of tensors on them go "
                     "through the memory of the hosts: %s; give every replica a GPU of its own and "
                     "every task the same NCCL (CADRE_NCCL names the library)",
            reason);
    }
}

/* NCCL forms within seconds; the wait for it is shorter than for a replica. */
#define CONNECT_US (300 * CADRE_US_PER_S)

static cadre_status connect_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    (void)user;
    uint64_t timeout_us = strategy->environment->collective_timeout_us;
    timeout_us = timeout_us == 0 || timeout_us > CONNECT_US ? CONNECT_US : timeout_us;
    return mesh_device_connect(strategy->mesh, local, timeout_us, error);
}

cadre_status connect_devices(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->mesh != NULL);
    strategy->connected = false;
    mesh_device_expect(strategy->mesh, strategy->regroup->device_summary.any);
    if (!strategy->regroup->device_summary.any) {
        return CADRE_OK;
    }
    if (strategy->regroup->device_summary.alike) {
        CADRE_TRY(strategy_each_replica(strategy, connect_on_replica, NULL, error));
        strategy->connected = mesh_device_reason(strategy->mesh)[0] == '\0';
    }
    if (!strategy->connected) {
        connect_devices_warn(strategy);
    }
    return CADRE_OK;
}
