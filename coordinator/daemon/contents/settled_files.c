/* SPDX-License-Identifier: Apache-2.0
 * Agents.SettleFile: which bytes an object among a job's files has, for all its tasks, also those
 * that are started later. The first answer of a worker is written to jobs/<id>/files/<index>, once,
 * and that file is every answer; in the contents' store an object below that. A thread of the pool
 * reads and writes it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/rpc/file_work.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/contents/settled_objects.h"
#include "coordinator/daemon/contents/worker_permissions.h"

struct settling {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    struct file_work work; /* from the beginning on: its end frees this */
    char *path;
    uint64_t term, number; /* of the name of an object */
    char *own; /* it is written under this name first, which no other call uses; NULL: no file */
    struct wire_buffer found;
    char *settled; /* what the file has */
    size_t settled_bytes;
    struct cadre_error error;
};

static void settling_free(struct settling *settling)
{
    if (settling != NULL) {
        wire_buffer_free(&settling->found);
        free(settling->settled);
        free(settling->path);
        free(settling->own);
        free(settling);
    }
}

/* ---- in a thread ---- */

static cadre_status read_settled(struct settling *settling, struct cadre_error *error)
{
    return file_read(
        settling->path, SETTLED_BYTES, &settling->settled, &settling->settled_bytes, error);
}

/* No effect when another call has made the file meanwhile, also one of another coordinator. */
static cadre_status write_once(struct settling *settling, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder =
        strndup(settling->path, (size_t)(strrchr(settling->path, '/') - settling->path));
    if (folder == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    CADRE_TRY(folder_make_durable(folder, 0700, error));
    CADRE_TRY(
        file_write_atomic(settling->own, settling->found.bytes, settling->found.size, 0600, error));
    int why = link(settling->own, settling->path) == 0 ? 0 : errno;
    unlink(settling->own);
    if (why != 0 && why != EEXIST) {
        return cadre_error_errno(error, why, "the coordinator cannot make %s", settling->path);
    }
    return folder_sync(folder, error);
}

static void settle_in_store(struct settling *settling)
{
    struct daemon *daemon = settling->daemon;
    const struct settled_put put = {.folder = settling->path,
        .term = settling->term,
        .number = settling->number,
        .bytes = settling->found.bytes,
        .size = settling->found.size};
    (void)settled_objects_settle(daemon->objects, &daemon->leading, &put, &settling->settled,
        &settling->settled_bytes, &settling->error);
}

static void settle_in_thread(void *user)
{
    struct settling *settling = user;
    struct cadre_error *error = &settling->error;
    if (settling->daemon->objects != NULL) {
        settle_in_store(settling);
        return;
    }
    if (read_settled(settling, error) == CADRE_NOT_FOUND) {
        *error = (struct cadre_error){0};
        if (write_once(settling, error) == CADRE_OK) {
            (void)read_settled(settling, error);
        }
    }
}

/* ---- on the loop ---- */

static void settling_answer(struct settling *settling)
{
    struct daemon *daemon = settling->daemon;
    struct settled_file settled;
    wire_arena_reset(daemon->arena);
    if (settling->error.code == CADRE_OK &&
        wire_unpack_settled_file(settling->settled, settling->settled_bytes, daemon->arena,
            &settled, &settling->error) != CADRE_OK) {
        cadre_error_wrap(
            &settling->error, CADRE_DATA_LOSS, "%s of the coordinator is damaged", settling->path);
    }
    if (settling->error.code != CADRE_OK) {
        rpc_call_fail(settling->call, &settling->error);
        return;
    }
    DAEMON_SEND(daemon, settling->call, settled_file, &settled);
    rpc_call_finish(settling->call, CADRE_OK, "");
}

static void after_settle(void *user)
{
    struct settling *settling = user;
    if (settling->call != NULL) {
        rpc_call_set_user(settling->call, NULL);
        settling_answer(settling);
    }
    settling_free(settling);
}

static cadre_status check_file(
    struct daemon *daemon, const struct settle_file_request *request, struct cadre_error *error)
{
    struct job_info info;
    struct job_id job = request->task.job;
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    if (spec == NULL || !engine_job_basics(daemon->engine, job, &info) ||
        job_state_is_final(info.state)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "job %" PRIu64 " has ended, and its files are not needed any more", job.n);
    }
    if (request->file >= spec->file_count || !job_file_is_object(&spec->files[request->file])) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %" PRIu32 " of job %" PRIu64 " is no object that workers fetch", request->file,
            job.n);
    }
    return CADRE_OK;
}

static cadre_status settling_new(struct daemon *daemon, const struct settle_file_request *request,
    struct settling **ret_settling, struct cadre_error *error)
{
    struct settling *settling = calloc(1, sizeof *settling);
    if (settling == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to settle a file");
    }
    settling->daemon = daemon;
    settling->path = path_of_settled(daemon, request->task.job, request->file);
    settling->term = engine_term(daemon->engine).start;
    settling->number = ++daemon->upload_last;
    if (settling->path == NULL ||
        (daemon->objects == NULL &&
            asprintf(&settling->own, "%s.%016" PRIx64 "-%" PRIu64, settling->path,
                engine_term(daemon->engine).nonce, settling->number) < 0)) {
        settling->own = NULL;
        cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to settle a file");
    } else if (wire_pack_settled_file(&request->found, &settling->found, error) == CADRE_OK) {
        *ret_settling = settling;
        return CADRE_OK;
    }
    settling_free(settling);
    return error->code;
}

static void settle_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct settle_file_request request;
    struct settling *settling = NULL;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_settle_file_request(data, length, daemon->arena, &request, &error) !=
            CADRE_OK ||
        worker_permissions_check_task(daemon, call, request.task, &error) != CADRE_OK ||
        check_file(daemon, &request, &error) != CADRE_OK ||
        settling_new(daemon, &request, &settling, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    settling->call = call;
    rpc_call_set_user(call, settling);
    file_work_start(&settling->work, &daemon->file_pool, settle_in_thread, after_settle, settling);
}

static void settle_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct settling *settling = rpc_call_user(call);
    if (settling != NULL) {
        settling->call = NULL; /* the end of the work frees it */
    }
}

const struct rpc_server_ops settle_file_ops = {
    .on_message = settle_message, .on_closed = settle_closed};
