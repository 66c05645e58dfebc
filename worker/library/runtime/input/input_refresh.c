/* SPDX-License-Identifier: Apache-2.0
 * A batch that the program holds, in another layout or another generation. */
#include "common/pure/assert.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

/* A step that does not exist any more: the lost tasks had all of its elements. */
#define ROWS_OF_NOTHING 1

/* Each task has a pipeline of its own: in every generation they agree again on what the step is. */
static cadre_status agree_again(cadre_per_replica *batch, struct cadre_error *error)
{
    struct batch_source *source = &batch->source;
    cadre_distributed_dataset *distributed = source->dataset;
    struct distributed_batch fresh;
    struct step_agreement step_agreement;
    CADRE_TRY(step_agreement_make(distributed, source->epoch, source->step, batch, source->was_run,
        &fresh, &step_agreement, error));
    if (fresh.elements != NULL) {
        batch_take_over(batch, &fresh);
    }
    distributed_batch_clear(&fresh);
    batch_agree(batch, &step_agreement);
    if (step_agreement.present == 0) {
        source->global_rows = ROWS_OF_NOTHING;
    }
    step_agreement_clear(&step_agreement);
    source->cut = distributed->cut;
    return CADRE_OK;
}

static cadre_status reread_batch(cadre_per_replica *batch, struct cadre_error *error)
{
    cadre_distributed_dataset *distributed = batch->source.dataset;
    struct distributed_batch fresh = {0};
    cadre_status status =
        distributed_read(distributed, batch->source.epoch, batch->source.step, &fresh, error);
    if (status == CADRE_OUT_OF_RANGE) {
        /* Pipelines of their own have other steps: what was read stays. */
        batch->source.cut = distributed->cut;
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        batch_take_over(batch, &fresh);
        distributed_batch_clear(&fresh);
    }
    return status;
}

cadre_status distributed_refresh(cadre_per_replica *batch, struct cadre_error *error)
{
    const struct batch_source *source = &batch->source;
    CADRE_ASSERT(source->dataset != NULL);
    const cadre_strategy *strategy = source->dataset->strategy;
    bool same = source->cut == source->dataset->cut;
    bool agreed = source->generation == strategy->roster.generation.number;
    bool alone = strategy->roster.member_count == 1;
    if (source->dataset->failed.code != CADRE_OK) {
        *error = source->dataset->failed;
        return error->code;
    }
    if (distributed_own_pipelines(source->dataset)) {
        return agreed || (same && alone) ? CADRE_OK : agree_again(batch, error);
    }
    return same ? CADRE_OK : reread_batch(batch, error);
}
