/* SPDX-License-Identifier: Apache-2.0
 * The end of a save: the program goes on, or its job leaves it. All tasks do the same. plain_save.c
 * calls it.
 *
 *     step S is released to all                              the program goes on
 *     halt at S: tasks join or leave ─▶ all report ─▶ reset  all begin again from S
 *     stop at S: the job leaves ─▶ all report ─▶ bye         it goes on elsewhere from S */
#include <stdio.h>
#include <stdlib.h>

#include "cadre/preemption.h"
#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/plain/plain_state.h"

/* The end of the program's calls, which is in order: its state is saved. */
static cadre_status leave(struct plain *plain, const char *why, struct cadre_error *error)
{
    plain->saves.left = true;
    cadre_check_set_exit_code(CADRE_CANCELLED, CADRE_EXIT_PREEMPTED);
    plain->failed = (struct cadre_error){.code = CADRE_CANCELLED};
    snprintf(plain->failed.text, sizeof plain->failed.text, "%s: saved at step %llu", why,
        (unsigned long long)plain->saves.position);
    *error = plain->failed;
    return error->code;
}

static cadre_status leave_to_stop(struct plain *plain, struct cadre_error *error)
{
    bool is_void = false;
    CADRE_TRY(task_await_stop(plain->task, error)); /* another task has the order already */
    task_report_paused(plain->task, 0);
    cadre_status status = task_await_goodbye(plain->task, &is_void, error);
    if (task_dismissed(plain->task)) {
        return leave(plain, "preempted", error);
    }
    return status != CADRE_OK ? status : cadre_error_set(error, CADRE_ABORTED, "the job goes on");
}

/* With other tasks all begin again, so this process is reset, as are those that come. When another
 * member is lost meanwhile they begin again because of it. */
static cadre_status leave_to_begin_again(struct plain *plain, struct cadre_error *error)
{
    bool is_void = false;
    task_report_paused(plain->task, 0);
    cadre_status status = task_await_goodbye(plain->task, &is_void, error);
    CADRE_ASSERT(status != CADRE_OK); /* it is not the end of the job */
    return is_void ? leave(plain, "tasks join or leave, and all begin again", error) : status;
}

/* What the job does after the save, as all tasks see it. A pause is lifted when the task that was
 * to join has ended: those that have not received that yet follow the others. */
static cadre_status agree_on_end(
    struct plain *plain, enum task_pause_point *ret_at, struct cadre_error *error)
{
    uint32_t own = (uint32_t)*ret_at;
    uint32_t count = plain->roster.member_count;
    uint32_t pauses = 0;
    uint32_t stops = 0;
    CADRE_FREE_AT_EXIT uint32_t *ends = calloc(count, sizeof *ends);
    if (ends == NULL) { /* the others wait for this task, so it ends their generation */
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u tasks", count);
        return plain_end_collective(plain, error->code, error);
    }
    CADRE_TRY(plain_gather(plain, &own, sizeof own, NULL, ends, "a state was saved", error));
    for (uint32_t rank = 0; rank < count; rank++) {
        pauses += ends[rank] == TASK_PAUSES;
        stops += ends[rank] == TASK_STOPS;
    }
    *ret_at = stops > 0 ? TASK_STOPS : pauses == count ? TASK_PAUSES : TASK_CONTINUES;
    return CADRE_OK;
}

cadre_status plain_go_on(struct plain *plain, struct cadre_error *error)
{
    enum task_pause_point own = TASK_CONTINUES;
    uint64_t position = plain->saves.position;
    cadre_status status = task_await_begun(plain->task, position, false, &own, error);
    CADRE_TRY(plain_end_collective(plain, status, error));
    enum task_pause_point at = own;
    CADRE_TRY(agree_on_end(plain, &at, error));
    if (at == TASK_STOPS) {
        status = leave_to_stop(plain, error);
    } else if (at == TASK_PAUSES) {
        status = leave_to_begin_again(plain, error);
    } else if (own == TASK_PAUSES) {
        status = task_await_begun(plain->task, position, true, &own, error);
    }
    return plain->saves.left ? status : plain_end_collective(plain, status, error);
}
