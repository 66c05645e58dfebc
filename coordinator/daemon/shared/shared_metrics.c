/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/shared_metrics.h"

#include "common/base/clock.h"
#include "coordinator/daemon/shared/shared_ledger.h"

static double seconds_to_send(const struct daemon *daemon)
{
    uint64_t until_us = atomic_load(&daemon->leading.until_us);
    uint64_t now_us = clock_boot_us();
    return until_us > now_us ? (double)(until_us - now_us) / CADRE_US_PER_S : 0;
}

void shared_metrics_show(struct daemon *daemon, struct exposition *out)
{
    bool leads = daemon->engine != NULL && shared_ledger_may_send(daemon);
    exposition_one_count(out, "cadre_coordinator_leads", EXPOSITION_GAUGE,
        "1 while this coordinator leads and may send, else 0; of all of a cluster one leads.",
        leads ? 1 : 0);
    struct replica_view view = {.failure = ""};
    if (daemon->shared != NULL) { /* else all of it is 0, and alerts find it */
        shared_ledger_show(daemon, &view);
    }
    exposition_one_count(out, "cadre_coordinator_term", EXPOSITION_GAUGE,
        "Number of the newest leadership that this coordinator knows.", view.core.leader.term);
    exposition_one_count(out, "cadre_coordinator_log_applied_index", EXPOSITION_GAUGE,
        "Newest entry of the shared log that is in this coordinator's copy of the ledger.",
        view.applied);
    exposition_one_count(out, "cadre_coordinator_log_head_index", EXPOSITION_GAUGE,
        "Newest entry of the shared log that this coordinator knows.", view.core.head.index);
    exposition_one(out, "cadre_coordinator_time_to_send_seconds", EXPOSITION_GAUGE,
        "How long this coordinator may still send if etcd does not answer; 0: it does not lead, or "
        "leads alone.",
        seconds_to_send(daemon));
    exposition_one_count(out, "cadre_coordinator_etcd_failures_total", EXPOSITION_COUNTER,
        "Requests to etcd that failed or had no answer in time.", view.failures);
    exposition_one_count(out, "cadre_coordinator_etcd_failing", EXPOSITION_GAUGE,
        "1 when the newest request to etcd failed, else 0.", view.failure[0] != '\0' ? 1 : 0);
    exposition_one_count(out, "cadre_coordinator_etcd_no_space", EXPOSITION_GAUGE,
        "1 while etcd refuses writes because its database is full (NOSPACE), else 0.",
        view.core.no_space ? 1 : 0);
    exposition_one_count(out, "cadre_coordinator_refused", EXPOSITION_GAUGE,
        "1 when this coordinator neither leads nor follows, until people have looked, else 0.",
        view.core.state == LEADERSHIP_REFUSED ? 1 : 0);
}
