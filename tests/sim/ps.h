/* SPDX-License-Identifier: Apache-2.0
 * Jobs with parameter servers: what servers hold, and what a chief knows of them. */
#ifndef CADRE_SIM_PS_H
#define CADRE_SIM_PS_H

#include "common/model/agent_message.h"
#include "worker/library/ps/server/backup_record.h"

struct sim;
struct process;

/* What a parameter server holds. */
struct memory {
    uint64_t nonce;
    uint64_t generation; /* number */
    uint64_t applied;    /* steps that were pushed */
    bool whole;
};

/* What the server before this one has told it. */
struct copy {
    uint64_t from; /* incarnation; of older ones nothing is taken */
    uint64_t nonce;
    uint64_t generation;
    uint64_t applied;
    bool whole;
};

struct server {
    uint32_t memory;
    bool serves;
    struct backup_record backup_record;
    struct copy copy;
};

/* Memory that outlives processes on a host. */
struct kept {
    uint32_t job;
    uint32_t slot;
    uint64_t last; /* incarnation; 0: free */
    uint32_t memory;
};

/* What a chief knows of a server. */
struct known_memory {
    uint64_t nonce;
    uint64_t answered; /* steps */
};

bool ps_is_ps_task(const struct sim *sim, const struct process *process);
void ps_prepared(struct sim *sim, uint32_t process, uint64_t predecessor);
/* Its host keeps no memory any more; of `job` 0: of any. */
void ps_forget(struct sim *sim, uint32_t agent, struct job_id job);
void ps_on_members(struct sim *sim, uint32_t process, const struct task_members *members);
void ps_tick(struct sim *sim, uint32_t process);
/* Whether all servers have answered for the step; else it is asked again, or has ended. */
bool ps_push(struct sim *sim, uint32_t process);

#endif
