/* SPDX-License-Identifier: Apache-2.0
 * Which task of which job the process is: a daemon's, a cluster's, or the whole job; and its
 * session until a strategy takes it. cadre_init, lifecycle/, plain/ and roles/ call it. */
#include "worker/library/runtime/program/program.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/cluster/cluster_member.h"
#include "worker/library/runtime/cluster/session_cluster.h"
#include "worker/library/runtime/program/checkpoints.h"
#include "worker/library/runtime/program/standard_output.h"

/* The process is one task of one job: this is its only global state besides its strategies. */
static struct {
    bool initialised;
    struct environment environment;
    struct ps_job threads;          /* of a ps job that is made by hand */
    struct session *session;        /* connected and not yet taken */
    struct cluster_member *cluster; /* NULL: none */
    struct cluster_choice choice;   /* of that, if it has ps tasks */
    bool taken;                     /* the session of the cluster */
    bool managed;                   /* it has set its checkpoints itself */
} program;

const struct environment *program_environment(void)
{
    return program.initialised ? &program.environment : NULL;
}

const struct cluster_member *program_cluster(void)
{
    return program.cluster;
}

struct device_host program_host(void)
{
    const struct environment *environment = &program.environment;
    bool job = environment->attached || environment->tasks > 1;
    struct device_host host = {.task = job ? (int32_t)environment->slot : 0};
    if (environment->role != ROLE_NONE) {
        host.task = (int32_t)environment->index;
    }
    snprintf(host.job, sizeof host.job, "%s",
        environment->role != ROLE_NONE ? role_name(environment->role)
        : job                          ? "worker"
                                       : "localhost");
    return host;
}

bool program_cluster_joined(void)
{
    return program.taken;
}

static void name_devices(void)
{
    const struct device_host host = program_host();
    local_device_set_task(&host);
}

/* Takes `member` over; NULL: the program is a job by itself. */
static void set_member(struct cluster_member *member)
{
    CADRE_ASSERT(member == NULL || member->member_id < member->tasks);
    struct environment *environment = &program.environment;
    cluster_member_close(program.cluster);
    program.cluster = member;
    environment->attached = member != NULL;
    environment->slot = member == NULL ? 0 : member->member_id;
    environment->role = member == NULL ? ROLE_NONE : member->role;
    bool in_ps_job = environment->role != ROLE_NONE;
    environment->ps_job = in_ps_job ? member->ps_job : program.threads;
    environment->index =
        in_ps_job ? member->member_id - ps_job_first_slot(&member->ps_job, environment->role) : 0;
    environment->tasks = member == NULL || in_ps_job ? 1 : member->tasks; /* in the ledger */
    environment->tasks_min = environment->tasks;
    if (member != NULL) {
        cluster_address_host(&member->own, environment->mesh_host);
    }
    name_devices();
}

bool program_has_ps_cluster(void)
{
    return program.choice.ps_resolver != NULL && !program.taken;
}

cadre_status program_choose_part(enum cluster_part part, struct cadre_error *error)
{
    struct cluster_member *member;
    if (!program_has_ps_cluster()) {
        return CADRE_OK;
    }
    CADRE_TRY(cluster_choice_make(&program.choice, part, &program.environment, &member, error));
    set_member(member);
    return CADRE_OK;
}

/* A ps of a cluster that cannot have a ps job keeps its type; cadre_serve returns the error. */
static void set_choice(const struct cluster_choice *choice)
{
    cluster_choice_clear(&program.choice);
    program.choice = *choice;
    program.choice.member = NULL; /* taken over */
    set_member(choice->member);
    if (choice->idle_server) {
        program.environment.role = ROLE_SERVER;
        program.environment.index = choice->index;
        name_devices();
    }
}

cadre_status program_set_cluster(const cadre_cluster_resolver *resolver, struct cadre_error *error)
{
    struct cluster_choice choice;
    CADRE_TRY(cluster_choice_open(resolver, &program.environment, &choice, error));
    set_choice(&choice);
    return CADRE_OK;
}

cadre_status program_set_checkpoints(
    const cadre_checkpoint_options *options, struct cadre_error *error)
{
    if (program.managed) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_checkpoint_manager was called a second time; a program has one manager");
    }
    CADRE_TRY(
        checkpoint_settings_apply(&program.environment, program.cluster != NULL, options, error));
    program.managed = true;
    return CADRE_OK;
}

static void prepare_crash(const struct environment *environment)
{
    char task[64] = "";
    if (environment->attached) {
        snprintf(task, sizeof task, "task %" PRIu32 " of job %" PRIu64, environment->slot,
            environment->job);
    }
    if (environment->backtrace) {
        crash_prepare(task);
    }
}

cadre_status program_begin(struct cadre_error *error)
{
    if (program.initialised) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_init was called a second time; call it once, first in main");
    }
    standard_output_begin();
    mesh_prepare_process(); /* because it may exit while its threads still connect */
    CADRE_TRY(environment_read(&program.environment, error));
    prepare_crash(&program.environment); /* before there are threads */
    if (program.environment.attached) {
        CADRE_TRY(session_socket_open(program.environment.socket_path,
            program.environment.daemon_returns, &program.session, error));
    } else {
        program.threads = program.environment.ps_job;
        struct cluster_choice choice;
        CADRE_TRY(cluster_choice_find(&program.environment, &choice, error));
        set_choice(&choice);
    }
    program.initialised = true;
    name_devices();
    return CADRE_OK;
}

static cadre_status had_its_strategy(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "this task of job %llu had its strategy already; make one strategy in a program that is "
        "one of several tasks",
        (unsigned long long)program.environment.job);
}

/* The position of the checkpoint of CADRE_RESTORE. Of a folder the first task of the cluster
 * chooses, once, and the others follow: a file that is whole for one and damaged for another
 * changes nothing. */
static cadre_status find_restored(uint64_t *ret_restored, struct cadre_error *error)
{
    struct environment *environment = &program.environment;
    if (environment->restore_path[0] == '\0') {
        return CADRE_OK;
    }
    if (!restore_is_folder(environment->restore_path)) {
        return restore_position(environment->restore_path, ret_restored, error);
    }
    if (program.cluster != NULL && program.cluster->member_id != 0) {
        *ret_restored = RESTORED_BY_FIRST_TASK;
        return CADRE_OK;
    }
    char note[LIMIT_TEXT_BYTES];
    CADRE_TRY(restore_choose(
        environment->restore_path, sizeof environment->restore_path, ret_restored, note, error));
    if (note[0] != '\0') {
        show_warning("%s", note);
    }
    return CADRE_OK;
}

/* The session of a program that its user started by hand. */
static cadre_status open_by_hand(struct session **ret_session, struct cadre_error *error)
{
    CADRE_ASSERT(program.session == NULL); /* a daemon has none */
    uint64_t restored = 0;
    CADRE_TRY(find_restored(&restored, error));
    if (program.cluster == NULL) {
        return session_local_open(restored, ret_session, error);
    }
    if (program.taken) {
        return had_its_strategy(error);
    }
    CADRE_TRY(session_cluster_open(program.cluster, restored, ret_session, error));
    program.taken = true;
    return CADRE_OK;
}

cadre_status program_take_session(struct session **ret_session, struct cadre_error *error)
{
    CADRE_ASSERT(program.initialised);
    *ret_session = NULL;
    if (program.environment.by_hand) {
        return open_by_hand(ret_session, error);
    }
    if (program.session == NULL) {
        return had_its_strategy(error);
    }
    program.session->slot = program.environment.slot;
    program.session->incarnation = program.environment.incarnation;
    *ret_session = program.session;
    program.session = NULL;
    return CADRE_OK;
}
