/* SPDX-License-Identifier: Apache-2.0
 * The unary methods of cadre.v1.Jobs. Those that change something are answered after their records
 * are durable (pending_calls.c). */
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/file_store.h"
#include "coordinator/daemon/base/listings.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/base/pending_calls.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/shared/shared_ledger.h"

/* ---- calls that wait for their records ---- */

static void pending_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct pending_call *pending = rpc_call_user(call);
    if (pending != NULL) {
        pending_forget(pending);
    }
}

/* What was requested for the call; NULL: the call ends with the error. */
static void wait_for_records(
    struct rpc_call *call, struct pending_call *pending, const struct cadre_error *error)
{
    if (pending != NULL) {
        rpc_call_set_user(call, pending);
    } else {
        rpc_call_fail(call, error);
    }
}

/* True: the request was carried out. */
static bool take_answer(struct rpc_call *call, const struct cadre_error *error)
{
    rpc_call_set_user(call, NULL);
    if (error->code != CADRE_OK) {
        rpc_call_fail(call, error);
    }
    return error->code == CADRE_OK;
}

static void answer_job(struct daemon *daemon, struct rpc_call *call, struct job_id job)
{
    struct job_info info;
    struct cadre_error error = {0};
    if (listing_job(daemon->engine, job, &info, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, job_info, &info);
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_submitted(struct daemon *daemon, void *user, const struct pending_result *result,
    struct cadre_error *error)
{
    struct rpc_call *call = user;
    if (!take_answer(call, error)) {
        return;
    }
    struct submit_response response = {
        .id = result->job, .queued_before = result->queued_before, .note = result->text};
    if (result->text[0] != '\0') {
        log_event(LOG_LEVEL_WARNING, "jobs", result->text, LOG_U64("job", result->job.n));
    }
    DAEMON_SEND(daemon, call, submit_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_job(struct daemon *daemon, void *user, const struct pending_result *result,
    struct cadre_error *error)
{
    if (take_answer(user, error)) {
        answer_job(daemon, user, result->job);
    }
}

static void on_done(struct daemon *daemon, void *user, const struct pending_result *result,
    struct cadre_error *error)
{
    static const uint8_t empty[1] = {0};
    (void)daemon;
    (void)result;
    if (take_answer(user, error)) {
        (void)rpc_call_send(user, empty, 0, error); /* DrainResponse: without fields */
        rpc_call_finish(user, CADRE_OK, "");
    }
}

/* ---- Submit ---- */

/* A submission whose contents were uploaded lately: their names are synced before its record is
 * written. */
struct submission {
    struct submission *next;
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    struct file_work work;
    uint64_t came; /* of the contents when the sync began */
    struct cadre_error error;
    size_t length;
    uint8_t message[];
};

static bool is_synced(const struct daemon *daemon, const struct job_file *file)
{
    struct sha256 hash;
    memcpy(hash.bytes, file->sha256, sizeof hash.bytes);
    return contents_is_synced(daemon->contents, &hash);
}

/* *ret_synced: the contents are synced. */
static cadre_status check_files(const struct daemon *daemon, const struct job_spec *spec,
    bool *ret_synced, struct cadre_error *error)
{
    CADRE_TRY(file_store_check(daemon, &spec->program, error));
    *ret_synced = is_synced(daemon, &spec->program);
    for (size_t i = 0; i < spec->file_count; i++) {
        if (job_file_is_object(&spec->files[i])) {
            continue; /* workers fetch it */
        }
        CADRE_TRY(file_store_check(daemon, &spec->files[i], error));
        *ret_synced = *ret_synced && is_synced(daemon, &spec->files[i]);
    }
    return CADRE_OK;
}

static void daemon_jobs_submit(
    struct daemon *daemon, struct rpc_call *call, const void *data, size_t length);

static void sync_in_thread(void *user)
{
    struct submission *submission = user;
    (void)contents_sync(submission->daemon->blob_dir, &submission->error);
}

static void after_sync(void *user)
{
    struct submission *submission = user;
    struct daemon *daemon = submission->daemon;
    struct submission **at = &daemon->submissions;
    while (*at != submission) {
        at = &(*at)->next;
    }
    *at = submission->next;
    if (submission->error.code == CADRE_OK) {
        contents_note_synced(daemon->contents, submission->came);
    }
    if (submission->call != NULL && submission->error.code != CADRE_OK) {
        rpc_call_fail(submission->call, &submission->error);
    } else if (submission->call != NULL) {
        daemon_jobs_submit(daemon, submission->call, submission->message, submission->length);
    }
    free(submission);
}

static void sync_and_submit(
    struct daemon *daemon, struct rpc_call *call, const void *data, size_t length)
{
    struct submission *submission = calloc(1, sizeof *submission + length);
    if (submission == NULL) {
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another job");
        return;
    }
    *submission = (struct submission){.next = daemon->submissions,
        .daemon = daemon,
        .call = call,
        .came = contents_added_count(daemon->contents),
        .length = length};
    memcpy(submission->message, data, length);
    daemon->submissions = submission;
    file_work_start(&submission->work, &daemon->file_pool, sync_in_thread, after_sync, submission);
}

static void daemon_jobs_submit(
    struct daemon *daemon, struct rpc_call *call, const void *data, size_t length)
{
    struct cadre_error error = {0};
    struct job_spec spec;
    bool synced = false;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_job_spec(data, length, daemon->arena, &spec, &error) == CADRE_OK &&
        engine_knows_request(daemon->engine, &spec)) {
        wait_for_records(call, pending_submit(daemon, &spec, on_submitted, call, &error), &error);
        return;
    }
    if (error.code != CADRE_OK || disk_check(daemon, length, &error) != CADRE_OK ||
        check_files(daemon, &spec, &synced, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    if (!synced) {
        sync_and_submit(daemon, call, data, length);
        return;
    }
    if (quota_reserve(daemon, 1, "another job", &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    if (daemon->draining) {
        rpc_call_finish(
            call, CADRE_UNAVAILABLE, "the coordinator is shutting down: submit again later");
        return;
    }
    wait_for_records(call, pending_submit(daemon, &spec, on_submitted, call, &error), &error);
}

static void submit_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    daemon_jobs_submit(user, call, data, length);
}

static void submit_closed(struct rpc_call *call, bool cancelled, void *user)
{
    struct daemon *daemon = user;
    for (struct submission *at = daemon->submissions; at != NULL; at = at->next) {
        at->call = at->call == call ? NULL : at->call;
    }
    pending_closed(call, cancelled, user);
}

const struct rpc_server_ops submit_ops = {.on_message = submit_message, .on_closed = submit_closed};

/* ---- Cancel, Checkpoint, Drain ---- */

static bool take_job_request(struct daemon *daemon, struct rpc_call *call, const void *data,
    size_t length, struct job_id *ret_job)
{
    struct cadre_error error = {0};
    struct job_request request;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_job_request(data, length, daemon->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return false;
    }
    *ret_job = request.id;
    return true;
}

static void cancel_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct job_id job;
    if (!take_job_request(daemon, call, data, length, &job)) {
        return;
    }
    struct job_info info;
    if (engine_job_basics(daemon->engine, job, &info) && job_state_is_final(info.state)) {
        answer_job(daemon, call, job); /* it has ended and is not changed */
        return;
    }
    struct cadre_error error = {0};
    wait_for_records(call, pending_cancel(daemon, job, on_job, call, &error), &error);
}

const struct rpc_server_ops cancel_ops = {
    .on_message = cancel_message, .on_closed = pending_closed};

static void checkpoint_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct job_id job;
    if (!take_job_request(daemon, call, data, length, &job)) {
        return;
    }
    struct cadre_error error = {0};
    wait_for_records(call, pending_checkpoint(daemon, job, on_job, call, &error), &error);
}

const struct rpc_server_ops checkpoint_ops = {
    .on_message = checkpoint_message, .on_closed = pending_closed};

/* The name in its certificate, else the address of its connection. */
static const char *name_of_caller(struct rpc_call *call)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    return identity->role != TLS_ROLE_LOCAL ? identity->name : rpc_call_peer(call);
}

static void drain_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct drain_request request;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_drain_request(data, length, daemon->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct pending_call *pending =
        pending_drain(daemon, &request, name_of_caller(call), on_done, call, &error);
    wait_for_records(call, pending, &error);
}

const struct rpc_server_ops drain_ops = {.on_message = drain_message, .on_closed = pending_closed};

/* ---- readers ---- */

static void get_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct engine *engine = NULL;
    struct cadre_error error = {0};
    struct job_info info;
    struct job_id job;
    if (!take_job_request(daemon, call, data, length, &job)) {
        return;
    }
    if (shared_ledger_reader(daemon, &engine, &error) != CADRE_OK ||
        listing_job(engine, job, &info, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, job_info, &info);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops get_job_ops = {.on_message = get_message};

static void verify_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct verify_request request;
    struct verify_response response;
    struct cadre_error error = {0};
    wire_arena_reset(daemon->arena);
    if (wire_unpack_verify_request(data, length, daemon->arena, &request, &error) != CADRE_OK ||
        engine_verify(daemon->engine, &request, &response, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, verify_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops verify_ops = {.on_message = verify_message};

static void history_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct history_request request;
    struct history_response response;
    struct engine *engine = NULL;
    struct cadre_error error = {0};
    wire_arena_reset(daemon->arena);
    if (wire_unpack_history_request(data, length, daemon->arena, &request, &error) != CADRE_OK ||
        shared_ledger_reader(daemon, &engine, &error) != CADRE_OK ||
        engine_history(engine, &request, &response, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, history_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops history_ops = {.on_message = history_message};

static void list_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    const struct jobs_listing listing = {.limit = LIMIT_JOBS_LISTED};
    struct job_info *jobs = NULL;
    struct list_jobs_response response;
    struct engine *engine = NULL;
    if (shared_ledger_reader(daemon, &engine, &error) != CADRE_OK ||
        listing_jobs(engine, &listing, &jobs, &response, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, list_jobs_response, &response);
    free(jobs);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_jobs_ops = {.on_message = list_message};

static void workers_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct list_workers_request request;
    struct worker_info *workers = NULL;
    struct list_workers_response response;
    bool more = false;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_list_workers_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK) {
        const struct workers_listing listing = {
            .limit = (size_t)daemon->options.workers_max, .after = "", .name = request.worker};
        status = listing_workers(daemon, &listing, &workers, &response, &more, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    DAEMON_SEND(daemon, call, list_workers_response, &response);
    free(workers);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops list_workers_ops = {.on_message = workers_message};

static void version_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    struct engine *engine = NULL;
    struct cadre_error error = {0};
    struct version_response response;
    if (shared_ledger_reader(daemon, &engine, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    listing_version(daemon, engine, &response);
    DAEMON_SEND(daemon, call, version_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops version_ops = {.on_message = version_message};
