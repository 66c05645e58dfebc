/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/task.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/task/task_state.h"

/* Under the lock: CADRE_PENDING while its generation goes on. When this task is ended because
 * another one was lost, the abort arrives before the order to exit, and its text is the reason. */
static cadre_status generation_end_over(const struct task *task, struct cadre_error *error)
{
    if (task->lost) {
        return cadre_error_set(error, task->lost_error.code, "%s", task->lost_error.text);
    }
    if (task->abort_mesh) {
        const char *text = task->cause_text[0] != '\0' ? task->cause_text : task->abort_text;
        return cadre_error_set(error, CADRE_ABORTED, "%s", text);
    }
    if (task->void_exit) {
        return cadre_error_set(
            error, CADRE_ABORTED, "this task was ended by the coordinator: %s", task->exit_text);
    }
    return task->core.phase == TASK_EXIT ? CADRE_OK : CADRE_PENDING;
}

cadre_status task_await_generation_end(
    struct task *task, const bool *stop, struct cadre_error *error)
{
    cadre_status status;
    pthread_mutex_lock(&task->lock);
    while ((status = generation_end_over(task, error)) == CADRE_PENDING && !*stop) {
        pthread_cond_wait(&task->changed, &task->lock);
    }
    pthread_mutex_unlock(&task->lock);
    return status == CADRE_PENDING ? CADRE_OK : status;
}

void task_cancel_await(struct task *task, bool *stop)
{
    pthread_mutex_lock(&task->lock);
    CADRE_ASSERT(!*stop); /* one thread waits, once */
    *stop = true;
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
}
