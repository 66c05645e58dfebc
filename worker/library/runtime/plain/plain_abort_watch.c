/* SPDX-License-Identifier: Apache-2.0
 * The abort function of a plain program, and the thread that waits for its reason. */
#include <string.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/plain/plain.h"
#include "worker/library/runtime/task/task.h"

static void *watch_run(void *user)
{
    struct plain_abort_watch *watch = user;
    crash_thread("plain watch", 0);
    struct cadre_error error = {0};
    cadre_status status = task_await_generation_end(watch->task, &watch->stop, &error);
    if (status != CADRE_OK) {
        watch->function(status, error.text, watch->user);
    }
    return NULL;
}

void plain_abort_watch_close(struct plain_abort_watch *watch)
{
    if (watch->runs) {
        task_cancel_await(watch->task, &watch->stop);
        pthread_join(watch->thread, NULL);
        watch->runs = false;
    }
}

static cadre_status watch_open(
    struct plain *plain, cadre_abort_function function, void *user, struct cadre_error *error)
{
    struct plain_abort_watch *watch = &plain->watch;
    if (watch->function != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_on_abort was called a second time; there is one function, let it do both");
    }
    CADRE_ASSERT(!watch->runs);
    *watch = (struct plain_abort_watch){.task = plain->task, .function = function, .user = user};
    int failed = thread_start(&watch->thread, watch_run, watch);
    if (failed != 0) {
        watch->function = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no thread for the function of cadre_on_abort: %s", strerror(failed));
    }
    watch->runs = true;
    return CADRE_OK;
}

cadre_status cadre_on_abort(cadre_abort_function function, void *user)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    cadre_status status = plain_enter(__func__, &plain, &error);
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    status = function != NULL ? watch_open(plain, function, user, &error)
                              : argument_require(NULL, __func__, "function", &error);
    plain_leave(plain);
    return api_return(status, &error);
}
