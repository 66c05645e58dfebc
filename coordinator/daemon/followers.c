/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/followers.h"

#include "coordinator/daemon/daemon.h"

void followers_job_changed(struct daemon *daemon, struct job_id job)
{
    for (struct follower *follower = daemon->followers; follower != NULL;
         follower = follower->next) {
        follower->dirty = follower->dirty || follower->request.id.n == job.n;
    }
}

bool follower_wants(const struct follower *follower, uint32_t slot)
{
    return slot < follower->tasks &&
           (!follower->request.one_slot || follower->request.slot == slot);
}

void followers_written(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    for (struct follower *follower = daemon->followers; follower != NULL;
         follower = follower->next) {
        if (follower->request.id.n == job.n && follower->request.follow &&
            follower_wants(follower, slot)) {
            follower->fresh[slot] = true;
            follower->dirty = true;
        }
    }
}
