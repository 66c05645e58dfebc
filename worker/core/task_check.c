/* SPDX-License-Identifier: Apache-2.0
 * The invariants of a task core, checked after each step by its shell, the tests and the simulator.
 */
#include "worker/core/task_internal.h"

static const char *running_invariant(const struct task_core *core)
{
    if (core->position < core->resume || core->position > core->released) {
        return "applied steps were released in this generation";
    }
    if (core->sent_applied > core->position) {
        return "only applied steps are reported as applied";
    }
    if (core->wanted > core->released + 1 || core->wanted > core->position + 1 ||
        core->wanted_sent > core->wanted) {
        return "a program wants no step beyond the one that it is at";
    }
    if (!core->clean && !core->applying) {
        return "a running task is clean between its steps";
    }
    if (core->arrived > core->resume && core->wanted == core->resume) {
        return "nothing is claimed before the program has begun a step in this generation";
    }
    if (core->wanted > core->position && !core->begun) {
        return "a step that is wanted is begun";
    }
    if (core->wanted > core->resume &&
        (core->cursor.begin < core->resume || core->cursor.begin > core->position)) {
        return "the run of the program began in this generation";
    }
    if (!core->applying && (core->position > core->halt_at || core->finished)) {
        return "a task beyond the halt, or that has finished, is frozen";
    }
    return NULL;
}

const char *task_core_invariant(const struct task_core *core)
{
    if (core->window_steps < 1 || core->window_steps > LIMIT_WINDOW_STEPS) {
        return "the window is within its limits";
    }
    if (core->phase == TASK_EXIT) {
        return NULL;
    }
    if ((core->phase == TASK_JOIN) != (core->generation.number == 0)) {
        return "a task is in a generation unless it joins";
    }
    if (core->joins && !core->warm) {
        return "only a task that received WARM joins";
    }
    if (core->code != CADRE_OK && core->phase != TASK_JOIN &&
        (core->phase != TASK_FROZEN || core->reason != REPORT_FAILED)) {
        return "a task that has failed stays frozen";
    }
    if (core->released > core->arrived) {
        return "nothing is released that has not arrived";
    }
    if (core->report_due && (core->phase != TASK_FROZEN || !core->applying)) {
        return "a report waits only for a running apply";
    }
    if (core->staged && (core->phase != TASK_SYNC || core->clean)) {
        return "a task that receives beside its state is in SYNC";
    }
    if (core->applying && core->clean) {
        return "a state that is being written is not clean";
    }
    if (core->phase != TASK_RUN) {
        return core->applying && !core->report_due
                   ? "nothing is applied outside a running generation"
                   : NULL;
    }
    return running_invariant(core);
}
