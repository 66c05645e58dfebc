/* SPDX-License-Identifier: Apache-2.0
 * Jobs with parameter servers: the memory of servers, and a chief's view of it. */
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

/* What the server before this one has copied to it. */
struct copy {
    uint64_t from; /* incarnation; copies of older ones are refused */
    uint64_t nonce;
    uint64_t generation;
    uint64_t applied;
    bool whole;
};

struct server {
    uint32_t memory;
    bool serves;
    struct backup_record backup_record;
    uint64_t known_recorded; /* number of the newest copy that is on record, as it was notified */
    struct copy copy;
};

/* Memory that outlives processes on a host. */
struct kept {
    uint32_t job;
    uint32_t slot;
    uint64_t last; /* incarnation; 0: free */
    uint32_t memory;
};

/* A chief's view of a server's memory. */
struct known_memory {
    uint64_t nonce;
    uint64_t answered; /* steps */
};

/* A task of a ps job other than its chief. */
bool ps_is_ps_task(const struct sim *sim, const struct process *process);
/* Before the task starts: its host's memory of the predecessor, or empty memory. */
void ps_prepared(struct sim *sim, uint32_t process, uint64_t predecessor);
/* Its host keeps no memory any more; `job` 0: of any job. */
void ps_forget(struct sim *sim, uint32_t agent, struct job_id job);
/* New members: the chief begins with the servers, a server with its copy. */
void ps_on_members(struct sim *sim, uint32_t process, const struct task_members *members);
/* A server begins, if it could not before, and sends its statement again until it is recorded. */
void ps_tick(struct sim *sim, uint32_t process);
/* Whether all servers have answered for the step; else it is tried again, or the task has ended. */
bool ps_push(struct sim *sim, uint32_t process);

#endif
