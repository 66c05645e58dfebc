/* SPDX-License-Identifier: Apache-2.0
 * The life of a plain program: into its generation, and out of it at the end. */
#include "worker/library/runtime/plain/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/program.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/living.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/border/show.h"

/* The process is one task of one job. Behind cadre_plain_finish the standing is left. */
static _Atomic(struct plain *) the_plain;
static atomic_bool stood;
static struct plain_standing standing; /* once `stood` */

bool plain_stands(struct plain_standing *ret_standing)
{
    bool stands = atomic_load_explicit(&stood, memory_order_acquire);
    if (stands) {
        *ret_standing = standing;
    }
    return stands;
}

uint32_t cadre_plain_local_rank(void)
{
    struct plain_standing at;
    return plain_stands(&at) ? at.local_rank : 0;
}

uint32_t cadre_plain_local_size(void)
{
    struct plain_standing at;
    return plain_stands(&at) ? at.local_tasks : 1;
}

/* --- calls --- */

static cadre_status take(const char *function, struct plain **ret_plain, struct cadre_error *error)
{
    struct plain *plain = atomic_load(&the_plain);
    const char *other = NULL;
    if (plain == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called %s; call it between cadre_plain_init and cadre_plain_finish", function,
            atomic_load(&stood) ? "after the end of the job" : "before the job was joined");
    }
    if (!atomic_compare_exchange_strong(&plain->busy, &other, function)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called while another thread is in %s; call them from one thread at a time",
            function, other);
    }
    *ret_plain = plain;
    return CADRE_OK;
}

cadre_status plain_enter(const char *function, struct plain **ret_plain, struct cadre_error *error)
{
    CADRE_TRY(take(function, ret_plain, error));
    if ((*ret_plain)->failed.code != CADRE_OK) {
        *error = (*ret_plain)->failed;
        plain_leave(*ret_plain);
    }
    return error->code;
}

void plain_leave(struct plain *plain)
{
    atomic_store(&plain->busy, NULL);
}

cadre_status plain_conclude(struct plain *plain, cadre_status status, struct cadre_error *error)
{
    if (status == CADRE_OK || status == CADRE_INVALID_ARGUMENT) {
        return status;
    }
    task_peer_error(plain->task, plain->roster.generation, error->text);
    plain->failed = *error;
    return status;
}

cadre_status plain_meet(
    struct plain *plain, uint64_t key, const char *text, struct cadre_error *error)
{
    const struct mesh_note note = {.key = key, .text = text};
    return plain_conclude(plain, plain->mesh->ops->barrier(plain->mesh, 0, &note, error), error);
}

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

static cadre_status form(struct plain *plain, struct cadre_error *error)
{
    /* Waits are not told to the coordinator: it measures them by steps, and there are none. */
    const struct membership membership = {
        .environment = plain->environment, .listener = plain->listener};
    CADRE_TRY(check_roster(&plain->roster, error));
    CADRE_TRY(membership_post(&membership, &plain->roster, &plain->mesh, error));
    task_attach_mesh(plain->task, plain->mesh);
    return membership_wait(&membership, plain->mesh, error);
}

static cadre_status join(struct plain *plain, struct cadre_error *error)
{
    char address[MESH_ADDRESS_BYTES];
    struct session *session;
    CADRE_TRY(membership_listen(plain->environment, &plain->listener, address, error));
    CADRE_TRY(program_take_session(&session, error));
    CADRE_TRY(membership_open(session, address, 1, NULL, &plain->task, error));
    CADRE_TRY(task_await_plan(plain->task, &plain->roster, error));
    cadre_status status = form(plain, error);
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
static void stand(const struct task_roster *roster)
{
    const char *own = roster->members[roster->rank].address;
    size_t length = host_length(own);
    standing = (struct plain_standing){.rank = roster->rank, .tasks = roster->member_count};
    for (uint32_t i = 0; i < roster->member_count; i++) {
        const char *other = roster->members[i].address;
        bool here = host_length(other) == length && memcmp(other, own, length) == 0;
        standing.local_tasks += here;
        standing.local_rank += here && i < roster->rank;
    }
    atomic_store_explicit(&stood, true, memory_order_release);
}

static void plain_close(struct plain *plain)
{
    plain_watch_close(&plain->watch);
    if (plain->mesh != NULL) {
        task_attach_mesh(plain->task, NULL);
        plain->mesh->ops->close(plain->mesh);
    }
    task_close(plain->task);
    mesh_listener_close(plain->listener);
    task_roster_clear(&plain->roster);
    free(plain);
}

static cadre_status check_program(struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    uint32_t at = 0;
    CADRE_TRY(context_require_cross("cadre_plain_init", error));
    if (atomic_load(&the_plain) != NULL || atomic_load(&stood)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_plain_init was called a second time; call it once, first in main");
    }
    if (living_next(&at) != NULL) {
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
    cadre_status status = join(plain, error);
    if (status != CADRE_OK) {
        plain_close(plain);
        return status;
    }
    stand(&plain->roster);
    atomic_store(&the_plain, plain);
    return CADRE_OK;
}

cadre_status cadre_plain_init(int *argc, char ***argv)
{
    struct cadre_error error = {0};
    if (program_environment() == NULL) {
        CADRE_TRY(cadre_init(argc, argv));
    }
    return border(plain_open(&error), &error);
}

/* --- the end --- */

/* All are there, so nothing can be lost any more: from now on the task's state counts as whole,
 * which the coordinator asks of one that has finished. */
static cadre_status finish(struct plain *plain, struct cadre_error *error)
{
    char text[MESH_NOTE_BYTES];
    const struct cursor cursor = {0};
    const struct feed feed = {0};
    bool is_void = false;
    if (plain->failed.code != CADRE_OK) {
        *error = plain->failed;
        return error->code;
    }
    snprintf(text, sizeof text, "task %u calls cadre_plain_finish", plain->roster.rank);
    CADRE_TRY(plain_meet(plain, collective_key_text(0, "cadre_plain_finish"), text, error));
    plain_watch_close(&plain->watch);
    if (task_synced(plain->task, plain->roster.generation, &cursor, &feed)) {
        (void)task_finish(plain->task, plain->roster.generation);
    }
    return task_await_bye(plain->task, &is_void, error);
}

static bool is_watch(void)
{
    const struct plain *plain = atomic_load(&the_plain);
    return plain != NULL && plain->watch.runs &&
           pthread_equal(plain->watch.thread, pthread_self()) != 0;
}

int cadre_plain_finish(void)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    cadre_status status = CADRE_OK;
    if (is_watch()) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_plain_finish was called by the function of cadre_on_abort; leave it to the "
            "program, or end the process with _exit");
    } else {
        status = take(__func__, &plain, &error);
    }
    if (status == CADRE_OK) {
        plain_report_end(plain);
        status = finish(plain, &error);
        atomic_store(&the_plain, NULL);
        plain_close(plain);
    }
    if (status != CADRE_OK) {
        border(status, &error);
        show_failure(&error);
    }
    return status == CADRE_OK ? 0 : 1;
}
