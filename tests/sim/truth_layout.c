/* SPDX-License-Identifier: Apache-2.0
 * Which variables a job has at each position, by the rules of the public header: in cross-replica
 * context the first free number, in a replica function the k-th call for a name in one run of it is
 * the k-th variable that replica functions created. */
#include "common/pure/assert.h"
#include "sim.h"
#include "truth.h"

static uint64_t cell(uint64_t layout, uint32_t name, uint32_t number)
{
    return layout >> 2 * (name * LAYOUT_NUMBERS + number) & 3;
}

static uint64_t with(uint64_t layout, uint32_t name, uint32_t number, enum layout_cell is)
{
    CADRE_ASSERT(number < LAYOUT_NUMBERS);
    return layout | (uint64_t)is << 2 * (name * LAYOUT_NUMBERS + number);
}

bool truth_asks(const struct job *job, uint32_t creation, uint64_t position)
{
    const struct scenario_creation *c = &job->plan->creations[creation];
    uint32_t stream = job->plan->segments[job->positions[position].segment].stream;
    return c->between ? position == c->from : position >= c->from && stream == c->stream;
}

static uint64_t created_between(uint64_t layout, uint32_t name)
{
    uint32_t number = 0;
    while (cell(layout, name, number) != LAYOUT_ABSENT) {
        number++;
    }
    return with(layout, name, number, LAYOUT_BETWEEN_STEPS);
}

/* So many calls in one run. */
static uint64_t created_in_function(uint64_t layout, uint32_t name, uint32_t calls)
{
    for (uint32_t number = 0; calls > 0; number++) {
        bool others = cell(layout, name, number) == LAYOUT_BETWEEN_STEPS;
        layout = others ? layout : with(layout, name, number, LAYOUT_IN_FUNCTION);
        calls -= others ? 0 : 1;
    }
    return layout;
}

void truth_layouts(struct job *job)
{
    const struct scenario_job *plan = job->plan;
    uint64_t layout = 0;
    for (uint32_t i = 0; i < plan->base_count; i++) {
        layout = created_between(layout, plan->bases[i]);
    }
    job->layouts[0] = layout;
    for (uint64_t p = 0; p < plan->steps; p++) {
        uint32_t calls[LAYOUT_NAMES] = {0};
        for (uint32_t i = 0; i < plan->creation_count; i++) {
            const struct scenario_creation *c = &plan->creations[i];
            if (truth_asks(job, i, p) && c->between) {
                layout = created_between(layout, c->name);
            } else if (truth_asks(job, i, p)) {
                calls[c->name]++;
            }
        }
        for (uint32_t name = 0; name < LAYOUT_NAMES; name++) {
            layout = created_in_function(layout, name, calls[name]);
        }
        job->layouts[p + 1] = layout;
    }
}
