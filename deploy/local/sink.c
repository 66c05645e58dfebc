/* SPDX-License-Identifier: Apache-2.0
 * The engine's sink: messages to the agent wait in a queue as packed bytes, as on a stream, so that
 * engine and agent never call into each other recursively. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "deploy/local/local_state.h"

static void sink_down(void *user, struct link_id link, const struct agent_down *down)
{
    (void)link;
    struct local *local = user;
    struct cadre_error error = {0};
    if (local_queue_down(local, down, &error) != CADRE_OK) {
        local_break(local, &error);
    }
}

static void sink_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    (void)link;
    struct cadre_error error;
    cadre_error_set(&error, code, "%s", text);
    local_break(user, &error);
}

static void sink_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    (void)queued_before;
    struct local *local = user;
    if (call.n != 1) {
        return; /* the cancel of an interrupt: the job's end reports it */
    }
    if (code != CADRE_OK) {
        struct cadre_error error;
        cadre_error_set(&error, code, "%s", text);
        local_break(local, &error);
        return;
    }
    local->job = job;
}

/* Adds the path for --restore to the message about a preempted job, if there is room: relative to
 * the working folder if it is inside. */
static void log_resume_point(struct local *local)
{
    CADRE_FREE_AT_EXIT char *found = NULL;
    struct core_checkpoint checkpoint;
    struct cadre_error ignored;
    const char *path = local->options->restore_path; /* nothing was saved since */
    if (engine_checkpoint(local->engine, local->job, &checkpoint)) {
        struct checkpoint_ref ref = {
            .position = checkpoint.position, .shared = checkpoint.shared, .path = checkpoint.path};
        memcpy(ref.manifest_sha256, checkpoint.manifest_sha256, sizeof ref.manifest_sha256);
        size_t above = strlen(local->folders.working);
        if (local_checkpoints_find(&local->checkpoints, &ref, &found, &ignored) != CADRE_OK) {
            return;
        }
        bool is_inside = strncmp(found, local->folders.working, above) == 0 && found[above] == '/';
        path = is_inside ? found + above + 1 : found;
    }
    size_t length = strlen(local->message);
    size_t room = sizeof local->message - length;
    static const char format[] = "; --restore %s goes on from there";
    if (path != NULL && (size_t)snprintf(NULL, 0, format, path) < room) {
        snprintf(local->message + length, room, format, path);
    }
}

static void sink_job_changed(void *user, struct job_id job)
{
    struct local *local = user;
    struct job_info info;
    if (!engine_job_info(local->engine, job, &info)) {
        return;
    }
    local->watch.changed(local->watch_user, &info);
    if (job_state_is_final(info.state)) {
        local->ended = true;
        local->exit_code = info.exit_code;
        snprintf(local->message, sizeof local->message, "%s", info.message);
        if (info.state == JOB_PREEMPTED) {
            log_resume_point(local);
        }
    }
}

static void sink_job_forgotten(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static void sink_checkpoint_dropped(
    void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    (void)user; /* the task that wrote it removes it */
    (void)job;
    (void)checkpoint;
}

const struct engine_sink local_sink = {.down = sink_down,
    .refuse = sink_refuse,
    .answer = sink_answer,
    .job_changed = sink_job_changed,
    .job_forgotten = sink_job_forgotten,
    .checkpoint_dropped = sink_checkpoint_dropped};

static void deliver_to_agent(struct local *local, struct packed_down *packed)
{
    struct cadre_error error = {0};
    struct agent_down down;
    wire_arena_reset(local->arena);
    if (wire_unpack_agent_down(
            packed->bytes.bytes, packed->bytes.size, local->arena, &down, &error) != CADRE_OK) {
        local_break(local, &error);
    } else {
        agent_down(local->agent, &down);
    }
    wire_buffer_free(&packed->bytes);
    free(packed);
}

bool local_deliver(struct local *local)
{
    struct packed_down *packed = local->downs;
    if (packed == NULL) {
        return false;
    }
    local->downs = packed->next;
    if (local->downs == NULL) {
        local->downs_tail = &local->downs;
    }
    deliver_to_agent(local, packed);
    return true;
}

void local_drop_messages(struct local *local)
{
    while (local->downs != NULL) {
        struct packed_down *next = local->downs->next;
        wire_buffer_free(&local->downs->bytes);
        free(local->downs);
        local->downs = next;
    }
}
