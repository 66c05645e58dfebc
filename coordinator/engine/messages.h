/* SPDX-License-Identifier: Apache-2.0
 * Actions into messages, with the content of the core's views at the time of sending; the fan-out
 * of a plan or release, one message for each worker daemon. Pure, as far as the callbacks are: the
 * simulator's coordinator sends with it. */
#ifndef CADRE_COORDINATOR_ENGINE_MESSAGES_H
#define CADRE_COORDINATOR_ENGINE_MESSAGES_H

#include "common/base/error.h"
#include "coordinator/core/core.h"

#define MESSAGES_WHOLE_MAX 16384 /* 128 tasks on as many hosts: about 0.7 MB */

/* The source of contents, and the receiver of messages. */
struct sender {
    const struct core *core;
    uint64_t lease_us;
    uint64_t grace_us;
    struct term term;
    void *user;
    /* The message is borrowed for the call. */
    void (*down)(void *user, struct link_id link, const struct agent_down *down);
    const struct job_spec *(*spec)(void *user, struct job_id job); /* NULL: no such job */
    void (*key)(void *user, struct job_id job, struct generation generation,
        uint8_t ret_key[LIMIT_JOB_KEY_BYTES]);
    /* What the job's tasks have of each other. NULL, or returned: not kept, and lists are whole. */
    struct members_sent *(*members)(void *user, struct job_id job);
    void (*starts)(void *user, struct job_id job, uint32_t slot); /* before a start is sent */
    /* Plans with more entries than this, to all daemons together, are sent in parts; 0:
     * MESSAGES_WHOLE_MAX. */
    uint32_t whole_max;
};

/* All messages to workers; nothing for actions that are answered, refused or recorded.
 * RESOURCE_EXHAUSTED: there was no memory for one, whose receiver would wait for ever. */
cadre_status messages_dispatch(
    const struct sender *sender, const struct core_action *action, struct cadre_error *error);

/* PLAN, RELEASE, ABORT or BYE, to all members of the generation or to one of them. */
struct fanout {
    struct agent_down down;
    struct roster_entry *roster; /* of a plan: all members, by rank */
    char (*addresses)[LIMIT_ADDRESS_BYTES];
    struct roster_split *split; /* messages_plan.c; NULL: the roster is sent whole */
    bool outdated; /* the job ended, or a newer generation was made, in the same turn */
};

/* Whether the action is one of those. */
bool messages_fan_out_job(const struct core_action *action);
/* Fills the fanout; without memory for a plan RESOURCE_EXHAUSTED. Freed by messages_free. */
cadre_status messages_make(const struct sender *sender, const struct core_action *action,
    struct fanout *ret_fanout, struct cadre_error *error);
/* Sends one message to each link that has such a member. */
void messages_fan_out(
    const struct sender *sender, const struct core_action *action, struct fanout *fanout);
/* Accepts a zeroed one. */
void messages_free(struct fanout *fanout);

/* messages_ps_job.c: MEMBERS, and the byes of tasks that are in no roster. */
cadre_status messages_send_ps_job(
    const struct sender *sender, const struct core_action *action, struct cadre_error *error);

/* Sends through sender->down. */
void messages_send(const struct sender *sender, struct link_id link, const struct agent_down *down);

#endif
