/* SPDX-License-Identifier: Apache-2.0
 * A task of a ps job: makes and ends its session, directory, listener and client. Called by the
 * runtime's roles/ and lifecycle/. */
#include "worker/library/runtime/ps_job/ps_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/ps_job/ps_task.h"
#include "worker/library/runtime/ps_job/closure_numbers.h"
#include "worker/library/runtime/program/program.h"

#define LOST_SERVER_WAIT_S 120

static struct ps_job_state *_Atomic process_ps_job;
static _Thread_local struct ps_job_state *thread_ps_job;

struct ps_job_state *ps_job_current(void)
{
    return thread_ps_job != NULL ? thread_ps_job : atomic_load(&process_ps_job);
}

void ps_job_enter(struct ps_job_state *ps_job)
{
    thread_ps_job = ps_job;
}

void ps_job_set_current(struct ps_job_state *ps_job)
{
    atomic_store(&process_ps_job, ps_job);
}

/* --- beginning --- */

static cadre_status ps_job_ps_job_fill(struct ps_job_state *ps_job,
    const struct directory_self *self, const char *host, const struct port_range *ports,
    struct cadre_error *error)
{
    CADRE_TRY(directory_new(self, &ps_job->directory, error));
    if (ps_job->role == ROLE_CHIEF) {
        CADRE_TRY(closure_numbers_new(&ps_job->numbers, error));
    }
    return host == NULL
               ? CADRE_OK
               : link_listener_open(host, ports, &ps_job->listener, ps_job->address, error);
}

cadre_status ps_job_new(const struct directory_self *self, const char *host,
    const struct port_range *ports, struct ps_job_state **ret_ps_job, struct cadre_error *error)
{
    CADRE_ASSERT(self->slot < ps_job_task_count(&self->ps_job));
    struct ps_job_state *ps_job = calloc(1, sizeof *ps_job);
    *ret_ps_job = NULL;
    if (ps_job == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a ps job");
    }
    ps_job->role = ps_job_role(&self->ps_job, self->slot);
    ps_job->index = self->slot - ps_job_first_slot(&self->ps_job, ps_job->role);
    ps_job->wait_timeout_us = LOST_SERVER_WAIT_S * CADRE_US_PER_S;
    cadre_status status = ps_job_ps_job_fill(ps_job, self, host, ports, error);
    if (status != CADRE_OK) {
        ps_job_free(ps_job);
        return status;
    }
    *ret_ps_job = ps_job;
    return CADRE_OK;
}

/* A program of a TF_CONFIG cluster is one task for all its time; it cannot take another one's
 * position. */
static cadre_status check_pointer(
    const struct environment *environment, uint32_t slot, struct cadre_error *error)
{
    const struct ps_job *ps_job = &environment->ps_job;
    if (environment->role == ROLE_NONE ||
        slot == ps_job_first_slot(ps_job, environment->role) + environment->index) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_ABORTED,
        "%s %" PRIu32 " came back while %s %" PRIu32
        " was awaited, whose place it was given; start both again, the latter first",
        role_name(environment->role), environment->index, role_name(ps_job_role(ps_job, slot)),
        slot - ps_job_first_slot(ps_job, ps_job_role(ps_job, slot)));
}

cadre_status ps_job_begin(struct ps_job_state **ret_ps_job, struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    CADRE_ASSERT(environment != NULL); /* cadre_init was called before */
    struct session *session;
    bool listens = environment->role != ROLE_WORKER && environment->role != ROLE_EVALUATOR;
    *ret_ps_job = NULL;
    CADRE_TRY(program_take_session(&session, error));
    const struct directory_self self = {
        .ps_job = environment->ps_job, .slot = session->slot, .incarnation = session->incarnation};
    cadre_status status = check_pointer(environment, session->slot, error);
    if (status == CADRE_OK) {
        bool alone = environment->role == ROLE_NONE; /* the servers are threads of this process */
        const char *host = alone ? "127.0.0.1" : environment->mesh_host;
        status = ps_job_new(&self, listens ? host : NULL, alone ? NULL : &environment->mesh_ports,
            ret_ps_job, error);
    }
    if (status != CADRE_OK) {
        session->ops->close(session);
        return status;
    }
    (*ret_ps_job)->session = session;
    return CADRE_OK;
}

cadre_status ps_job_connect(
    struct ps_job_state *ps_job, bool (*unwanted)(void), struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->client == NULL);
    CADRE_ASSERT(unwanted != NULL);
    const struct directory_self *self = directory_self(ps_job->directory);
    struct client_options options = {.directory = ps_job->directory,
        .wait_timeout_us = ps_job->wait_timeout_us,
        .unwanted = unwanted};
    struct link_terms *terms = &ps_job->terms;
    CADRE_TRY(
        directory_await_key(ps_job->directory, UINT64_MAX, &terms->generation, terms->key, error));
    CADRE_TRY(link_program_digest(terms->program, error));
    terms->ps_job = self->ps_job;
    terms->slot = self->slot;
    terms->incarnation = self->incarnation;
    memcpy(options.program, terms->program, sizeof options.program);
    return client_open(&options, &ps_job->client, error);
}

cadre_status ps_job_await_servers(struct ps_job_state *ps_job, struct cadre_error *error)
{
    const struct ps_job *shape = &directory_self(ps_job->directory)->ps_job;
    struct directory_member member;
    for (uint32_t i = 0; i < shape->servers; i++) {
        CADRE_TRY(directory_await(
            ps_job->directory, ROLE_SERVER, i, 0, ps_job->wait_timeout_us, &member, error));
    }
    return CADRE_OK;
}

/* --- end --- */

void ps_job_end(struct ps_job_state *ps_job)
{
    if (ps_job == NULL) {
        return;
    }
    const struct cadre_error over = {.code = CADRE_CANCELLED, .text = "the job is over"};
    CADRE_ASSERT(ps_job->scheduler == NULL); /* the functions that began them have ended them */
    CADRE_ASSERT(ps_job->served == NULL);
    if (ps_job->directory != NULL) {
        directory_end(ps_job->directory, &over);
    }
    client_close(ps_job->client);
    ps_job->client = NULL;
    link_listener_close(ps_job->listener);
    ps_job->listener = NULL;
    ps_task_close(ps_job->ps_task);
    ps_job->ps_task = NULL;
    if (atomic_load(&process_ps_job) == ps_job) {
        ps_job_set_current(NULL);
    }
}

void ps_job_free(struct ps_job_state *ps_job)
{
    if (ps_job == NULL) {
        return;
    }
    CADRE_ASSERT(ps_job->local_servers == NULL);
    ps_job_end(ps_job);
    if (ps_job->session != NULL) {
        ps_job->session->ops->close(ps_job->session);
    }
    closure_numbers_free(ps_job->numbers);
    directory_free(ps_job->directory);
    free(ps_job);
}
