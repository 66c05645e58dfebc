/* SPDX-License-Identifier: Apache-2.0
 * Datasets as a part of a strategy: what a step consumes, what follows when it is applied, and
 * the positions that go with the state from one generation to the next. The strategy's hooks
 * call it. */
#include "worker/library/runtime/input/input_hooks.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

#define READERS_WAIT_S 10 /* for functions that read ahead, at the end */

/* --- opening and closing --- */

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    strategy->input = calloc(1, sizeof *strategy->input);
    return strategy->input != NULL
               ? reports_open(strategy, error)
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for datasets");
}

static void end_dataset(cadre_distributed_dataset *distributed)
{
    char name[sizeof distributed->name];
    snprintf(name, sizeof name, "%s", distributed->name);
    if (!distributed_retire(distributed, READERS_WAIT_S * CADRE_US_PER_S)) {
        show_warning("dataset '%s': a function that reads ahead (a generator, a map, a file) has "
                     "not returned for %d s since the training ended, and is not waited for; end "
                     "the process, and free nothing that it uses",
            name, READERS_WAIT_S);
    }
}

static void close_part(cadre_strategy *strategy)
{
    struct input_part *input = strategy->input;
    if (input == NULL) {
        return;
    }
    reports_end(strategy);
    for (uint32_t i = 0; i < input->dataset_count; i++) {
        end_dataset(input->datasets[i]);
    }
    input->dataset_count = 0;
}

static void free_part(cadre_strategy *strategy)
{
    struct input_part *input = strategy->input;
    if (input != NULL) {
        CADRE_ASSERT(input->dataset_count == 0);
        CADRE_ASSERT(input->kept.at == NULL);
        reports_free(strategy);
        free(input->datasets);
        free(input);
        strategy->input = NULL;
    }
}

/* --- in a step --- */

/* When an iterator is released its stream becomes the next one's. */
static bool is_of_iterator_before(const struct batch_source *source)
{
    const cadre_distributed_dataset *dataset = source->dataset;
    return dataset->iterating.of != NULL && source->epoch != dataset->iterating.number;
}

static cadre_status input_hooks_check(const struct step_order *order, struct cadre_error *error)
{
    if (order->batch != NULL && (!distributed_is_registered(order->batch->source.dataset) ||
                                    is_of_iterator_before(&order->batch->source))) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_run was given a batch of a strategy that has ended, or of an iterator that was "
            "released; give it one that this strategy's cadre_next returned");
    }
    if (order->batch != NULL && order->batch->source.dataset->strategy != order->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_run was given a batch of another strategy; give it one of a dataset that this "
            "strategy distributes");
    }
    return CADRE_OK;
}

/* What this task will consume. */
static struct step_consumption consumption_of(const struct step_order *order)
{
    const struct batch_source *source = &order->batch->source;
    struct step_consumption consumption = {.samples = source->samples,
        .consumed = {source->consumed.lane[0], source->consumed.lane[1]},
        .expected = {source->expected.lane[0], source->expected.lane[1]},
        .provable = source->provable ? 1 : 0};
    struct digest expected;
    if (order->strategy->roster.rank == 0 && files_expected(order->batch, &expected)) {
        consumption.expected[0] = expected.lane[0];
        consumption.expected[1] = expected.lane[1];
        consumption.provable = 1;
    }
    return consumption;
}

static cadre_status input_hooks_begin(struct step_order *order, struct cadre_error *error)
{
    CADRE_ASSERT(!order->consumes || order->batch != NULL);
    if (order->batch != NULL) {
        CADRE_TRY(distributed_refresh(order->batch, error));
    }
    if (!order->consumes) {
        order->own = (struct step_consumption){0};
        order->stream = 0;
        distributed_announce(order->strategy, NULL, 0, order->position);
        return CADRE_OK;
    }
    const struct batch_source *source = &order->batch->source;
    order->own = consumption_of(order);
    order->stream = source->dataset->stream;
    distributed_announce(order->strategy, source->dataset, source->step, order->position);
    return CADRE_OK;
}

static void add_consumption(struct consumption *consumption, const struct step_consumption *step)
{
    consumption->steps++;
    consumption->samples += step->samples;
    for (int lane = 0; lane < 2; lane++) {
        consumption->consumed[lane] += step->consumed[lane];
        consumption->expected[lane] += step->expected[lane];
    }
    consumption->provable = consumption->provable && step->provable != 0;
}

/* What follows from an applied step, whether this task ran it or received its state. */
static void take_account(const struct step_order *order)
{
    cadre_strategy *strategy = order->strategy;
    if (order->consumes) {
        struct batch_source *source = &order->batch->source;
        CADRE_ASSERT(!source->was_run);
        source->was_run = true;
        source->dataset->at.applied = source->step + 1;
    }
    if (strategy->input->reenters) {
        strategy->input->reenters = false;
        for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
            strategy->input->datasets[i]->reenters = false;
        }
    }
}

static void input_hooks_commit(struct step_order *order)
{
    order->consumption = (struct consumption){0};
    if (order->consumes) {
        cadre_distributed_dataset *dataset = order->batch->source.dataset;
        struct cadre_error failure;
        CADRE_ASSERT(order->strategy->step.consumption_known);
        if (files_applied(order->batch, &failure) != CADRE_OK) {
            dataset->failed = failure; /* the step is applied; there is no next one */
        }
        add_consumption(&dataset->at.consumption, &order->strategy->step.whole);
        dataset->at.consumption.files = files_consumed(order->batch);
        order->consumption = dataset->at.consumption;
    }
    take_account(order);
}

static cadre_status input_hooks_adopt(struct step_order *order, struct cadre_error *error)
{
    (void)error;
    if (order->consumes) {
        order->batch->source.dataset->at.consumption = order->consumption;
    }
    take_account(order);
    return CADRE_OK;
}

static void input_hooks_report(const struct step_order *order)
{
    reports_step(order->strategy, order->consumes ? order->batch->source.dataset : NULL,
        order->consumes ? order->batch->source.global_rows : 0);
}

/* --- in a generation --- */

static cadre_status input_hooks_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    struct kept_positions *kept = &strategy->input->kept;
    if (!sync_plan->takes_state) {
        return CADRE_OK;
    }
    CADRE_ASSERT(kept->at == NULL);
    kept->at = calloc((size_t)strategy->input->dataset_count + 1, sizeof kept->at[0]);
    kept->reenters = calloc((size_t)strategy->input->dataset_count + 1, sizeof kept->reenters[0]);
    if (kept->at == NULL || kept->reenters == NULL) {
        free(kept->at);
        free(kept->reenters);
        *kept = (struct kept_positions){0};
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the positions of the datasets");
    }
    kept->count = strategy->input->dataset_count;
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->at[i] = strategy->input->datasets[i]->at;
        kept->reenters[i] = strategy->input->datasets[i]->reenters;
    }
    kept->serial_last = strategy->input->serial_last;
    return CADRE_OK;
}

static void forget_kept(cadre_strategy *strategy)
{
    free(strategy->input->kept.at);
    free(strategy->input->kept.reenters);
    strategy->input->kept = (struct kept_positions){0};
}

static void put_back(cadre_strategy *strategy)
{
    const struct kept_positions *kept = &strategy->input->kept;
    for (uint32_t i = 0; kept->at != NULL && i < strategy->input->dataset_count; i++) {
        bool new = i >= kept->count; /* an iterator that was made for the received state */
        cadre_distributed_dataset *dataset = strategy->input->datasets[i];
        dataset->at = new ? (struct dataset_position){0} : kept->at[i];
        dataset->reenters = !new && kept->reenters[i];
    }
    if (kept->at != NULL) {
        strategy->input->serial_last = kept->serial_last;
    }
    forget_kept(strategy);
}

/* The program re-enters the job at its position. */
static void be_led(cadre_strategy *strategy)
{
    strategy->input->reenters = true;
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        cadre_distributed_dataset *dataset = strategy->input->datasets[i];
        dataset->reenters = true;
        dataset->steps = distributed_steps_now(dataset);
        strategy->input->serial_last = dataset->at.serial > strategy->input->serial_last
                                           ? dataset->at.serial
                                           : strategy->input->serial_last;
    }
}

/* A task that was in the generation before reaches the source's position by itself: its program
 * begins epochs. */
static cadre_status input_hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error)
{
    CADRE_ASSERT(install_mode == INSTALL_ADOPTED_STEP || install_mode == INSTALL_JOINED);
    if (install_mode == INSTALL_ADOPTED_STEP) {
        put_back(strategy);
    } else {
        forget_kept(strategy);
        be_led(strategy);
    }
    return distributed_take_received(strategy, install_mode == INSTALL_JOINED, error);
}

static void input_hooks_cleanup(cadre_strategy *strategy)
{
    if (strategy->input->kept.at != NULL) {
        put_back(strategy);
        distributed_drop_received(strategy);
    }
}

/* The new generation has received no run yet. */
static cadre_status input_hooks_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    strategy->input->cursor_end = 0;
    return distributed_reopen(strategy, error);
}

const struct strategy_hooks input_hooks = {
    .name = "input",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .check = input_hooks_check,
    .begin = input_hooks_begin,
    .commit = input_hooks_commit,
    .adopt = input_hooks_adopt,
    .report = input_hooks_report,
    .prepare = input_hooks_prepare,
    .install = input_hooks_install,
    .cleanup = input_hooks_cleanup,
    .reopen = input_hooks_reopen,
};
