/* SPDX-License-Identifier: Apache-2.0
 * A dataset's pipeline for the layout of a generation: opened, made by the program's function, and
 * opened again for another layout. distribute.c, epochs.c and input_hooks.c call it. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/input/node/user_call.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

#define PREFETCH_DEFAULT 2
#define STATE_BYTES_MAX  (4 * 1024 * 1024) /* in a manifest, which has room for four times that */

void distributed_close(cadre_distributed_dataset *distributed)
{
    input_prefetcher_free(distributed->prefetcher);
    distributed_input_close(distributed->input);
    distributed->prefetcher = NULL;
    distributed->input = NULL;
}

/* --- pipelines of functions --- */

struct pipelines {
    cadre_dataset **made; /* owned, with a reference each */
    uint32_t count;
};

static void pipelines_clear(struct pipelines *pipelines)
{
    for (uint32_t i = 0; pipelines->made != NULL && i < pipelines->count; i++) {
        cadre_dataset_release(pipelines->made[i]);
    }
    free(pipelines->made);
}

static cadre_status make_pipeline(cadre_distributed_dataset *distributed,
    const cadre_input_context *context, cadre_dataset **ret_data, struct cadre_error *error)
{
    static const char who[] = "cadre_distribute_datasets_from_function";
    *ret_data = NULL;
    CADRE_ASSERT(distributed->function != NULL);
    user_call_begin();
    cadre_status status =
        user_call_end(distributed->function(context, ret_data, distributed->user), who, error);
    if (status == CADRE_OK && *ret_data == NULL) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the function made no dataset for input pipeline %" PRIu32 " of %" PRIu32
            "; give one reference of a dataset",
            who, context->input_pipeline_id, context->num_input_pipelines);
    }
    return status;
}

/* One, or one for each replica. The number of a warm task's is the one after all others. */
static cadre_status make_pipelines(
    cadre_distributed_dataset *distributed, struct pipelines *pipelines, struct cadre_error *error)
{
    const cadre_strategy *strategy = distributed->strategy;
    uint32_t tasks = strategy_tasks(strategy);
    pipelines->count = distributed->per_replica ? strategy->local_replicas : 1;
    CADRE_ASSERT(pipelines->count > 0);
    pipelines->made = calloc(pipelines->count, sizeof pipelines->made[0]);
    if (pipelines->made == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %" PRIu32 " pipelines", pipelines->count);
    }
    for (uint32_t i = 0; i < pipelines->count; i++) {
        const cadre_input_context context = {
            .num_input_pipelines = distributed->per_replica ? pipelines->count : tasks,
            .input_pipeline_id = distributed->per_replica ? i : strategy_rank_of(strategy),
            .num_replicas_in_sync = tasks * strategy->local_replicas,
        };
        CADRE_TRY(make_pipeline(distributed, &context, &pipelines->made[i], error));
    }
    return CADRE_OK;
}

static cadre_status open_pipelines(cadre_distributed_dataset *distributed,
    const struct distributed_layout *layout, struct cadre_error *error)
{
    struct pipelines pipelines = {0};
    cadre_status status = make_pipelines(distributed, &pipelines, error);
    if (status == CADRE_OK) {
        status = distributed_input_open_pipelines(
            pipelines.made, pipelines.count, layout, &distributed->input, error);
    }
    pipelines_clear(&pipelines);
    return status;
}

/* --- opening --- */

static bool goes_to_devices(const cadre_distributed_dataset *distributed)
{
    return distributed->strategy->mesh_devices != NULL && !distributed->keep_on_host;
}

/* Nothing is added to what a function makes: where it reads ahead, its own prefetch has a thread.
 * Only batches that are copied to devices are ahead, as many as are copied. */
static uint32_t depth_otherwise(const cadre_distributed_dataset *distributed)
{
    if (distributed->function != NULL) {
        return goes_to_devices(distributed) ? distributed->device_batches : 0;
    }
    uint32_t own = distributed_input_prefetch_depth(distributed->input);
    return own > 0 ? own : PREFETCH_DEFAULT;
}

static cadre_status choose_depth(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    CADRE_ASSERT(distributed->input != NULL);
    if (distributed->depth == 0) {
        distributed->depth = depth_otherwise(distributed);
    }
    if (distributed->depth > INPUT_PREFETCH_DEPTH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "dataset '%s': %" PRIu32 " batches were to be read ahead; at most %d are possible",
            distributed->name, distributed->depth, INPUT_PREFETCH_DEPTH_MAX);
    }
    return CADRE_OK;
}

cadre_status distributed_open(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    const cadre_strategy *strategy = distributed->strategy;
    CADRE_ASSERT(distributed->input == NULL);
    CADRE_ASSERT(distributed->prefetcher == NULL);
    CADRE_ASSERT(strategy->roster.rank < strategy->roster.member_count);
    struct distributed_layout layout = {
        .workers = strategy->roster.member_count,
        .worker_index = strategy->roster.rank,
        .replicas = strategy->local_replicas,
        .policy = distributed->policy,
        .auto_workers = strategy->environment->tasks, /* the same in all generations */
        .auto_policy = distributed->began,
        .rebatch = distributed->rebatch,
        .partial_steps = distributed->partial_steps,
        .name = distributed->name,
        .wants_expected = strategy->roster.rank == 0,
        .shares = distributed->has_shares ? &distributed->shares : NULL,
        .state_bytes_max = STATE_BYTES_MAX,
    };
    cadre_status status =
        distributed->function != NULL
            ? open_pipelines(distributed, &layout, error)
            : distributed_input_open(distributed->data, &layout, &distributed->input, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "distribute the dataset '%s'", distributed->name);
    }
    distributed->layout = strategy->layout;
    distributed->cut++;
    distributed->endless =
        distributed->steps_per_epoch > 0 && distributed->iterating.of == NULL &&
        distributed_input_steps(distributed->input, 0) == CADRE_CARDINALITY_INFINITE;
    distributed->reads_epoch = UINT64_MAX; /* none yet */
    status = choose_depth(distributed, error);
    if (status != CADRE_OK) {
        return status;
    }
    enum tensor_memory_kind memory =
        distributed->keep_on_host ? TENSOR_MEMORY_HOST : distributed->strategy->batch_memory;
    CADRE_TRY(input_prefetcher_create(
        distributed->input, distributed->depth, memory, &distributed->prefetcher, error));
    if (goes_to_devices(distributed)) {
        input_prefetcher_stage(
            distributed->prefetcher, distributed->device_batches, batch_to_devices, distributed);
    }
    return CADRE_OK;
}

/* --- another epoch --- */

cadre_status distributed_begin(cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    bool from_start = false;
    CADRE_TRY(files_begin(distributed, &from_start, error));
    if (from_start) {
        distributed_close(distributed);
        CADRE_TRY(distributed_open(distributed, error));
    }
    return CADRE_OK;
}

/* --- another layout --- */

/* The step that the program takes first: of the batch that it holds, if it has not run it yet. */
static uint64_t first_asked(const cadre_distributed_dataset *distributed)
{
    const cadre_per_replica *batch = distributed->batch;
    bool holds = batch != NULL && !batch->source.was_run &&
                 batch->source.epoch + 1 == distributed->at.epochs_begun;
    return holds ? batch->source.step : distributed->at.next;
}

/* Whole files were dealt to the workers of the time: in the middle of an epoch they can be dealt
 * again only where a table has what was consumed. */
static void see_whether_it_is_cut(cadre_distributed_dataset *distributed, uint32_t workers)
{
    struct dataset_position *at = &distributed->at;
    CADRE_ASSERT(workers > 0);
    struct cadre_error reason = {0};
    bool begun = at->open && !at->ended && (at->applied > 0 || first_asked(distributed) > 0);
    bool by_files = distributed_input_policy(distributed->input) == CADRE_SHARD_FILE;
    if (!begun || at->workers == 0) {
        at->workers = workers;
    } else if (by_files && !distributed->has_shares && at->workers != workers &&
               !distributed_input_can_reshard(distributed->input, &reason)) {
        cadre_error_set(&distributed->uncut, CADRE_FAILED_PRECONDITION,
            "dataset '%s' is in the middle of epoch %" PRIu64 ", divided by files among %" PRIu32
            " workers, and there are %" PRIu32 " now: %s; use CADRE_SHARD_DATA, or go on from a "
            "checkpoint with %" PRIu32 " workers",
            distributed->name, at->epochs_begun - 1, at->workers, workers, reason.text,
            at->workers);
    }
}

static cadre_status input_open_reopen(
    cadre_distributed_dataset *distributed, struct cadre_error *error)
{
    uint32_t workers = distributed->strategy->roster.member_count;
    distributed_close(distributed);
    CADRE_TRY(distributed_open(distributed, error));
    see_whether_it_is_cut(distributed, workers);
    distributed->steps = distributed_steps_now(distributed);
    return CADRE_OK;
}

/* Reading on returns the reason why it cannot. */
static cadre_status input_open_lose(
    cadre_distributed_dataset *distributed, const struct cadre_error *error)
{
    distributed->failed = *error;
    return error->code;
}

cadre_status distributed_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        cadre_distributed_dataset *distributed = strategy->input->datasets[i];
        bool assigned = files_deal(distributed);
        if (distributed->layout == strategy->layout && !assigned) {
            continue;
        }
        if (input_open_reopen(distributed, error) != CADRE_OK) {
            return input_open_lose(distributed, error);
        }
        uint64_t begun = distributed->at.epochs_begun;
        if (begun > 0 && distributed->at.open && !distributed->reenters) {
            distributed_seek(distributed, begun - 1, first_asked(distributed));
        }
    }
    return CADRE_OK;
}

/* --- received positions --- */

static void input_open_drop(struct dataset_received *received)
{
    file_shares_clear(&received->shares);
    distributed_state_clear(&received->state);
    *received = (struct dataset_received){0};
}

void distributed_drop_received(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        input_open_drop(&strategy->input->datasets[i]->received);
    }
}

static void take_shares(cadre_distributed_dataset *distributed)
{
    file_shares_clear(&distributed->shares);
    distributed->has_shares = distributed->received.has_shares;
    distributed->shares = distributed->received.shares;
    distributed->received.shares = (struct file_shares){0};
}

/* A task that was in the generation before lacks only the changes of the step that it missed. */
static void take_step(cadre_distributed_dataset *distributed)
{
    const struct dataset_received *received = &distributed->received;
    if (received->has_shares && distributed->has_shares &&
        received->shares.epoch == distributed->shares.epoch) {
        take_shares(distributed);
    }
}

cadre_status distributed_take_received(
    cadre_strategy *strategy, bool all, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->input->dataset_count; i++) {
        cadre_distributed_dataset *distributed = strategy->input->datasets[i];
        struct dataset_received *received = &distributed->received;
        if (received->any && !all) {
            take_step(distributed);
        } else if (received->any) {
            distributed->began = received->by_files ? CADRE_SHARD_FILE : CADRE_SHARD_DATA;
            take_shares(distributed);
            files_deal(distributed);
            status = input_open_reopen(distributed, error);
            if (status == CADRE_OK && received->has_state) {
                struct cadre_error ignored; /* then it is read from the beginning */
                distributed_input_restore(distributed->input, &received->state, &ignored);
            }
            if (status != CADRE_OK) {
                input_open_lose(distributed, error);
            }
        }
        input_open_drop(received);
    }
    return status;
}
