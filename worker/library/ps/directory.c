/* SPDX-License-Identifier: Apache-2.0
 * See directory.h. Called by ps_job/ of the runtime (updates) and by links, clients and servers
 * (lookups). */
#include "worker/library/ps/directory.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/thread.h"
#include "common/base/clock.h"

#define WHO_BYTES 32

struct directory {
    struct directory_self self;
    uint32_t tasks;
    pthread_mutex_t lock; /* over all that follows */
    pthread_cond_t changed;
    bool updated;
    struct generation generation;
    uint64_t number; /* of the list that `members` is */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    struct directory_member *members; /* [tasks], by slot */
    uint64_t updates;
    struct cadre_error ended; /* code not OK once `over`; CANCELLED: in order */
    bool over;
};

static void forget_members(struct directory *directory)
{
    const struct ps_job *ps_job = &directory->self.ps_job;
    for (uint32_t slot = 0; slot < directory->tasks; slot++) {
        enum role role = ps_job_role(ps_job, slot);
        directory->members[slot] = (struct directory_member){
            .slot = slot, .role = role, .index = slot - ps_job_first_slot(ps_job, role)};
    }
}

cadre_status directory_new(
    const struct directory_self *self, struct directory **ret_directory, struct cadre_error *error)
{
    *ret_directory = NULL;
    struct directory *directory = calloc(1, sizeof *directory);
    uint64_t tasks = ps_job_task_count(&self->ps_job);
    struct directory_member *members = calloc(tasks, sizeof *members);
    if (directory == NULL || members == NULL) {
        free(directory);
        free(members);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a directory of %" PRIu64 " tasks", tasks);
    }
    directory->self = *self;
    directory->tasks = (uint32_t)tasks;
    directory->members = members;
    forget_members(directory);
    pthread_mutex_init(&directory->lock, NULL);
    pthread_cond_init(&directory->changed, NULL);
    *ret_directory = directory;
    return CADRE_OK;
}

void directory_free(struct directory *directory)
{
    if (directory != NULL) {
        pthread_cond_destroy(&directory->changed);
        pthread_mutex_destroy(&directory->lock);
        explicit_bzero(directory->key, sizeof directory->key);
        free(directory->members);
        free(directory);
    }
}

const struct directory_self *directory_self(const struct directory *directory)
{
    return &directory->self;
}

/* --- updates from the coordinator --- */

static void keep_member(struct directory *directory, const struct task_member *entry)
{
    if (entry->slot >= directory->tasks) {
        return;
    }
    struct directory_member *member = &directory->members[entry->slot];
    member->incarnation = entry->incarnation;
    member->attempts = entry->attempts;
    member->here = entry->here;
    member->backed = entry->backed;
    snprintf(member->address, sizeof member->address, "%s",
        entry->address == NULL ? "" : entry->address);
}

/* Whether the message continues what is here: changes only of the list before them. */
static bool continues(const struct directory *directory, const struct task_members *members)
{
    if (members->changes) {
        return directory->updated && generation_equal(members->generation, directory->generation) &&
               members->number == directory->number + 1;
    }
    return !directory->updated || members->generation.number >= directory->generation.number;
}

void directory_update(struct directory *directory, const struct task_members *members)
{
    pthread_mutex_lock(&directory->lock);
    if (continues(directory, members)) {
        directory->updated = true;
        directory->generation = members->generation;
        directory->number = members->number;
        memcpy(directory->key, members->key, sizeof directory->key);
        if (!members->changes) {
            forget_members(directory);
        }
        for (size_t i = 0; i < members->member_count; i++) {
            keep_member(directory, &members->members[i]);
        }
        directory->updates++;
        pthread_cond_broadcast(&directory->changed);
    }
    pthread_mutex_unlock(&directory->lock);
}

void directory_end(struct directory *directory, const struct cadre_error *error)
{
    pthread_mutex_lock(&directory->lock);
    if (!directory->over) {
        directory->over = true;
        directory->ended = *error;
        pthread_cond_broadcast(&directory->changed);
    }
    pthread_mutex_unlock(&directory->lock);
}

/* --- lookups --- */

/* The caller holds the lock. */
static cadre_status ps_directory_ended(const struct directory *directory, struct cadre_error *error)
{
    return directory->over
               ? cadre_error_set(error, directory->ended.code, "%s", directory->ended.text)
               : CADRE_OK;
}

cadre_status directory_ended(struct directory *directory, struct cadre_error *error)
{
    pthread_mutex_lock(&directory->lock);
    cadre_status status = ps_directory_ended(directory, error);
    pthread_mutex_unlock(&directory->lock);
    return status;
}

static uint64_t deadline_of(uint64_t wait_timeout_us)
{
    uint64_t now_us = clock_monotonic_us();
    return wait_timeout_us > CADRE_TIME_NEVER - now_us ? CADRE_TIME_NEVER
                                                       : now_us + wait_timeout_us;
}

/* The caller holds the lock. False: it is past the deadline. */
static bool wait_until(struct directory *directory, uint64_t until_us)
{
    if (until_us == CADRE_TIME_NEVER) {
        pthread_cond_wait(&directory->changed, &directory->lock);
        return true;
    }
    if (clock_monotonic_us() >= until_us) {
        return false;
    }
    (void)thread_wait_until(&directory->changed, &directory->lock, until_us);
    return true;
}

cadre_status directory_await_key(struct directory *directory, uint64_t wait_timeout_us,
    struct generation *ret_generation, uint8_t ret_key[LIMIT_JOB_KEY_BYTES],
    struct cadre_error *error)
{
    uint64_t until_us = deadline_of(wait_timeout_us);
    pthread_mutex_lock(&directory->lock);
    cadre_status status;
    while ((status = ps_directory_ended(directory, error)) == CADRE_OK && !directory->updated) {
        if (!wait_until(directory, until_us)) {
            status = cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "the coordinator sent no list of tasks within %.1f s; did the chief start?",
                (double)wait_timeout_us / CADRE_US_PER_S);
            break;
        }
    }
    if (status == CADRE_OK) {
        *ret_generation = directory->generation;
        memcpy(ret_key, directory->key, sizeof directory->key);
    }
    pthread_mutex_unlock(&directory->lock);
    return status;
}

void directory_lookup(struct directory *directory, enum role role, uint32_t index,
    struct directory_member *ret_member)
{
    pthread_mutex_lock(&directory->lock);
    *ret_member = directory->members[ps_job_first_slot(&directory->self.ps_job, role) + index];
    pthread_mutex_unlock(&directory->lock);
}

/* "ps 1", "the chief" */
static void name_member(enum role role, uint32_t index, char ret_who[WHO_BYTES])
{
    if (role == ROLE_CHIEF || role == ROLE_EVALUATOR) {
        snprintf(ret_who, WHO_BYTES, "the %s", role_name(role));
    } else {
        snprintf(ret_who, WHO_BYTES, "%s %" PRIu32, role_name(role), index);
    }
}

/* The caller holds the lock. */
static cadre_status ps_directory_missing(const struct directory *directory, enum role role,
    uint32_t index, uint64_t wait_timeout_us, struct cadre_error *error)
{
    char who[WHO_BYTES];
    const struct directory_member *member =
        &directory->members[ps_job_first_slot(&directory->self.ps_job, role) + index];
    name_member(role, index, who);
    return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED, "%s was not there within %.1f s%s", who,
        (double)wait_timeout_us / CADRE_US_PER_S,
        member->attempts > 1   ? ": it was lost, and did not come back"
        : member->attempts > 0 ? ": it was started, and did not come, or was lost"
                               : ": the coordinator has not started it");
}

cadre_status directory_await(struct directory *directory, enum role role, uint32_t index,
    uint64_t least, uint64_t wait_timeout_us, struct directory_member *ret_member,
    struct cadre_error *error)
{
    uint64_t until_us = deadline_of(wait_timeout_us);
    pthread_mutex_lock(&directory->lock);
    const struct directory_member *member =
        &directory->members[ps_job_first_slot(&directory->self.ps_job, role) + index];
    cadre_status status;
    while ((status = ps_directory_ended(directory, error)) == CADRE_OK &&
           (!member->here || member->incarnation < least)) {
        if (!wait_until(directory, until_us)) {
            status = ps_directory_missing(directory, role, index, wait_timeout_us, error);
            break;
        }
    }
    if (status == CADRE_OK) {
        *ret_member = *member;
    }
    pthread_mutex_unlock(&directory->lock);
    return status;
}

uint64_t directory_await_change(
    struct directory *directory, uint64_t seen, uint64_t wait_timeout_us)
{
    uint64_t until_us = deadline_of(wait_timeout_us);
    pthread_mutex_lock(&directory->lock);
    while (!directory->over && directory->updates <= seen && wait_until(directory, until_us)) {
    }
    uint64_t updates = directory->updates;
    pthread_mutex_unlock(&directory->lock);
    return updates;
}
