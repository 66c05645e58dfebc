/* SPDX-License-Identifier: Apache-2.0
 * cadre_finish, the orderly end of a program: the last checkpoint, the last meeting of all tasks,
 * bye. The program calls it; strategy_lifecycle/ frees the strategy afterwards. */
#include "cadre/program.h"

#include <stdio.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/devices/replica_device.h"
#include "worker/library/runtime/digests/digests.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/lifecycle/constructors.h"
#include "worker/library/runtime/preemption/preemption.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"
#include "worker/library/runtime/variables/variable.h"

#define SAVES_MOST 3

/* An error of the loop that the program did not look at. */
static cadre_status finish_sticky(const cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = strategy_check(strategy, error);
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->input->dataset_count; i++) {
        const struct cadre_error *failed = &strategy->input->datasets[i]->failed;
        if (failed->code != CADRE_OK) {
            status = cadre_error_set(error, failed->code, "%s", failed->text);
        }
    }
    return status;
}

/* All tasks end together, because one that is still in a step would wait for ever for those that
 * ended: they meet in a collective that equals no other. */
static cadre_status end_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    const uint64_t *position = user;
    uint64_t key = collective_key(*position, UINT64_MAX - 1);
    char what[64];
    snprintf(what, sizeof what, "cadre_finish after %llu steps", (unsigned long long)*position);
    return collective_meet_between_steps(strategy, local, what, key, error);
}

static cadre_status end_together(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->roster.member_count > 1);
    uint64_t position = strategy_position(strategy);
    struct cadre_error ended;
    cadre_status status = strategy_each_replica(strategy, end_here, &position, &ended);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_finish was called after %llu steps, and not all tasks end there: %s",
            (unsigned long long)position, ended.text);
    }
    *error = ended;
    return status;
}

/* Protocol, rule 17: the chief saves, and reports that it is done when that is published, so that
 * the job does not end before, whichever task dies. The others do not wait for it. A bit that flips
 * meanwhile in the copy is found, and the copy is taken again; one in the state is found when the
 * state is hashed again. */
static cadre_status save_last(
    cadre_strategy *strategy, uint64_t *ret_digest, struct cadre_error *error)
{
    CADRE_TRY(digests_at_end(strategy, ret_digest, error));
    if (strategy->variables->count == 0 && streamed_count(strategy) == 0) {
        return CADRE_OK;
    }
    cadre_status status = checkpoint_save(strategy, *ret_digest, error);
    for (int tried = 1; status == CADRE_DATA_LOSS && tried < SAVES_MOST; tried++) {
        CADRE_TRY(digests_at_end(strategy, ret_digest, error));
        status = checkpoint_save(strategy, *ret_digest, error);
    }
    return status == CADRE_OK || status == CADRE_ABORTED ? status
                                                         : strategy_set_failed(strategy, error);
}

/* In one generation. ABORTED and similar codes: another one may follow, and all meet again. */
static cadre_status end_once(
    cadre_strategy *strategy, bool *ret_reported, bool *ret_void, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->roster.member_count > 0);
    uint64_t digest = 0;
    *ret_reported = false;
    CADRE_TRY(save_last(strategy, &digest, error));
    *ret_reported = task_finish(strategy->task, strategy->roster.generation, digest);
    if (strategy->roster.member_count > 1 && !task_dismissed(strategy->task)) {
        CADRE_TRY(end_together(strategy, error));
    }
    return task_await_goodbye(strategy->task, ret_void, error);
}

/* A joiner whose program found no step left to do. If the job ends without it, it is dismissed. */
static cadre_status join_at_the_end(
    cadre_strategy *strategy, bool *ret_void, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->state == STATE_WARM);
    task_join(strategy->task, 0);
    cadre_status status = task_await_goodbye(strategy->task, ret_void, error);
    return status == CADRE_ABORTED && !*ret_void ? generation_next(strategy, error) : status;
}

static cadre_status end_in_order(
    cadre_strategy *strategy, bool *ret_void, struct cadre_error *error)
{
    bool reported = false;
    for (;;) {
        cadre_status status = end_once(strategy, &reported, ret_void, error);
        if (status == CADRE_OK || *ret_void || strategy->failed.code != CADRE_OK) {
            return status;
        }
        if (!strategy_is_peer_failure(status)) {
            return strategy_set_failed(strategy, error);
        }
        struct cadre_error cause = *error;
        if (!task_dismissed(strategy->task)) {
            status = strategy_regroup(strategy, &cause, error);
        }
        if (reported && task_dismissed(strategy->task)) {
            return CADRE_OK; /* the others have left already */
        }
        CADRE_TRY(status);
        CADRE_TRY(preemption_check(strategy, error));
    }
}

/* Waits for the functions of cadre_on_apply of the last step, which write variables. */
static cadre_status await_devices(cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = replica_devices_synchronize(strategy, error);
    return status == CADRE_OK || strategy_is_peer_failure(status)
               ? CADRE_OK
               : strategy_set_failed(strategy, error);
}

static cadre_status finish_finish(
    cadre_strategy *strategy, struct strategy_call *call, bool *ret_void, struct cadre_error *error)
{
    *ret_void = false;
    if (strategy_is_registered(strategy) && strategy->origin != STRATEGY_CONSTRUCTED) {
        return lifetime_require_constructed(strategy, "cadre_finish", error);
    }
    cadre_status status = strategy_require(strategy, "cadre_finish", call, error);
    if (status == CADRE_OK) {
        status = finish_sticky(strategy, error);
        if (status != CADRE_OK && strategy->failed.code == CADRE_OK) {
            return strategy_set_failed(strategy, error); /* of a dataset: reported to the others */
        }
    }
    if (status != CADRE_OK) {
        return status;
    }
    reports_flush(strategy);
    CADRE_TRY(await_devices(strategy, error));
    if (strategy->state == STATE_WARM) {
        CADRE_TRY(join_at_the_end(strategy, ret_void, error));
        if (strategy->state == STATE_WARM) {
            return CADRE_OK; /* the job ended meanwhile, without it */
        }
    }
    CADRE_TRY(sync_restore(strategy, error)); /* because its program found no step left to do */
    const struct cadre_error undone = strategy->undone;
    CADRE_TRY(end_in_order(strategy, ret_void, error));
    *error = undone; /* all is saved as it was before that step */
    return undone.code;
}

int cadre_finish(cadre_strategy *strategy)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    bool is_void = false;
    int exit_code = 1;
    cadre_status status = finish_finish(strategy, &call, &is_void, &error);
    bool has = call.registry_slot > 0; /* else another call has it, or it was freed */
    if (status != CADRE_OK && has && preemption_left(strategy, &exit_code)) {
        api_return(status, &error); /* all is saved, and reported */
    } else if (status != CADRE_OK) {
        api_return(status, &error);
        if (has) {
            reports_end(strategy);
        }
        show_failure(&error);
    }
    if (is_void) {
        _exit(1); /* protocol rule 16: nothing of the program may run after its loop */
    }
    if (has) {
        strategy_close(strategy);
    }
    return status == CADRE_OK ? 0 : exit_code;
}
