/* SPDX-License-Identifier: Apache-2.0
 * Variables that are combined when read: the fold at the end of a step (protocol, rule 27). When a
 * replica dies its component is lost, but not what it added: that is in the total of every task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/arithmetic/axis_sum.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/variables/change_note.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/arithmetic/numbers.h"

/* --- the total and its parts --- */

/* The total is the first replica's component. Without aggregation too: no function reads it then,
 * but checkpoints, comparisons and tasks that join use one value. */
static bool is_of_first(const cadre_variable *variable)
{
    return variable->aggregation == CADRE_AGGREGATION_ONLY_FIRST_REPLICA ||
           variable->aggregation == CADRE_AGGREGATION_NONE;
}

void on_read_begin(cadre_variable *variable, uint32_t replicas)
{
    CADRE_ASSERT(variable->on_read);
    memcpy(variable->total.value, variable->components[0].value, variable->bytes);
    if (variable->aggregation == CADRE_AGGREGATION_SUM) {
        numbers_multiply(variable->total.value, variable->count, variable->dtype, replicas);
    }
}

void on_read_adopt(cadre_variable *variable)
{
    for (uint32_t i = 0; i < variable->component_count; i++) {
        struct variable_component *component = &variable->components[i];
        if (component->undone) {
            CADRE_ASSERT(variable->on_read);
            memcpy(component->value, component->kept, variable->bytes);
        }
    }
}

void on_read_reset_components(cadre_variable *variable)
{
    CADRE_ASSERT(variable->on_read);
    for (uint32_t i = 0; i < variable->component_count; i++) {
        if (variable->aggregation == CADRE_AGGREGATION_SUM) {
            memset(variable->components[i].value, 0, variable->bytes);
        } else {
            memcpy(variable->components[i].value, variable->total.value, variable->bytes);
        }
    }
}

void on_read_take_part(const cadre_variable *variable, void *value, uint32_t id)
{
    CADRE_ASSERT(id < variable->strategy->replica_count);
    if (variable->aggregation == CADRE_AGGREGATION_SUM) {
        numbers_share(
            value, variable->count, variable->dtype, variable->strategy->replica_count, id);
    }
}

void on_read_part(const cadre_variable *variable, const void *total, uint32_t id, void *ret_part)
{
    memcpy(ret_part, total, variable->bytes);
    on_read_take_part(variable, ret_part, id);
}

void on_read_spread(cadre_variable *variable)
{
    for (uint32_t i = 0; i < variable->component_count; i++) {
        on_read_part(variable, variable->total.value, variable->strategy->replica_first + i,
            variable->components[i].value);
    }
}

void on_read_settle(
    const cadre_variable *variable, struct variable_component *component, bool inside_a_step)
{
    bool sum = variable->on_read && variable->aggregation == CADRE_AGGREGATION_SUM;
    component->settled = variable->on_read && !inside_a_step;
    component->rebased = sum && inside_a_step;
    if (component->rebased) {
        memcpy(component->delta, component->value, variable->bytes);
    }
}

/* --- the collective --- */

cadre_status variables_sum_in_step(cadre_replica *replica, const char *what, uint64_t key,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error)
{
    const struct step_call call = {.function = what, .key = collective_key(key, count), .root = -1};
    return collective_meet_in_step(replica, &call, buffers, count, error);
}

/* --- the fold --- */

/* What the replica adds. The first one's value is sent as bytes among zeros: the sum is that
 * value. */
static cadre_status variable_on_read_offer(cadre_variable *variable, const cadre_replica *replica,
    struct mesh_buffer *ret_buffer, struct cadre_error *error)
{
    struct variable_component *component = &variable->components[replica->local];
    CADRE_ASSERT(replica->local < variable->component_count);
    CADRE_ASSERT(!component->written || component->kept != NULL);
    bool first = is_of_first(variable);
    bool sum = variable->aggregation == CADRE_AGGREGATION_SUM;
    bool changed = component->written && !component->settled;
    bool silent = sum ? !changed : first && replica->id != 0;
    *ret_buffer =
        (struct mesh_buffer){.data = component->delta, .bytes = variable->bytes, .dtype = MESH_U8};
    if (silent) {
        memset(component->delta, 0, variable->bytes);
    } else if (sum && component->rebased) {
        numbers_take_from(component->delta, component->value, variable->count, variable->dtype);
    } else {
        memcpy(component->delta, component->value, variable->bytes);
    }
    if (sum && !silent && !component->rebased) {
        numbers_add(component->delta, component->kept, variable->count, variable->dtype, true);
    }
    return first ? CADRE_OK : collective_dtype(variable->dtype, &ret_buffer->dtype, error);
}

/* Adds the sum over so many replicas to the total; by one thread of the task. */
static cadre_status variable_on_read_take(
    cadre_variable *variable, int64_t replicas, struct cadre_error *error)
{
    void *sum = variable->components[0].delta;
    CADRE_ASSERT(sum != NULL);
    if (variable->components[0].settled) {
        return CADRE_OK;
    }
    cadre_status status = component_open_write(variable, &variable->total, error);
    if (status != CADRE_OK) {
        return status;
    }
    if (variable->aggregation == CADRE_AGGREGATION_SUM) {
        numbers_add(variable->total.value, sum, variable->count, variable->dtype, false);
        return CADRE_OK;
    }
    if (variable->aggregation == CADRE_AGGREGATION_MEAN) {
        axis_divide(sum, (size_t)variable->count, variable->dtype, replicas);
    }
    memcpy(variable->total.value, sum, variable->bytes);
    return CADRE_OK;
}

static size_t on_read_count(const cadre_strategy *strategy)
{
    size_t count = 0;
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        count += strategy->variables->list[i]->on_read ? 1 : 0;
    }
    return count;
}

cadre_status on_read_fold(
    cadre_replica *replica, const char *what, uint64_t key, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    size_t count = on_read_count(strategy);
    if (count == 0) {
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT struct mesh_buffer *buffers = calloc(count, sizeof *buffers);
    if (buffers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a list of %zu variables that are combined when read", count);
    }
    cadre_status status = CADRE_OK;
    size_t at = 0;
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->variables->count; i++) {
        if (strategy->variables->list[i]->on_read) {
            status = variable_on_read_offer(
                strategy->variables->list[i], replica, &buffers[at++], error);
        }
    }
    CADRE_ASSERT(status != CADRE_OK || at == count);
    for (size_t done = 0; status == CADRE_OK && done < count; done += COLLECTIVE_TENSORS_MAX) {
        size_t left = count - done;
        status = variables_sum_in_step(replica, what, collective_key(key, count), buffers + done,
            left < COLLECTIVE_TENSORS_MAX ? left : COLLECTIVE_TENSORS_MAX, error);
    }
    for (uint32_t i = 0;
         status == CADRE_OK && replica->local == 0 && i < strategy->variables->count; i++) {
        if (strategy->variables->list[i]->on_read) {
            status =
                variable_on_read_take(strategy->variables->list[i], strategy->replica_count, error);
        }
    }
    return status;
}

/* --- the fold of one variable, outside of steps --- */

/* It may be played back in a generation of another size (between_steps.h): so the collective itself
 * returns how many replicas there were. */
static cadre_status fold_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    cadre_variable *variable = user;
    int64_t replicas = 1;
    struct mesh_buffer buffers[2] = {
        [1] = {.data = &replicas, .bytes = sizeof replicas, .dtype = MESH_I64}};
    CADRE_TRY(variable_on_read_offer(variable, &strategy->replicas[local], &buffers[0], error));
    uint64_t key = change_key("an update", variable);
    CADRE_TRY(collective_sum(strategy, local, buffers, 2, key, error));
    if (local == 0 && variable->total.written) { /* by an attempt in which a peer was lost */
        memcpy(variable->total.value, variable->total.kept, variable->bytes);
    }
    return local == 0 ? variable_on_read_take(variable, replicas, error) : CADRE_OK;
}

cadre_status on_read_fold_between_steps(cadre_variable *variable, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    char name[VARIABLE_SHORT_BYTES];
    snprintf(
        what, sizeof what, "an update of variable '%s'", variable_short_name(variable->name, name));
    return strategy_between_steps(variable->strategy, what, fold_on_replica, variable, error);
}
