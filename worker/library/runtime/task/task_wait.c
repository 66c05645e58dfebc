/* SPDX-License-Identifier: Apache-2.0
 * The waits of a program's threads. Each ends when what it waits for can no longer come: the
 * generation is over (ABORTED: another may follow), or the task is (any other code). */
#include <string.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/task/task_state.h"

/* A wait for a release is reported for people after the first interval, then after each other. */
#define STALL_FIRST_US CADRE_US_PER_S
#define STALL_AGAIN_US (5 * CADRE_US_PER_S)

/* Under the lock: CADRE_PENDING while the task may still get into a generation. */
static cadre_status task_wait_ended(const struct task *task, struct cadre_error *error)
{
    if (task->lost) {
        return cadre_error_set(error, task->lost_error.code, "%s", task->lost_error.text);
    }
    if (task->void_exit) {
        return cadre_error_set(
            error, CADRE_ABORTED, "this task was ended by the coordinator: %s", task->exit_text);
    }
    if (task->core.phase == TASK_EXIT) {
        return cadre_error_set(
            error, CADRE_CANCELLED, "the job was stopped; nothing is left to do for this task");
    }
    return CADRE_PENDING;
}

/* Under the lock: CADRE_PENDING while its generation goes on. A task that is frozen in order waits
 * for the coordinator, but its next step does not run in this generation. */
static cadre_status task_wait_hopeless(const struct task *task, struct cadre_error *error)
{
    cadre_status status = task_wait_ended(task, error);
    if (status != CADRE_PENDING) {
        return status;
    }
    bool finished = task->core.phase == TASK_FROZEN && task->core.reason == REPORT_FINISHED;
    if (task->abort_mesh || (task->core.phase != TASK_RUN && !finished)) {
        const char *text = task->cause_text[0] != '\0' ? task->cause_text : task->abort_text;
        return cadre_error_set(error, CADRE_ABORTED, "%s",
            text[0] != '\0' ? text : "the job regroups before this step");
    }
    return CADRE_PENDING;
}

cadre_status task_await_assignment(struct task *task, bool *ret_warm, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    CADRE_ASSERT(task->meshes == NULL);
    cadre_status status = CADRE_PENDING;
    while (!task->roster_due && !task->warm &&
           (status = task_wait_ended(task, error)) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    *ret_warm = task->warm && !task->roster_due;
    if (task->roster_due || task->warm) {
        status = CADRE_OK;
    }
    CADRE_ASSERT(status != CADRE_PENDING);
    pthread_mutex_unlock(&task->lock);
    return status;
}

/* Under the lock. */
static bool find_stream(
    const struct task *task, uint32_t stream, struct stream_position *ret_position)
{
    bool known = false;
    for (size_t i = 0; i < task->warm_stream_count && !known; i++) {
        known = task->warm_streams[i].stream == stream;
        if (known) {
            *ret_position = task->warm_streams[i];
        }
    }
    return known;
}

bool task_warm_stream(struct task *task, uint32_t stream, struct stream_position *ret_position)
{
    pthread_mutex_lock(&task->lock);
    bool known = find_stream(task, stream, ret_position);
    pthread_mutex_unlock(&task->lock);
    return known;
}

uint32_t task_warm_tasks(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    uint32_t tasks = task->warm_tasks;
    pthread_mutex_unlock(&task->lock);
    return tasks;
}

void task_join(struct task *task, uint32_t stream)
{
    struct stream_position at = {0};
    pthread_mutex_lock(&task->lock);
    find_stream(task, stream, &at);
    task_step(task, &(struct task_event){
                        .type = TASK_EVENT_JOIN, .cursor = {.stream = stream, .epoch = at.epoch}});
    pthread_mutex_unlock(&task->lock);
}

bool task_await_streams(struct task *task)
{
    struct cadre_error ignored;
    pthread_mutex_lock(&task->lock);
    CADRE_ASSERT(task->warm); /* it was ordered to prepare alone */
    while (
        !task->roster_due && !task->warm_news && task_wait_ended(task, &ignored) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    bool moved =
        task->warm_news && !task->roster_due && task_wait_ended(task, &ignored) == CADRE_PENDING;
    task->warm_news = false;
    pthread_mutex_unlock(&task->lock);
    return moved;
}

cadre_status task_await_plan(
    struct task *task, struct task_roster *ret_roster, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    cadre_status status = CADRE_PENDING;
    while (!task->roster_due && (status = task_wait_ended(task, error)) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    if (task->roster_due) {
        *ret_roster = task->roster;
        CADRE_ASSERT(ret_roster->member_count == 0 || ret_roster->rank < ret_roster->member_count);
        task->roster = (struct task_roster){0};
        task->roster_due = false;
        status = ret_roster->member_count > 0 ? CADRE_OK
                                              : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                                    "no memory for the job's roster");
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

/* Under the lock: a thread has waited for `slot` for so long. */
static void report_stall(struct task *task, uint32_t slot, uint64_t waited_us)
{
    CADRE_ASSERT(slot < LIMIT_TASKS_PER_JOB);
    struct task_stall stall = {
        .position = task->core.position, .slot = slot, .waited_us = waited_us};
    task_step(task, &(struct task_event){.type = TASK_EVENT_STALL, .stall = &stall});
}

void task_stall(struct task *task, uint32_t slot, uint64_t waited_us)
{
    pthread_mutex_lock(&task->lock);
    report_stall(task, slot, waited_us);
    pthread_mutex_unlock(&task->lock);
}

void task_hang(struct task *task, const struct task_hang *hang, uint64_t waited_us)
{
    pthread_mutex_lock(&task->lock);
    const struct task_stall stall = {.position = task->core.position,
        .slot = task->core.slot,
        .waited_us = waited_us,
        .hang = *hang};
    task_step(task, &(struct task_event){.type = TASK_EVENT_STALL, .stall = &stall});
    pthread_mutex_unlock(&task->lock);
}

/* Under the lock: until something changes, or `until_us`. */
static void wait_until(struct task *task, uint64_t until_us)
{
    (void)thread_wait_until(&task->changed, &task->lock, until_us);
}

/* Under the lock: CADRE_PENDING while the step that the program has begun may still be released. */
static cadre_status task_wait_unadmitted(const struct task *task, struct cadre_error *error)
{
    return task_core_halts_next(&task->core)
               ? cadre_error_set(error, CADRE_ABORTED, "the job regroups before this step")
               : task_wait_hopeless(task, error);
}

cadre_status task_admit(struct task *task, uint64_t position, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    uint64_t since_us = 0;
    uint64_t report_at_us = 0;
    pthread_mutex_lock(&task->lock);
    while (!task_core_may_enter(&task->core, position)) {
        status = task_wait_unadmitted(task, error);
        if (status != CADRE_PENDING) {
            break;
        }
        if (since_us == 0) {
            since_us = clock_monotonic_us();
            report_at_us = since_us + STALL_FIRST_US;
            task_step(task, &(struct task_event){.type = TASK_EVENT_STALLED, .position = position});
            continue;
        }
        wait_until(task, report_at_us);
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= report_at_us && !task_core_may_enter(&task->core, position)) {
            report_at_us = now_us + STALL_AGAIN_US;
            report_stall(task, task->core.slot, now_us - since_us);
        }
    }
    if (status == CADRE_PENDING) {
        status = CADRE_OK;
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

cadre_status task_apply(struct task *task, uint64_t position, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    CADRE_ASSERT(!task->core.applying); /* a step is written once */
    task_step(task, &(struct task_event){.type = TASK_EVENT_APPLY, .position = position});
    cadre_status status = CADRE_OK;
    if (!task->core.applying) {
        status = task_wait_hopeless(task, error);
        if (status == CADRE_PENDING) {
            status = cadre_error_set(error, CADRE_ABORTED,
                "step %llu was stopped before its variables were written",
                (unsigned long long)position);
        }
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

cadre_status task_await_goodbye(struct task *task, bool *ret_void, struct cadre_error *error)
{
    pthread_mutex_lock(&task->lock);
    cadre_status status = CADRE_PENDING;
    while ((status = task_wait_ended(task, error)) == CADRE_PENDING && !task->abort_mesh &&
           !task->roster_due) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    if (status == CADRE_PENDING) {
        status = cadre_error_set(error, CADRE_ABORTED, "%s", task->abort_text);
    }
    *ret_void = task->void_exit;
    if (task->core.phase == TASK_EXIT && !task->void_exit) {
        status = CADRE_OK; /* also when the daemon disconnected right after */
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

bool task_dismissed(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    bool dismissed = task->core.phase == TASK_EXIT && !task->void_exit;
    pthread_mutex_unlock(&task->lock);
    return dismissed;
}

/* Under the lock. */
static bool is_published(const struct task *task, uint64_t position)
{
    return task->core.published != POSITION_NONE && task->core.published >= position;
}

cadre_status task_await_published(
    struct task *task, uint64_t position, bool last, struct cadre_error *error)
{
    CADRE_ASSERT(position != POSITION_NONE);
    pthread_mutex_lock(&task->lock);
    cadre_status status = CADRE_OK;
    uint64_t since_us = clock_monotonic_us();
    uint64_t report_at_us = since_us + STALL_FIRST_US;
    task_step(task, &(struct task_event){.type = TASK_EVENT_FLUSH}); /* the report was held back */
    while (!is_published(task, position) &&
           (status = task_wait_hopeless(task, error)) == CADRE_PENDING) {
        if (!last) {
            pthread_cond_wait(&task->changed, &task->lock);
            continue;
        }
        wait_until(task, report_at_us);
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= report_at_us && !is_published(task, position)) {
            report_at_us = now_us + STALL_AGAIN_US;
            report_stall(task, task->core.slot, now_us - since_us);
        }
    }
    if (is_published(task, position)) {
        status = CADRE_OK;
    }
    pthread_mutex_unlock(&task->lock);
    return status;
}

cadre_status task_await_stop(struct task *task, struct cadre_error *error)
{
    cadre_status status = CADRE_PENDING;
    pthread_mutex_lock(&task->lock);
    while (!task_core_stops_next(&task->core) && !task_core_stops(&task->core) &&
           (status = task_wait_hopeless(task, error)) == CADRE_PENDING) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    pthread_mutex_unlock(&task->lock);
    return status == CADRE_PENDING ? CADRE_OK : status;
}

/* Under the lock. */
static enum task_pause_point pause_point(const struct task *task)
{
    return task_core_halts_next(&task->core)   ? TASK_PAUSES
           : task_core_stops_next(&task->core) ? TASK_STOPS
           : task_core_stops(&task->core)      ? TASK_STOPPED
                                               : TASK_CONTINUES;
}

enum task_pause_point task_pause_point(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    enum task_pause_point edge = pause_point(task);
    pthread_mutex_unlock(&task->lock);
    return edge;
}

cadre_status task_await_begun(struct task *task, uint64_t position, bool goes_on,
    enum task_pause_point *ret_at, struct cadre_error *error)
{
    cadre_status status = CADRE_PENDING;
    pthread_mutex_lock(&task->lock);
    while (!task_core_may_enter(&task->core, position)) {
        enum task_pause_point at = pause_point(task);
        if (at != TASK_CONTINUES && (at != TASK_PAUSES || !goes_on)) {
            break;
        }
        if ((status = task_wait_hopeless(task, error)) != CADRE_PENDING) {
            break;
        }
        pthread_cond_wait(&task->changed, &task->lock);
    }
    *ret_at = pause_point(task);
    pthread_mutex_unlock(&task->lock);
    return status == CADRE_PENDING ? CADRE_OK : status;
}

void task_report_paused(struct task *task, uint64_t digest)
{
    pthread_mutex_lock(&task->lock);
    task_step(task, &(struct task_event){.type = TASK_EVENT_PAUSE_POINT, .digest = digest});
    pthread_mutex_unlock(&task->lock);
}

uint64_t task_checkpoint_at(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    uint64_t position = task->core.checkpoint_at;
    pthread_mutex_unlock(&task->lock);
    return position;
}

uint64_t task_published(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    uint64_t published = task->core.published;
    pthread_mutex_unlock(&task->lock);
    return published;
}

bool task_halted(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    bool halted =
        (task->core.phase == TASK_FROZEN || task_core_halts_next(&task->core)) && !task->abort_mesh;
    pthread_mutex_unlock(&task->lock);
    return halted;
}

void task_get_reported(
    struct task *task, struct cursor *ret_cursor, struct consumption *ret_consumption)
{
    pthread_mutex_lock(&task->lock);
    *ret_cursor = task->core.cursor;
    *ret_consumption = task->core.consumption;
    pthread_mutex_unlock(&task->lock);
}

uint64_t task_position(struct task *task)
{
    pthread_mutex_lock(&task->lock);
    uint64_t position = task->core.position;
    pthread_mutex_unlock(&task->lock);
    return position;
}
