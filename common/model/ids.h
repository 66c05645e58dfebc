/* SPDX-License-Identifier: Apache-2.0
 * Identities. Each is a struct of its own, so that one cannot be passed as another. 0 is "none"
 * everywhere. */
#ifndef CADRE_MODEL_IDS_H
#define CADRE_MODEL_IDS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbered by the coordinator from 1, never used again, durable. */
struct job_id {
    uint64_t n;
};

/* A worker daemon, as the coordinator numbers it at its first hello; bound to (name, boot nonce).
 */
struct worker_id {
    uint64_t n;
};

/* One process of a task. A task is (job, slot); a restarted one has a higher incarnation and no
 * state. */
struct task_ref {
    struct job_id job;
    uint32_t slot;        /* 0..tasks-1 of the job; not the rank */
    uint64_t incarnation; /* from 1, unique within the job */
};

/* One roster with one mesh. A number is never used again with another nonce (protocol rule 30). */
struct generation {
    uint64_t number; /* from 1; 0 is "none yet" */
    uint64_t nonce;
};

static inline bool generation_equal(struct generation a, struct generation b)
{
    return a.number == b.number && a.nonce == b.nonce;
}

static inline bool task_ref_equal(struct task_ref a, struct task_ref b)
{
    return a.job.n == b.job.n && a.slot == b.slot && a.incarnation == b.incarnation;
}

#endif
