/* SPDX-License-Identifier: Apache-2.0
 * cadre_next: the next batch of the current epoch of a distributed dataset. The program calls it.
 */
#include <inttypes.h>

#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/trace/trace.h"

/* Makes a value of the program with the tensors of the input's batch. */
static cadre_status make_batch(cadre_distributed_dataset *distributed,
    struct distributed_batch *batch, cadre_per_replica **ret_value, struct cadre_error *error)
{
    cadre_per_replica *value = per_replica_new(batch->replicas, batch->elements[0].count);
    if (value == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a batch");
    }
    value->source =
        (struct batch_source){.dataset = distributed, .epoch = batch->epoch, .step = batch->step};
    value->names = distributed_input_spec(distributed->input)->names;
    batch_take_over(value, batch);
    per_replica_lend(value);
    *ret_value = value;
    return CADRE_OK;
}

/* What precedes the step at which a joiner comes in, the others have done: it makes no agreement
 * here, but when the step is run. Steps that the others have taken exist, whether there is an
 * element of them here or not. */
static cadre_status read_arriving(cadre_distributed_dataset *distributed, uint64_t step,
    struct distributed_batch *batch, struct cadre_error *error)
{
    uint64_t epoch = distributed->at.epochs_begun - 1;
    CADRE_TRY(distributed_read(distributed, epoch, step, batch, error));
    if (batch->present == 0 && step >= distributed->exists_until) {
        distributed_batch_clear(batch);
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "dataset '%s' has no step %" PRIu64 " in epoch %" PRIu64, distributed->name, step,
            epoch);
    }
    return CADRE_OK;
}

/* Elements of fully known shapes are for all replicas or none, as in TensorFlow: what is left of
 * them is used by no replica, which must not go unnoticed. */
static void warn_of_left(
    cadre_distributed_dataset *distributed, uint64_t step, const struct distributed_batch *batch)
{
    uint64_t epoch = batch->epoch;
    uint64_t input_step = step;
    if (distributed->warned_left || batch->present == 0) {
        return;
    }
    distributed->warned_left = true;
    distributed_input_step(distributed, &epoch, &input_step);
    int64_t known = distributed_input_left(distributed->input, epoch, input_step);
    uint64_t left = known < 0 ? batch->present : (uint64_t)known;
    uint64_t rows = left * batch->own_rows / batch->present; /* all shapes are one */
    show_warning("dataset '%s' ended after step %" PRIu64 " of epoch %" PRIu64 " with %s%" PRIu64
                 " element%s left (%" PRIu64
                 " row%s), which cadre_next gives to none of the %" PRIu32
                 " replicas, as the elements have one fixed shape and not all replicas would have "
                 "one; set partial_steps in cadre_input_options, which gives the others empty "
                 "tensors, or batch without drop_remainder",
        distributed->name, step, batch->epoch, known < 0 ? "at least " : "", left,
        left == 1 ? "" : "s", rows, rows == 1 ? "" : "s", batch->replicas);
}

/* Step `step` of the current epoch, with what all tasks agreed on where they must. */
static cadre_status read_step(cadre_distributed_dataset *distributed, uint64_t step,
    struct distributed_batch *batch, struct step_agreement *step_agreement,
    struct cadre_error *error)
{
    const struct dataset_position *at = &distributed->at;
    const uint64_t epoch = at->epochs_begun - 1;
    bool over = at->ended && step >= at->end;
    cadre_status status = CADRE_OK;
    if (over) {
        status = CADRE_OUT_OF_RANGE;
    } else if (!distributed_input_agrees(distributed->input)) {
        status = distributed_read(distributed, epoch, step, batch, error);
    } else if (strategy_is_catching_up(distributed->strategy)) {
        status = read_arriving(distributed, step, batch, error);
    } else {
        CADRE_TRY(strategy_check(distributed->strategy, error));
        status = step_agreement_make(
            distributed, epoch, step, NULL, false, batch, step_agreement, error);
        over = status == CADRE_OK && step_agreement->present == 0;
    }
    if (status == CADRE_OK && batch->present < batch->replicas &&
        !distributed_input_gives_partial(distributed->input)) {
        warn_of_left(distributed, step, batch);
        over = true;
    }
    if (!over) {
        return status;
    }
    distributed_batch_clear(batch);
    return cadre_error_set(error, CADRE_OUT_OF_RANGE,
        "dataset '%s' has no step %" PRIu64 " in epoch %" PRIu64, distributed->name, step, epoch);
}

/* The next batch becomes distributed->batch. */
static cadre_status take_next(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    struct distributed_batch batch = {0};
    struct step_agreement step_agreement = {0};
    uint64_t step = distributed->at.next;
    distributed_drop_batch(distributed);
    cadre_status status = read_step(distributed, step, &batch, &step_agreement, error);
    if (status == CADRE_OK) {
        distributed->at.next++;
        status = make_batch(distributed, &batch, &distributed->batch, error);
    }
    if (status == CADRE_OK && step_agreement.generation != 0) {
        batch_agree(distributed->batch, &step_agreement);
    }
    if (status == CADRE_OUT_OF_RANGE) {
        distributed_end(distributed, step);
    }
    distributed_batch_clear(&batch);
    step_agreement_clear(&step_agreement);
    return status;
}

static cadre_status next_next(
    cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    cadre_status status = distributed_require(distributed, function, error);
    if (status == CADRE_OK) {
        status = strategy_require(distributed->strategy, function, &call, error);
    }
    if (status == CADRE_OK && distributed->strategy->left) {
        status = strategy_check(distributed->strategy, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (distributed->failed.code != CADRE_OK) {
        *error = distributed->failed;
        return error->code;
    }
    if (distributed->iterating.of != NULL) {
        status = iterator_enter(distributed, error);
        if (status != CADRE_OK) {
            return distributed_fail(distributed, error);
        }
        if (distributed->iterating.passed) {
            return cadre_error_set(error, CADRE_OUT_OF_RANGE,
                "the job is past iterator %" PRIu64 " of dataset '%s'",
                distributed->iterating.number, distributed->iterating.of->name);
        }
    }
    if (distributed->at.epochs_begun == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "dataset '%s' is in no epoch; call cadre_next_epoch before %s", distributed->name,
            function);
    }
    bool knew_end = distributed->at.ended;
    hooks_loop_point(distributed->strategy, LOOP_IN_NEXT, false);
    status = take_next(distributed, error);
    if (status == CADRE_OK) {
        hooks_loop_point(distributed->strategy, LOOP_IN_NEXT, true);
    } else if (status == CADRE_OUT_OF_RANGE && !knew_end) {
        /* Where its length was not known the epoch had a step, which the loop has passed. */
        hooks_loop_point(distributed->strategy, LOOP_IN_RUN, true);
    }
    bool stops = status == CADRE_OK && hooks_halt(distributed->strategy, error) != CADRE_OK;
    hooks_loop_point(distributed->strategy, LOOP_BETWEEN_STEPS, false);
    if (stops) {
        distributed_drop_batch(distributed); /* its elements are left for the tasks that go on */
        return error->code;
    }
    if (status != CADRE_OK && status != CADRE_OUT_OF_RANGE) {
        distributed_fail(distributed, error);
    }
    return status;
}

cadre_status cadre_next(cadre_distributed_dataset *distributed, cadre_per_replica **ret_batch)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_batch, __func__, "ret_batch", &error);
    if (status == CADRE_OK) {
        *ret_batch = NULL;
        struct trace_mark mark = trace_begin();
        status = next_next(distributed, __func__, &error);
        trace_end(mark, TRACE_INPUT, 0);
    }
    if (status == CADRE_OK) {
        *ret_batch = distributed->batch;
    }
    return api_return(status, &error);
}

/* --- inquiries --- */

cadre_status cadre_distributed_status(const cadre_distributed_dataset *distributed)
{
    struct cadre_error error = {0};
    if (distributed_require(distributed, __func__, &error) == CADRE_OK) {
        error = distributed->failed;
    }
    return api_return(error.code, &error);
}

int64_t cadre_distributed_steps(const cadre_distributed_dataset *distributed)
{
    return distributed_is_registered(distributed) ? distributed->steps : CADRE_CARDINALITY_UNKNOWN;
}

/* Whether the program is in an epoch of it. */
static bool is_entered(const cadre_distributed_dataset *distributed)
{
    const struct iterating *iterating = &distributed->iterating;
    return distributed->at.epochs_begun > 0 &&
           (iterating->of == NULL || (iterating->entered && !iterating->passed));
}

uint64_t cadre_epoch(const cadre_distributed_dataset *distributed)
{
    if (!distributed_is_registered(distributed)) {
        return 0;
    }
    if (distributed->iterating.of != NULL) {
        return distributed->iterating.number;
    }
    return is_entered(distributed) ? distributed->at.epochs_begun - 1 : 0;
}

uint64_t cadre_step(const cadre_distributed_dataset *distributed)
{
    return distributed_is_registered(distributed) && is_entered(distributed)
               ? distributed->at.applied
               : 0;
}

cadre_status cadre_distributed_spec(
    const cadre_distributed_dataset *distributed, cadre_element_spec *ret_spec)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_spec, __func__, "ret_spec", &error);
    if (status == CADRE_OK) {
        *ret_spec = (cadre_element_spec){0};
        status = distributed_require(distributed, __func__, &error);
    }
    if (status == CADRE_OK && distributed->input == NULL) {
        error = distributed->failed; /* it could not be opened for the present tasks */
        status = error.code;
    }
    if (status == CADRE_OK) {
        *ret_spec = *distributed_input_spec(distributed->input);
    }
    return api_return(status, &error);
}
