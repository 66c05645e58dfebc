/* SPDX-License-Identifier: Apache-2.0
 * The beginning and the end of a plain program: into its generation, and out of it. The program
 * calls it (cadre/plain.h). */
#include "worker/library/runtime/plain/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/preemption.h"
#include "cadre/program.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain_state.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/task/roster_spread.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/api/show.h"

/* --- the beginning --- */

static cadre_status check_roster(const struct task_roster *roster, struct cadre_error *error)
{
    for (uint32_t i = 0; i < roster->member_count; i++) {
        if (roster->members[i].replicas != 1) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "task %u has %u replicas, and this one runs a plain program, which has one; all "
                "tasks of a job run the same program",
                roster->slots[i], roster->members[i].replicas);
        }
    }
    return CADRE_OK;
}

static cadre_status form_mesh(struct plain *plain, struct cadre_error *error)
{
    struct mesh *mesh = NULL;
    CADRE_ASSERT(plain->all.mesh == NULL);
    /* Waits are not reported to the coordinator: it measures them by steps, and there are none. */
    const struct membership membership = {
        .environment = plain->environment, .listener = plain->listener};
    CADRE_TRY(roster_spread(&membership, plain->task, &plain->roster, error));
    CADRE_TRY(check_roster(&plain->roster, error));
    CADRE_TRY(membership_post(&membership, &plain->roster, &mesh, error));
    task_attach_mesh(plain->task, mesh);
    plain_group_take_all(plain, mesh);
    return membership_wait(&membership, mesh, error);
}

/* A task that comes when the others have begun is no member of their generation. It waits for the
 * end of that, which is the end of this process as well: started again it gets the newest state. */
static cadre_status await_generation(struct plain *plain, struct cadre_error *error)
{
    bool warm = false;
    CADRE_TRY(task_await_assignment(plain->task, &warm, error));
    if (warm) {
        task_join(plain->task, 0);
    }
    cadre_status status = task_await_plan(plain->task, &plain->roster, error);
    if (warm && status == CADRE_ABORTED) {
        cadre_check_set_exit_code(CADRE_CANCELLED, CADRE_EXIT_PREEMPTED);
        return cadre_error_set(error, CADRE_CANCELLED,
            "this task waited for the others to save: the job begins again with it, or has ended");
    }
    return status;
}

static cadre_status join_job(struct plain *plain, struct cadre_error *error)
{
    char address[MESH_ADDRESS_BYTES];
    struct session *session;
    CADRE_TRY(membership_listen(plain->environment, &plain->listener, address, error));
    CADRE_TRY(program_take_session(&session, error));
    const struct task_identity identity = {.replicas = 1, .mesh_address = address, .plain = true};
    CADRE_TRY(membership_open(session, identity, &plain->task, error));
    CADRE_TRY(await_generation(plain, error));
    plain->saves.position = plain->roster.resume;
    cadre_status status = form_mesh(plain, error);
    if (status == CADRE_FAILED_PRECONDITION) {
        task_failed(plain->task, error);
    } else if (status != CADRE_OK) {
        task_sync_failed(plain->task, plain->roster.generation, error->text);
    }
    return status;
}

static size_t host_length(const char *address)
{
    const char *colon = strrchr(address, ':');
    return colon != NULL ? (size_t)(colon - address) : strlen(address);
}

/* Tasks are on one host when their meshes listen on one address. */
static struct plain_ranks standing_in(const struct task_roster *roster)
{
    CADRE_ASSERT(roster->rank < roster->member_count);
    const char *own = roster->members[roster->rank].address;
    size_t length = host_length(own);
    struct plain_ranks standing = {.rank = roster->rank, .tasks = roster->member_count};
    for (uint32_t i = 0; i < roster->member_count; i++) {
        const char *other = roster->members[i].address;
        bool here = host_length(other) == length && memcmp(other, own, length) == 0;
        standing.local_tasks += here;
        standing.local_rank += here && i < roster->rank;
    }
    return standing;
}

static void plain_close(struct plain *plain)
{
    plain_abort_watch_close(&plain->watch);
    plain_report_close(plain);
    plain_sender_close(&plain->sender);
    plain_groups_close(plain);
    task_close(plain->task);
    mesh_listener_close(plain->listener);
    task_roster_clear(&plain->roster);
    free(plain);
}

static cadre_status check_program(struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    struct plain_ranks ignored;
    uint32_t at = 0;
    CADRE_TRY(context_require_cross("cadre_plain_init", error));
    if (plain_get_ranks(&ignored)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_plain_init was called a second time; call it once, first in main");
    }
    if (strategy_registry_next(&at) != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_plain_init was called in a program that has a strategy; it has one of the two");
    }
    if (environment->replicas > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the job was started with %u replicas in each task, and a plain program has one; start "
            "more tasks instead (`-n`, `--workers`)",
            environment->replicas);
    }
    return CADRE_OK;
}

static cadre_status plain_open(struct cadre_error *error)
{
    CADRE_TRY(check_program(error));
    struct plain *plain = calloc(1, sizeof *plain);
    if (plain == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the program's task");
    }
    plain->environment = program_environment();
    cadre_status status = plain_report_open(plain, error);
    if (status == CADRE_OK) {
        status = join_job(plain, error);
    }
    if (status != CADRE_OK) {
        plain_close(plain);
        return status;
    }
    const struct plain_ranks standing = standing_in(&plain->roster);
    plain_current_begin(plain, &standing);
    return CADRE_OK;
}

cadre_status cadre_plain_init(int *argc, char ***argv)
{
    struct cadre_error error = {0};
    if (program_environment() == NULL) {
        CADRE_TRY(cadre_init(argc, argv));
    }
    return api_return(plain_open(&error), &error);
}

/* --- the end --- */

/* All are here, so no task can be lost any more: from now on the task's state counts as whole,
 * which the coordinator requires of one that has finished. */
static cadre_status finish_task(struct plain *plain, struct cadre_error *error)
{
    char text[MESH_NOTE_BYTES];
    const struct cursor cursor = {0};
    const struct consumption consumption = {0};
    bool is_void = false;
    if (plain->failed.code != CADRE_OK) {
        *error = plain->failed;
        return error->code;
    }
    snprintf(text, sizeof text, "task %u calls cadre_plain_finish", plain->roster.rank);
    CADRE_TRY(plain_group_barrier(
        &plain->all, collective_key_text(0, "cadre_plain_finish"), text, error));
    CADRE_TRY(plain_take_last_step(plain, error));
    plain_abort_watch_close(&plain->watch);
    if (plain->saves.synced ||
        task_synced(plain->task, plain->roster.generation, &cursor, &consumption)) {
        (void)task_finish(plain->task, plain->roster.generation, 0);
    }
    return task_await_goodbye(plain->task, &is_void, error);
}

int cadre_plain_finish(void)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    bool left = false;
    cadre_status status = CADRE_OK;
    if (plain_is_abort_watch()) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_plain_finish was called by the function of cadre_on_abort; leave it to the "
            "program, or end the process with _exit");
    } else {
        status = plain_enter_last(__func__, &plain, &error);
    }
    if (status == CADRE_OK) {
        plain_report_end(plain);
        status = finish_task(plain, &error);
        left = plain->saves.left;
        plain_current_end(plain);
        plain_close(plain);
    }
    if (status == CADRE_CANCELLED && left) {
        return CADRE_EXIT_PREEMPTED;
    }
    if (status != CADRE_OK) {
        api_return(status, &error);
        show_failure(&error);
    }
    return status == CADRE_OK ? 0 : 1;
}
