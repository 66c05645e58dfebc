/* SPDX-License-Identifier: Apache-2.0
 * The order of work on buffers that a replica reaches itself: as many as one post has room for at a
 * time. The kinds of collective call it. */
#include "worker/library/mesh/collectives/collective.h"

cadre_status mesh_reach_run(
    struct replica *replica, const struct call *call, reach_work *work, reach_work *finish)
{
    struct group *group = &replica->host->group;
    size_t count = (size_t)call->shape.count;
    for (size_t first = 0; first < count; first += GROUP_SPANS_MAX) {
        size_t window = count - first < GROUP_SPANS_MAX ? count - first : GROUP_SPANS_MAX;
        if (first > 0) {
            struct group_post *own = &group->slots[replica->slot].posts[replica->sequence & 1];
            (void)mesh_reach_post(replica, call, own, first);
            CADRE_TRY(mesh_step(replica, call));
        }
        if (!group_touch_begin(group, replica->slot)) {
            return mesh_broken(replica);
        }
        cadre_status status = work(replica, call, first, window);
        group_touch_end(group, replica->slot);
        CADRE_TRY(status);
        CADRE_TRY(mesh_step(replica, call));
        if (finish != NULL) {
            CADRE_TRY(finish(replica, call, first, window));
        }
    }
    return CADRE_OK;
}
