/* SPDX-License-Identifier: Apache-2.0
 * A task of a crew: its beginning and end. */
#include "worker/library/runtime/crew/crew.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/crew/attendant.h"
#include "worker/library/runtime/crew/closure_numbers.h"
#include "worker/library/runtime/program/program.h"

#define PATIENCE_S 120

static struct crew_state *_Atomic process_crew;
static _Thread_local struct crew_state *thread_crew;

struct crew_state *crew_current(void)
{
    return thread_crew != NULL ? thread_crew : atomic_load(&process_crew);
}

void crew_enter(struct crew_state *crew)
{
    thread_crew = crew;
}

void crew_set_current(struct crew_state *crew)
{
    atomic_store(&process_crew, crew);
}

/* --- beginning --- */

static cadre_status fill(struct crew_state *crew, const struct directory_self *self,
    const char *host, struct cadre_error *error)
{
    CADRE_TRY(directory_new(self, &crew->directory, error));
    if (crew->role == ROLE_CHIEF) {
        CADRE_TRY(closure_numbers_new(&crew->numbers, error));
    }
    return host == NULL ? CADRE_OK
                        : link_listener_open(host, &crew->listener, crew->address, error);
}

cadre_status crew_new(const struct directory_self *self, const char *host,
    struct crew_state **ret_crew, struct cadre_error *error)
{
    CADRE_ASSERT(self->slot < crew_tasks(&self->crew));
    struct crew_state *crew = calloc(1, sizeof *crew);
    *ret_crew = NULL;
    if (crew == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a crew");
    }
    crew->role = crew_role(&self->crew, self->slot);
    crew->index = self->slot - crew_first(&self->crew, crew->role);
    crew->patience_us = PATIENCE_S * CADRE_US_PER_S;
    cadre_status status = fill(crew, self, host, error);
    if (status != CADRE_OK) {
        crew_free(crew);
        return status;
    }
    *ret_crew = crew;
    return CADRE_OK;
}

/* A program of a cluster is one task for good; another place in the crew is no use to it. */
static cadre_status check_place(
    const struct environment *environment, uint32_t slot, struct cadre_error *error)
{
    const struct crew *crew = &environment->crew;
    if (environment->role == ROLE_NONE ||
        slot == crew_first(crew, environment->role) + environment->index) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_ABORTED,
        "%s %" PRIu32 " came back while %s %" PRIu32
        " was awaited, whose place it was given; start both again, the latter first",
        role_name(environment->role), environment->index, role_name(crew_role(crew, slot)),
        slot - crew_first(crew, crew_role(crew, slot)));
}

cadre_status crew_begin(struct crew_state **ret_crew, struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    CADRE_ASSERT(environment != NULL); /* cadre_init was asked for first */
    struct session *session;
    bool listens = environment->role != ROLE_WORKER && environment->role != ROLE_EVALUATOR;
    *ret_crew = NULL;
    CADRE_TRY(program_take_session(&session, error));
    const struct directory_self self = {
        .crew = environment->crew, .slot = session->slot, .incarnation = session->incarnation};
    cadre_status status = check_place(environment, session->slot, error);
    if (status == CADRE_OK) {
        const char *host = environment->role == ROLE_NONE ? "127.0.0.1" : environment->mesh_host;
        status = crew_new(&self, listens ? host : NULL, ret_crew, error);
    }
    if (status != CADRE_OK) {
        session->ops->close(session);
        return status;
    }
    (*ret_crew)->session = session;
    return CADRE_OK;
}

cadre_status crew_meet(struct crew_state *crew, bool (*unwanted)(void), struct cadre_error *error)
{
    CADRE_ASSERT(crew->client == NULL);
    CADRE_ASSERT(unwanted != NULL);
    const struct directory_self *self = directory_self(crew->directory);
    struct client_options options = {
        .directory = crew->directory, .patience_us = crew->patience_us, .unwanted = unwanted};
    struct link_terms *terms = &crew->terms;
    CADRE_TRY(
        directory_await_key(crew->directory, UINT64_MAX, &terms->generation, terms->key, error));
    CADRE_TRY(link_program_digest(terms->program, error));
    terms->crew = self->crew;
    terms->slot = self->slot;
    terms->incarnation = self->incarnation;
    memcpy(options.program, terms->program, sizeof options.program);
    return client_open(&options, &crew->client, error);
}

cadre_status crew_await_servers(struct crew_state *crew, struct cadre_error *error)
{
    const struct crew *shape = &directory_self(crew->directory)->crew;
    struct directory_member member;
    for (uint32_t i = 0; i < shape->servers; i++) {
        CADRE_TRY(
            directory_await(crew->directory, ROLE_SERVER, i, 0, crew->patience_us, &member, error));
    }
    return CADRE_OK;
}

/* --- end --- */

void crew_end(struct crew_state *crew)
{
    if (crew == NULL) {
        return;
    }
    const struct cadre_error over = {.code = CADRE_CANCELLED, .text = "the job is over"};
    CADRE_ASSERT(crew->scheduler == NULL); /* who began them has ended them */
    CADRE_ASSERT(crew->served == NULL);
    if (crew->directory != NULL) {
        directory_end(crew->directory, &over);
    }
    client_close(crew->client);
    crew->client = NULL;
    link_listener_close(crew->listener);
    crew->listener = NULL;
    attendant_close(crew->attendant);
    crew->attendant = NULL;
    if (atomic_load(&process_crew) == crew) {
        crew_set_current(NULL);
    }
}

void crew_free(struct crew_state *crew)
{
    if (crew == NULL) {
        return;
    }
    CADRE_ASSERT(crew->hands == NULL);
    crew_end(crew);
    if (crew->session != NULL) {
        crew->session->ops->close(crew->session);
    }
    closure_numbers_free(crew->numbers);
    directory_free(crew->directory);
    free(crew);
}
