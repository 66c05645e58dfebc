/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a ps job with their addresses, as last sent by the coordinator: a task looks up
 * another one here before it connects. The session's thread writes it, all threads read it; every
 * function may be called by any thread. */
#ifndef CADRE_PS_DIRECTORY_H
#define CADRE_PS_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/ps_job.h"
#include "common/model/task_message.h"

struct directory;

/* This task. */
struct directory_self {
    struct ps_job ps_job;
    uint32_t slot;
    uint64_t incarnation;
};

struct directory_member {
    uint32_t slot;
    enum role role;
    uint32_t index; /* among the tasks of its role */
    uint64_t incarnation;
    uint32_t attempts; /* how often the slot was started in this generation: 1 is its first start */
    bool here;         /* it listens at `address`; else it was lost or has not come yet */
    char address[LIMIT_ADDRESS_BYTES];
    struct task_backed backed; /* of a server: whose copy of its variables may be taken, as
                                * recorded */
};

/* A directory without members. RESOURCE_EXHAUSTED. */
cadre_status directory_new(
    const struct directory_self *self, struct directory **ret_directory, struct cadre_error *error);
/* No thread may use it any more. NULL is allowed. */
void directory_free(struct directory *directory);

/* The identity that directory_new was given. */
const struct directory_self *directory_self(const struct directory *directory);

/* The coordinator's message: the whole list of one generation, or what differs from the list before
 * it. A list of an older generation is ignored, and so are changes of a list that is not here, and
 * entries of slots that are out of range. */
void directory_update(struct directory *directory, const struct task_members *members);

/* The job is over for this task: all waits return this error from now on. The first call counts.
 * CADRE_CANCELLED: in order, the chief is done. */
void directory_end(struct directory *directory, const struct cadre_error *error);
/* The error of directory_end; CADRE_OK: it was not called. */
cadre_status directory_ended(struct directory *directory, struct cadre_error *error);

/* Waits for the coordinator's first message: the key and the number of this generation. */
cadre_status directory_await_key(struct directory *directory, uint64_t wait_timeout_us,
    struct generation *ret_generation, uint8_t ret_key[LIMIT_JOB_KEY_BYTES],
    struct cadre_error *error);

/* The member as last sent; `here` is false when there is no entry. index < ps_job_role_count of the
 * role. */
void directory_lookup(struct directory *directory, enum role role, uint32_t index,
    struct directory_member *ret_member);

/* Waits until the member is here in incarnation `least` or a newer one. DEADLINE_EXCEEDED names it
 * and how long it was waited for; else the error of directory_end. */
cadre_status directory_await(struct directory *directory, enum role role, uint32_t index,
    uint64_t least, uint64_t wait_timeout_us, struct directory_member *ret_member,
    struct cadre_error *error);

/* Waits until there were more than `seen` updates, the directory ended, or the time is over;
 * returns the number of updates. */
uint64_t directory_await_change(
    struct directory *directory, uint64_t seen, uint64_t wait_timeout_us);

#endif
