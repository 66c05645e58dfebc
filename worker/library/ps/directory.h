/* SPDX-License-Identifier: Apache-2.0
 * Who is in the job and where, as the coordinator last said it: what a task of a crew looks up
 * before it connects to another one. Written by whoever hears the coordinator, read by all threads;
 * every function may be called by any thread. */
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
    uint32_t index; /* of its role */
    uint64_t incarnation;
    uint32_t attempts; /* how often the slot was started in this generation: 1 is its first life */
    bool here;         /* it listens at `address`; else it was lost, or has not come yet */
    char address[LIMIT_ADDRESS_BYTES];
    struct task_backed backed; /* of a server: whose copy of its variables counts, as recorded */
};

cadre_status directory_new(
    const struct directory_self *self, struct directory **ret_directory, struct cadre_error *error);
/* Nobody waits any more; NULL is allowed. */
void directory_free(struct directory *directory);

const struct directory_self *directory_self(const struct directory *directory);

/* The coordinator's word: full state, of one generation. An older generation is passed over.
 * Entries of slots that are out of range are too. */
void directory_update(struct directory *directory, const struct task_members *members);

/* The job is over for this task: all that wait return with this error from now on. The first one
 * counts. CADRE_CANCELLED: in order, the chief is done. */
void directory_end(struct directory *directory, const struct cadre_error *error);
/* CADRE_OK: it goes on. */
cadre_status directory_ended(struct directory *directory, struct cadre_error *error);

/* Waits until the coordinator has spoken: the key and the number of this generation. */
cadre_status directory_await_key(struct directory *directory, uint64_t wait_timeout_us,
    struct generation *ret_generation, uint8_t ret_key[LIMIT_JOB_KEY_BYTES],
    struct cadre_error *error);

/* What is known of a member now; `here` false when nothing is. index < ps_job_role_count of the
 * role. */
void directory_lookup(struct directory *directory, enum role role, uint32_t index,
    struct directory_member *ret_member);

/* Waits until the member is here in an incarnation of `least` or later. DEADLINE_EXCEEDED names it
 * and says for how long; else what directory_end was given. */
cadre_status directory_await(struct directory *directory, enum role role, uint32_t index,
    uint64_t least, uint64_t wait_timeout_us, struct directory_member *ret_member,
    struct cadre_error *error);

/* Counts updates. Waits until there were more than `seen`, it ended, or the time is over; returns
 * how many. */
uint64_t directory_await_change(
    struct directory *directory, uint64_t seen, uint64_t wait_timeout_us);

#endif
