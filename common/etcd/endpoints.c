/* SPDX-License-Identifier: Apache-2.0
 * What the calls and watches of a client share: which endpoint is the present one, the cluster's
 * id, and when the client's memory ends. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/etcd/etcd_state.h"
#include "common/pure/assert.h"

void etcd_ref(struct etcd *etcd)
{
    CADRE_ASSERT(etcd->users > 0);
    etcd->users++;
}

void etcd_unref(struct etcd *etcd)
{
    CADRE_ASSERT(etcd->users > 0);
    if (--etcd->users > 0) {
        return;
    }
    wire_arena_free(etcd->scratch);
    wire_arena_free(etcd->arena);
    explicit_bzero(etcd->password, sizeof etcd->password);
    free(etcd->token);
    free(etcd);
}

size_t etcd_endpoint(const struct etcd *etcd)
{
    return etcd->present;
}

void etcd_leave(struct etcd *etcd, size_t endpoint)
{
    etcd->checked[endpoint] = false;
    if (etcd->present == endpoint && etcd->address.endpoint_count > 1) {
        etcd->present = (endpoint + 1) % etcd->address.endpoint_count;
        if (etcd->on_leave != NULL) {
            etcd->on_leave(etcd, endpoint);
        }
    }
}

cadre_status etcd_check_cluster(
    struct etcd *etcd, size_t endpoint, uint64_t cluster_id, struct cadre_error *error)
{
    if (etcd->cluster_id == 0) {
        etcd->cluster_id = cluster_id;
        etcd->cluster_of = etcd->address.endpoints[endpoint];
    }
    if (etcd->cluster_id == cluster_id) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "it is of the etcd cluster %016" PRIx64 ", but %s is of %016" PRIx64
        ": name the members of one cluster; one that was made again or restored has a new id",
        cluster_id, etcd->cluster_of, etcd->cluster_id);
}
