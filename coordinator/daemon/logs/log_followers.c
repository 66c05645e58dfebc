/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/logs/log_followers.h"

#include "coordinator/daemon/base/daemon.h"

void log_followers_job_changed(struct daemon *daemon, struct job_id job)
{
    for (struct log_follower *log_follower = daemon->log_followers; log_follower != NULL;
         log_follower = log_follower->next) {
        log_follower->dirty = log_follower->dirty || log_follower->request.id.n == job.n;
    }
}

bool log_follower_wants(const struct log_follower *log_follower, uint32_t slot)
{
    return slot < log_follower->tasks &&
           (!log_follower->request.one_slot || log_follower->request.slot == slot);
}

void log_followers_written(struct daemon *daemon, struct job_id job, uint32_t slot)
{
    for (struct log_follower *log_follower = daemon->log_followers; log_follower != NULL;
         log_follower = log_follower->next) {
        if (log_follower->request.id.n == job.n && log_follower->request.follow &&
            log_follower_wants(log_follower, slot)) {
            log_follower->has_more[slot] = true;
            log_follower->dirty = true;
        }
    }
}
