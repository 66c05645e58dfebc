/* SPDX-License-Identifier: Apache-2.0
 * What outlives a link and a generation of a task: checkpoints that are being published, and the
 * datasets of its job. agent_relay.c calls it. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"

/* A publication that failed is repeated after so long, doubled with each failure so often. */
#define PUBLISH_PAUSE_US    1000000
#define PUBLISH_DOUBLED_MAX 5
/* A part that was sent, and is not published, is repeated after so long, doubled so often. */
#define PART_PAUSE_US    5000000
#define PART_DOUBLED_MAX 3

/* ---- checkpoints ---- */

static void agent_keep_keep(struct agent_part *kept, const struct task_part *part)
{
    CADRE_ASSERT(part->path != kept->path);
    agent_copy_text(kept->path, sizeof(kept->path), part->path);
    kept->part = *part;
    kept->part.path = kept->path;
}

static bool same_content(const struct task_part *a, const struct task_part *b)
{
    return a->path != NULL && a->position == b->position && a->size_bytes == b->size_bytes &&
           memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0;
}

static uint64_t doubled(uint64_t pause_us, uint32_t times, uint32_t times_max)
{
    return pause_us << (times < times_max ? times : times_max);
}

/* All members may not have come there yet; or the coordinator could not use it. */
static void defer_part(struct agent_core *core, struct agent_task *task)
{
    struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(resend->has_part);
    bool waits = !resend->publishing && resend->part.part.position >= resend->published_end;
    if (waits) {
        task->publish_at_us =
            core->now_us + doubled(PART_PAUSE_US, resend->part_repeats, PART_DOUBLED_MAX);
    }
}

static void send_part(struct agent_core *core, struct agent_task *task,
    const struct task_part *part, struct agent_actions *out)
{
    CADRE_ASSERT(agent_is_current(core, task, part->generation));
    struct agent_resend *resend = agent_resend_of(core, task);
    bool same = same_content(&resend->part.part, part);
    resend->part_repeats = same ? resend->part_repeats : 0;
    agent_keep_keep(&resend->part, part);
    resend->has_part = true;
    struct task_up up = {.type = TASK_UP_PART, .part = resend->part.part};
    agent_send_relay(core, task->ref, &up, out);
    defer_part(core, task);
}

/* A task sends its part again on each connection and in each generation; it is published once. */
void agent_on_part(struct agent_core *core, struct agent_task *task, const struct task_part *part,
    struct agent_actions *out)
{
    CADRE_ASSERT(task->connected);
    struct agent_resend *resend = agent_resend_of(core, task);
    if (part->shared || same_content(&resend->part.part, part)) {
        if (resend->publishing && same_content(&resend->next.part, part)) {
            agent_keep_keep(&resend->next, part); /* it is published once more: as it is now */
        }
        send_part(core, task, part, out);
        return;
    }
    CADRE_ASSERT(!part->shared); /* a shared one can be read from everywhere */
    bool same = resend->publishing && same_content(&resend->next.part, part);
    bool known = same && task->publish_at_us == 0;
    agent_keep_keep(&resend->next, part);
    resend->publishing = true;
    resend->publish_failures = same ? resend->publish_failures : 0;
    task->publish_at_us = 0;
    if (!known) {
        agent_append(out, AGENT_ACTION_PUBLISH, task->ref)->part = &resend->next.part;
    }
}

static bool has_process(const struct agent_task *task)
{
    return task->phase >= AGENT_TASK_RUNNING && task->phase < AGENT_TASK_GONE;
}

/* Its program may wait for it, and sends its part again in another generation only. */
static void defer_publication(struct agent_core *core, struct agent_task *task)
{
    struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(resend->publishing);
    task->publish_at_us =
        core->now_us + doubled(PUBLISH_PAUSE_US, resend->publish_failures, PUBLISH_DOUBLED_MAX);
    resend->publish_failures++;
}

/* What the coordinator has of it by now is not sent again. */
static void publish_again(
    struct agent_core *core, struct agent_task *task, struct agent_actions *out)
{
    struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(has_process(task));
    task->publish_at_us = 0;
    if (!resend->publishing && !resend->has_part) {
        return; /* another generation has begun: the task sends its part again, if it has one */
    }
    if (!resend->publishing) {
        resend->part_repeats++;
        if (resend->part.part.shared) {
            struct task_up up = {.type = TASK_UP_PART, .part = resend->part.part};
            agent_send_relay(core, task->ref, &up, out);
            defer_part(core, task);
            return;
        }
        resend->publishing = true;
        resend->publish_failures = 0;
        agent_keep_keep(&resend->next, &resend->part.part);
    }
    agent_append(out, AGENT_ACTION_PUBLISH, task->ref)->part = &resend->next.part;
}

void agent_note_published(
    struct agent_core *core, struct agent_task *task, const struct task_release *release)
{
    struct agent_resend *resend = agent_resend_of(core, task);
    uint64_t end = release->published == POSITION_NONE ? 0 : release->published + 1;
    resend->published_end = end > resend->published_end ? end : resend->published_end;
    if (!resend->publishing && resend->has_part &&
        resend->part.part.position < resend->published_end) {
        task->publish_at_us = 0;
    }
}

void agent_publish_due(struct agent_core *core, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->publish_at_us != 0 && core->now_us >= task->publish_at_us) {
            publish_again(core, task, out);
        }
    }
}

void agent_publish_stop(struct agent_core *core, struct agent_task *task)
{
    CADRE_ASSERT(!has_process(task));
    if (task->publish_at_us != 0) {
        task->publish_at_us = 0;
        agent_resend_of(core, task)->publishing = false;
    }
}

/* If its generation is over, it is sent when the task sends its part again in the new one. */
void agent_published(
    struct agent_core *core, struct task_ref ref, cadre_status code, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    if (task == NULL || !agent_resend_of(core, task)->publishing) {
        return;
    }
    struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(resend->next.part.path == resend->next.path);
    CADRE_ASSERT(!resend->next.part.shared);
    if (code != CADRE_OK && has_process(task)) {
        defer_publication(core, task);
        return;
    }
    resend->publishing = false;
    task->publish_at_us = 0;
    if (code != CADRE_OK) {
        return;
    }
    if (agent_is_current(core, task, resend->next.part.generation)) {
        send_part(core, task, &resend->next.part, out);
    } else {
        agent_keep_keep(&resend->part, &resend->next.part);
        resend->has_part = false;
    }
}

/* ---- datasets ---- */

void agent_keep_stream(struct agent_core *core, struct job_id job, const struct task_stream *stream)
{
    CADRE_ASSERT(job.n != 0); /* an entry of job 0 is free */
    struct agent_stream *entry = NULL;
    uint32_t of_job = 0;
    for (uint32_t i = 0; i < AGENT_STREAMS(core->options.slots); i++) {
        struct agent_stream *kept = &core->streams[i];
        if (kept->job.n == job.n && kept->stream.stream == stream->stream) {
            entry = kept;
            of_job = 0;
            break;
        }
        of_job += kept->job.n == job.n ? 1 : 0;
        entry = entry == NULL && kept->job.n == 0 ? kept : entry;
    }
    CADRE_ASSERT(of_job <= LIMIT_STREAMS);
    if (entry != NULL && of_job < LIMIT_STREAMS) {
        CADRE_ASSERT(entry->job.n == 0 || entry->job.n == job.n);
        entry->job = job;
        entry->stream = *stream;
        agent_copy_text(entry->name, sizeof(entry->name), stream->name);
        entry->stream.name = entry->name;
    }
}

static const struct agent_task *agent_keep_speaker(const struct agent_core *core, struct job_id job)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        if (core->tasks[i].connected && core->tasks[i].ref.job.n == job.n) {
            CADRE_ASSERT(core->tasks[i].phase >= AGENT_TASK_RUNNING);
            CADRE_ASSERT(core->tasks[i].phase < AGENT_TASK_GONE);
            return &core->tasks[i];
        }
    }
    return NULL;
}

/* A task that is not connected sends its streams itself when it connects. */
void agent_send_streams(const struct agent_core *core, struct agent_actions *out)
{
    for (uint32_t i = 0; i < AGENT_STREAMS(core->options.slots); i++) {
        const struct agent_stream *kept = &core->streams[i];
        const struct agent_task *task =
            kept->job.n == 0 ? NULL : agent_keep_speaker(core, kept->job);
        if (task != NULL) {
            CADRE_ASSERT(kept->stream.name == kept->name);
            struct task_up up = {.type = TASK_UP_STREAM, .stream = kept->stream};
            agent_send_relay(core, task->ref, &up, out);
        }
    }
}

void agent_drop_streams(struct agent_core *core, struct job_id job)
{
    CADRE_ASSERT(job.n != 0);
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        bool attempts = task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED;
        if (attempts && task->ref.job.n == job.n) {
            return;
        }
    }
    for (uint32_t i = 0; i < AGENT_STREAMS(core->options.slots); i++) {
        if (core->streams[i].job.n == job.n) {
            memset(&core->streams[i], 0, sizeof(core->streams[i]));
        }
    }
}
