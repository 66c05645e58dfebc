/* SPDX-License-Identifier: Apache-2.0
 * Outputs of replica functions: taken from each replica, compared, lent to the program, and
 * passed on to a task that was frozen in the step. run.c, run_replica.c and the strategy's hooks
 * call it. */
#include "worker/library/runtime/step/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/step/step_block.h"
#include "worker/library/runtime/values/values.h"

struct outputs_part {
    cadre_per_replica *lent[CADRE_OUTPUTS_MAX]; /* of the last step, to the program */
    uint32_t count;
    const char *const *lists[CADRE_OUTPUTS_MAX]; /* the name of each that has had one, as a list */
    struct applied_step applied;
    struct step_block passed;  /* while a generation forms: what is sent, or was taken ... */
    struct adopted_step taken; /* ... and read */
};

/* --- in a step --- */

/* Takes each with a reference of its own. */
static cadre_status take_outputs(cadre_replica *replica, uint32_t count, struct cadre_error *error)
{
    uint32_t missing = count;
    for (uint32_t i = 0; i < count; i++) {
        bool given = tensor_take(replica->outputs[i]);
        missing = given || missing < count ? missing : i;
    }
    replica->outputs_taken = true;
    replica->output_count = count;
    return missing == count
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "replica %u: its function gave output %u without a reference: it was "
                     "released, or is an input, or another output too; retain the tensor once for "
                     "each output that it is",
                     replica->id, missing);
}

/* Over all slots, without a branch, because it is done in each step. */
static uint32_t made_outputs(const cadre_replica *replica)
{
    uint64_t made = 0;
    for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
        made += replica->outputs[i] != NULL ? 1 : 0;
    }
    return (uint32_t)made;
}

static cadre_status refuse_outputs(
    const cadre_replica *replica, uint32_t n_outputs, struct cadre_error *error)
{
    uint32_t at = 0;
    while ((replica->outputs[at] != NULL) == (at < n_outputs)) {
        at++;
        CADRE_ASSERT(at < CADRE_OUTPUTS_MAX);
    }
    return at < n_outputs
               ? cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "replica %u: its function left output %u of %u empty; give it a tensor",
                     replica->id, at, n_outputs)
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "replica %u: its function made output %u, and %u were requested of cadre_run "
                     "outputs",
                     replica->id, at, n_outputs);
}

cadre_status outputs_take(cadre_replica *replica, uint32_t n_outputs, struct cadre_error *error)
{
    bool as_asked = made_outputs(replica) == n_outputs;
    for (uint32_t i = 0; i < n_outputs; i++) {
        as_asked = as_asked && replica->outputs[i] != NULL;
    }
    return as_asked ? take_outputs(replica, n_outputs, error)
                    : refuse_outputs(replica, n_outputs, error);
}

/* A tensor that is several outputs with one reference ends after the last of them: all are taken
 * before one is dropped. */
void outputs_drop(cadre_strategy *strategy)
{
    for (uint32_t local = 0; local < strategy->local_replicas; local++) {
        cadre_replica *replica = &strategy->replicas[local];
        if (replica->outputs_taken) {
            continue;
        }
        for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX; i++) {
            if (replica->outputs[i] != NULL) {
                (void)tensor_take(replica->outputs[i]);
            }
        }
        replica->outputs_taken = true;
        replica->output_count = CADRE_OUTPUTS_MAX;
    }
    for (uint32_t local = 0; local < strategy->local_replicas; local++) {
        cadre_replica *replica = &strategy->replicas[local];
        for (uint32_t i = 0; i < replica->output_count; i++) {
            tensor_drop(replica->outputs[i]);
            replica->outputs[i] = NULL;
        }
        replica->output_count = 0;
    }
}

static const char *name_of(const cadre_replica *replica, uint32_t output)
{
    bool named = (replica->outputs_named >> output & 1) != 0;
    return named ? replica->output_names[output] : NULL;
}

cadre_status outputs_agree(const cadre_strategy *strategy, struct cadre_error *error)
{
    const cadre_replica *first = &strategy->replicas[0];
    for (uint32_t local = 1; local < strategy->local_replicas; local++) {
        const cadre_replica *other = &strategy->replicas[local];
        uint64_t named = first->outputs_named | other->outputs_named;
        for (uint32_t i = 0; i < CADRE_OUTPUTS_MAX && named >> i != 0; i++) {
            const char *a = name_of(first, i);
            const char *b = name_of(other, i);
            if (a != b) { /* equal names have equal pointers */
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "output %u is called '%s' by replica %u and '%s' by replica %u; all give the "
                    "same names in the same order",
                    i, a == NULL ? "" : a, first->id, b == NULL ? "" : b, other->id);
            }
        }
    }
    return CADRE_OK;
}

/* Without memory for it the output has no name. */
static const char *const *names_of(struct outputs_part *part, uint32_t output, const char *name)
{
    if (name != NULL && (part->lists[output] == NULL || part->lists[output][0] != name)) {
        part->lists[output] = component_names_list(&name, 1);
    }
    return name != NULL ? part->lists[output] : NULL;
}

static void drop_lent(struct outputs_part *part)
{
    for (uint32_t i = 0; i < part->count; i++) {
        per_replica_drop(part->lent[i]);
    }
    part->count = 0;
}

/* Those of the step before are kept until now, because a task that was frozen in it may have to
 * adopt them. */
static void step_outputs_lend(struct step_order *order)
{
    cadre_strategy *strategy = order->strategy;
    struct outputs_part *part = strategy->outputs;
    drop_lent(part);
    for (uint32_t i = 0; i < order->n_outputs; i++) {
        cadre_per_replica *value = order->values[i];
        CADRE_ASSERT(value != NULL);
        for (uint32_t local = 0; local < strategy->local_replicas; local++) {
            cadre_tensor **output = &strategy->replicas[local].outputs[i];
            *per_replica_at(value, 0, local) = *output;
            *output = NULL;
        }
        value->names = names_of(part, i, name_of(&strategy->replicas[0], i));
        part->lent[i] = value;
        order->values[i] = NULL;
        order->ret_outputs[i] = value;
        value->shown = true;
        per_replica_lend(value);
    }
    part->count = order->n_outputs;
}

static bool step_outputs_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    (void)cause;
    outputs_drop(strategy);
    return true;
}

void outputs_record(const struct step_order *order)
{
    order->strategy->outputs->applied = (struct applied_step){.known = true,
        .position = order->position,
        .collectives = order->strategy->step.collectives_begun,
        .stream = order->stream,
        .consumption = order->consumption};
}

bool outputs_has_last(const cadre_strategy *strategy)
{
    return strategy->outputs->applied.known;
}

/* --- a step that this task was frozen in, and others applied --- */

static cadre_status step_outputs_adopt(struct step_order *order, struct cadre_error *error)
{
    struct outputs_part *part = order->strategy->outputs;
    uint32_t stream = order->stream;
    if (part->applied.stream != stream || part->count != order->n_outputs) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "step %llu is one of stream %u with %u outputs here, and of stream %u with %u outputs "
            "on the tasks that had applied it; all tasks must take the same steps",
            (unsigned long long)order->position, stream, order->n_outputs, part->applied.stream,
            part->count);
    }
    order->consumption = part->applied.consumption;
    for (uint32_t i = 0; i < order->n_outputs; i++) {
        order->ret_outputs[i] = part->lent[i];
    }
    part->applied.known = true;
    part->applied.position = order->position;
    return CADRE_OK;
}

static void fill_status(const cadre_strategy *strategy, struct member_status *member_status)
{
    const struct applied_step *applied = &strategy->outputs->applied;
    if (applied->known && applied->position + 1 == member_status->position) {
        member_status->flags |= MEMBER_STATUS_STEP;
        member_status->applied_collectives = applied->collectives;
    }
}

static cadre_status step_outputs_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    struct outputs_part *part = strategy->outputs;
    CADRE_ASSERT(part->passed.bytes == NULL);
    return sync_plan->gives && sync_plan->step
               ? step_block_make(&part->applied, part->lent, part->count, strategy->local_replicas,
                     &part->passed, error)
               : CADRE_OK;
}

static cadre_status read_block(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* copying in the host's memory cannot fail */
    const struct step_block *block = user;
    CADRE_ASSERT(offset + bytes <= block->size);
    memcpy(into, block->bytes + offset, bytes);
    return CADRE_OK;
}

static cadre_status write_block(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct step_block *block = user;
    if (offset == 0) {
        free(block->bytes);
        *block = (struct step_block){.bytes = malloc((size_t)total + 1), .size = (size_t)total};
    }
    if (block->bytes == NULL) {
        *block = (struct step_block){0};
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu bytes of another task", (unsigned long long)total);
    }
    CADRE_ASSERT(offset + bytes <= block->size);
    if (bytes > 0) {
        memcpy(block->bytes + offset, from, bytes);
    }
    return CADRE_OK;
}

static cadre_status step_outputs_pass(cadre_strategy *strategy, uint32_t local,
    const struct sync_plan *sync_plan, struct cadre_error *error)
{
    struct outputs_part *part = strategy->outputs;
    if (!sync_plan->step) {
        return CADRE_OK;
    }
    const struct transfer transfer = {.what = "the outputs of the last step",
        .source = sync_plan->source,
        .bytes = part->passed.size,
        .read = read_block,
        .write = sync_plan->takes_step ? write_block : NULL,
        .user = &part->passed};
    return transfer_run(strategy, local, &transfer, error);
}

static cadre_status read_taken(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    struct outputs_part *part = strategy->outputs;
    return sync_plan->takes_step
               ? step_block_read(&part->passed, strategy->local_replicas, &part->taken, error)
               : CADRE_OK;
}

/* The adopted step's outputs become the lent ones. */
static cadre_status step_outputs_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error)
{
    struct outputs_part *part = strategy->outputs;
    (void)install_mode; /* a joiner gets its outputs too, while another task adopts the step */
    (void)error;
    struct adopted_step *taken = &part->taken;
    if (!taken->any) {
        return CADRE_OK;
    }
    drop_lent(part);
    part->applied = taken->applied;
    part->count = taken->output_count;
    memcpy(part->lent, taken->outputs, sizeof part->lent);
    for (uint32_t i = 0; i < part->count; i++) {
        per_replica_lend(part->lent[i]);
    }
    *taken = (struct adopted_step){0};
    return CADRE_OK;
}

static void step_outputs_cleanup(cadre_strategy *strategy)
{
    struct outputs_part *part = strategy->outputs;
    free(part->passed.bytes);
    part->passed = (struct step_block){0};
    adopted_step_clear(&part->taken);
}

/* --- opening and closing --- */

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    strategy->outputs = calloc(1, sizeof *strategy->outputs);
    return strategy->outputs != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for outputs of steps");
}

static void close_part(cadre_strategy *strategy)
{
    if (strategy->outputs != NULL) {
        drop_lent(strategy->outputs);
    }
}

static void free_part(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->outputs == NULL || strategy->outputs->count == 0);
    free(strategy->outputs);
    strategy->outputs = NULL;
}

const struct strategy_hooks outputs_hooks = {
    .name = "outputs",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .commit = step_outputs_lend,
    .undo = step_outputs_undo,
    .adopt = step_outputs_adopt,
    .fill_status = fill_status,
    .prepare = step_outputs_prepare,
    .pass = step_outputs_pass,
    .read = read_taken,
    .install = step_outputs_install,
    .cleanup = step_outputs_cleanup,
};
