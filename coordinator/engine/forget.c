/* SPDX-License-Identifier: Apache-2.0
 * Removal of jobs that ended and are not kept any more. */
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

static cadre_status forget_forget(
    struct engine *engine, struct job_id job, struct cadre_error *error)
{
    CADRE_TRY(engine->store->ops->forget(engine->store, job, error));
    directory_remove(&engine->directory, job);
    engine->sink.job_forgotten(engine->user, job);
    return CADRE_OK;
}

cadre_status engine_forget_surplus(struct engine *engine, struct cadre_error *error)
{
    struct directory_entry *oldest;
    while ((oldest = directory_surplus(&engine->directory, engine->options.keep_jobs)) != NULL) {
        CADRE_TRY(forget_forget(engine, oldest->id, error));
    }
    return CADRE_OK;
}

bool engine_job_may_go(const struct engine *engine, struct job_id job)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL && job_state_is_final(entry->state) && engine->broken == CADRE_OK &&
           !engine->sending && !entry->changed && !entry->end_unstored;
}

cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error)
{
    CADRE_ASSERT(engine_job_may_go(engine, job));
    cadre_status status = forget_forget(engine, job, error);
    if (status != CADRE_OK) {
        engine_break(engine, error);
    }
    return status;
}
