/* SPDX-License-Identifier: Apache-2.0
 * In place of worker/host/daemon/isolate.c: tasks as the user that runs the test. */
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"

cadre_status isolate_enter(struct task_files *task, struct cadre_error *error)
{
    (void)task;
    (void)error;
    return CADRE_OK;
}

cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error)
{
    (void)task;
    (void)error;
    *ret_confinement = (struct task_confinement){0};
    return CADRE_OK;
}

cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error)
{
    (void)task;
    (void)error;
    return CADRE_OK;
}

bool isolate_leave(struct task_files *task)
{
    (void)task;
    return false;
}

enum uid_state isolate_uid_state(struct task_files *task)
{
    (void)task;
    return UID_CLEAN;
}

void isolate_empty(const struct task_files *task)
{
    (void)task;
}

bool isolate_emptied(struct task_files *task)
{
    (void)task;
    return true;
}
