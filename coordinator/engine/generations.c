/* SPDX-License-Identifier: Apache-2.0
 * The generations of a job, as the ledger has them. */
#include "coordinator/engine/engine_state.h"

struct generation_list {
    struct verify_generation *items;
    size_t count;
    size_t max;
};

static void take_plan(void *user, const struct store_plan *plan)
{
    struct generation_list *list = user;
    if (list->count < list->max) {
        list->items[list->count++] = (struct verify_generation){.generation = plan->generation,
            .resume = plan->resume,
            .restarted = plan->restarted,
            .members = plan->members,
            .planned_us = plan->planned_us};
    }
}

cadre_status engine_generations(struct engine *engine, struct job_id job, uint64_t after,
    struct verify_generation *ret_items, size_t max, size_t *ret_count, struct cadre_error *error)
{
    struct job_info info;
    *ret_count = 0;
    if (!engine_job_basics(engine, job, &info)) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)job.n);
    }
    if (engine_job_is_damaged(engine, job) || info.generation <= after) {
        return CADRE_OK;
    }
    uint64_t newest = info.generation >= max ? info.generation - max : 0;
    struct generation_list list = {.items = ret_items, .max = max};
    const struct store_walk walk = {.generation = (after > newest ? after : newest) + 1,
        .plans_max = max,
        .plan_row = take_plan,
        .user = &list};
    CADRE_TRY(engine->store->ops->ledger(engine->store, job, &walk, error));
    *ret_count = list.count;
    return CADRE_OK;
}
