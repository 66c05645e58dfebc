/* SPDX-License-Identifier: Apache-2.0
 * A ps job by hand: its workers and servers as threads of the chief's process, with one
 * directory each. chief.c begins and ends it. */
#include "worker/library/runtime/roles/chief.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/ps/server/server.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_worker.h"

static const char host[] = "127.0.0.1";

/* One task that is threads of this program. */
struct local_server {
    struct local_servers *local_servers;
    struct ps_job_state *ps_job;
    struct server *server; /* of a ps */
    pthread_t thread;      /* of a worker */
    bool started;
};

struct local_servers {
    struct ps_job_state *chief;
    uint32_t workers;
    uint32_t servers;
    struct local_server *each; /* [workers + servers], by slot less 1 */
};

/* --- the directories --- */

static cadre_status make_each(struct local_servers *local_servers, struct cadre_error *error)
{
    const struct ps_job *ps_job = &directory_self(local_servers->chief->directory)->ps_job;
    for (uint32_t i = 0; i < local_servers->workers + local_servers->servers; i++) {
        const struct directory_self self = {.ps_job = *ps_job, .slot = i + 1, .incarnation = 1};
        struct local_server *local_server = &local_servers->each[i];
        local_server->local_servers = local_servers;
        CADRE_TRY(ps_job_new(
            &self, i < local_servers->workers ? NULL : host, NULL, &local_server->ps_job, error));
        local_server->ps_job->wait_timeout_us = local_servers->chief->wait_timeout_us;
    }
    return CADRE_OK;
}

static struct task_member member_of(const struct ps_job_state *ps_job)
{
    const struct directory_self *self = directory_self(ps_job->directory);
    return (struct task_member){.slot = self->slot,
        .incarnation = self->incarnation,
        .attempts = 1,
        .here = true,
        .address = ps_job->address};
}

/* Other processes cannot connect, because the key is drawn here and stays in this process. */
static cadre_status send_to_each(struct local_servers *local_servers, struct cadre_error *error)
{
    uint32_t count = local_servers->workers + local_servers->servers;
    struct task_members sent_end = {.generation = {.number = 1}, .member_count = count + 1};
    struct task_member *members = calloc(sent_end.member_count, sizeof *members);
    if (members == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a job with parameter servers");
    }
    if (getrandom(sent_end.key, sizeof sent_end.key, 0) != (ssize_t)sizeof sent_end.key ||
        getrandom(&sent_end.generation.nonce, sizeof sent_end.generation.nonce, 0) !=
            (ssize_t)sizeof sent_end.generation.nonce) {
        free(members);
        return cadre_error_errno(error, errno, "draw the key of the job");
    }
    sent_end.members = members;
    members[0] = member_of(local_servers->chief);
    for (uint32_t i = 0; i < count; i++) {
        members[i + 1] = member_of(local_servers->each[i].ps_job);
    }
    directory_update(local_servers->chief->directory, &sent_end);
    for (uint32_t i = 0; i < count; i++) {
        directory_update(local_servers->each[i].ps_job->directory, &sent_end);
    }
    explicit_bzero(sent_end.key, sizeof sent_end.key);
    free(members);
    return CADRE_OK;
}

static cadre_status start_server(struct local_server *local_server, struct cadre_error *error)
{
    struct ps_job_state *ps_job = local_server->ps_job;
    CADRE_ASSERT(ps_job->role == ROLE_SERVER);
    CADRE_ASSERT(local_server->server == NULL);
    const struct server_options options = {.index = ps_job->index,
        .memory_fd = -1,
        .listener = ps_job->listener,
        .directory = ps_job->directory};
    ps_job->listener = NULL;
    cadre_status status = server_start(&options, &local_server->server, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "start ps %u", ps_job->index);
}

cadre_status local_servers_open(struct ps_job_state *chief, struct cadre_error *error)
{
    CADRE_ASSERT(chief->role == ROLE_CHIEF);
    CADRE_ASSERT(chief->local_servers == NULL);
    const struct ps_job *ps_job = &directory_self(chief->directory)->ps_job;
    struct local_servers *local_servers = calloc(1, sizeof *local_servers);
    struct local_server *each = calloc((size_t)ps_job->workers + ps_job->servers, sizeof *each);
    if (local_servers == NULL || each == NULL) {
        free(local_servers);
        free(each);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a job with parameter servers");
    }
    *local_servers = (struct local_servers){
        .chief = chief, .workers = ps_job->workers, .servers = ps_job->servers, .each = each};
    chief->local_servers = local_servers;
    CADRE_TRY(make_each(local_servers, error));
    CADRE_TRY(send_to_each(local_servers, error));
    for (uint32_t i = 0; i < local_servers->servers; i++) {
        CADRE_TRY(start_server(&local_servers->each[local_servers->workers + i], error));
    }
    return CADRE_OK;
}

/* --- workers --- */

static void *local_servers_work(void *user)
{
    struct local_server *local_server = user;
    CADRE_ASSERT(local_server->ps_job->role == ROLE_WORKER);
    crash_thread("ps job worker", local_server->ps_job->index);
    struct cadre_error error = {0};
    ps_job_enter(local_server->ps_job);
    cadre_status status = ps_job_connect(local_server->ps_job, closure_is_cancelled, &error);
    if (status == CADRE_OK) {
        status = closure_worker_run(local_server->ps_job, &error);
    }
    if (status != CADRE_OK && directory_ended(local_server->ps_job->directory, NULL) == CADRE_OK) {
        cadre_error_wrap(&error, status, "worker %u", local_server->ps_job->index);
        directory_end(local_server->local_servers->chief->directory, &error);
    }
    ps_job_enter(NULL);
    return NULL;
}

cadre_status local_servers_start_workers(
    struct local_servers *local_servers, struct cadre_error *error)
{
    int errnum = 0;
    for (uint32_t i = 0; errnum == 0 && i < local_servers->workers; i++) {
        struct local_server *local_server = &local_servers->each[i];
        errnum = thread_start(&local_server->thread, local_servers_work, local_server);
        local_server->started = errnum == 0;
    }
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum, "start the threads of the workers");
}

/* --- end --- */

static void send_over(struct ps_job_state *ps_job)
{
    const struct cadre_error over = {
        .code = CADRE_CANCELLED, .text = "the job is over: its chief is done"};
    if (ps_job != NULL) {
        directory_end(ps_job->directory, &over);
    }
}

void local_servers_end_workers(struct local_servers *local_servers)
{
    for (uint32_t i = 0; local_servers != NULL && i < local_servers->workers; i++) {
        send_over(local_servers->each[i].ps_job);
    }
    for (uint32_t i = 0; local_servers != NULL && i < local_servers->workers; i++) {
        struct local_server *local_server = &local_servers->each[i];
        if (local_server->started) {
            pthread_join(local_server->thread, NULL);
            local_server->started = false;
        }
        ps_job_free(local_server->ps_job);
        local_server->ps_job = NULL;
    }
}

void local_servers_end_servers(struct local_servers *local_servers)
{
    if (local_servers == NULL) {
        return;
    }
    local_servers_end_workers(local_servers);
    for (uint32_t i = local_servers->workers; i < local_servers->workers + local_servers->servers;
         i++) {
        send_over(local_servers->each[i].ps_job);
        server_stop(local_servers->each[i].server);
        ps_job_free(local_servers->each[i].ps_job);
    }
    free(local_servers->each);
    free(local_servers);
}
