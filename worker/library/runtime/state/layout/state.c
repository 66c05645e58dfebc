/* SPDX-License-Identifier: Apache-2.0
 * The space of bytes of a state: its tensors in order, ranges read and written, receiving with
 * undo. state_hooks.c, checkpoint_copy.c and checkpoint_load.c use it. */
#include "worker/library/runtime/state/layout/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_reset.h"

/* What the one open strategy receives, from state_receive on. */
static struct {
    bool registered;
    bool restored;
} receiving;

/* --- the space --- */

static const void *variable_data(const cadre_variable *variable)
{
    if (variable->dtype == CADRE_STRING) {
        return NULL;
    }
    return variable_state(variable)->value;
}

struct state_tensor state_tensor_of(const cadre_variable *variable)
{
    struct state_tensor tensor = {.dtype = variable->dtype,
        .rank = variable->rank,
        .data = variable_data(variable),
        .device = variable->host != NULL ? variable->components[0].device : NULL,
        .bytes = variable->bytes,
        .counts = variable->counts};
    snprintf(tensor.name, sizeof tensor.name, "%s", variable->name);
    memcpy(tensor.dims, variable->dims, sizeof tensor.dims);
    return tensor;
}

bool state_tensor_at(
    const struct cadre_strategy *strategy, uint32_t i, struct state_tensor *ret_tensor)
{
    CADRE_ASSERT(strategy->state_part != NULL);
    if (i >= strategy->variables->count + strategy->state_part->registered_count) {
        return false;
    }
    if (i < strategy->variables->count) {
        *ret_tensor = state_tensor_of(strategy->variables->list[i]);
        return true;
    }
    *ret_tensor = (struct state_tensor){0};
    const struct registered_state *state =
        &strategy->state_part->registered[i - strategy->variables->count];
    snprintf(ret_tensor->name, sizeof ret_tensor->name, REGISTERED_PREFIX "%s", state->name);
    ret_tensor->dtype = CADRE_U8;
    ret_tensor->rank = 1;
    ret_tensor->dims[0] = (int64_t)state->size;
    ret_tensor->data = registered_data(state);
    ret_tensor->bytes = state->size;
    return true;
}

size_t state_bytes(const struct cadre_strategy *strategy)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        bytes += strategy->variables->list[i]->bytes;
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        bytes += strategy->state_part->registered[i].size;
    }
    return bytes;
}

static uint64_t text_key(uint64_t key, const char *text)
{
    for (; *text != '\0'; text++) {
        key = collective_key(key, (uint64_t)(unsigned char)*text);
    }
    return collective_key(key, 0);
}

uint64_t state_layout(const struct cadre_strategy *strategy)
{
    uint64_t key =
        collective_key(strategy->variables->count, strategy->state_part->registered_count);
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        key = text_key(key, variable->name);
        key = collective_key(key, (uint64_t)variable->dtype);
        key = collective_key(key, (uint64_t)variable->aggregation);
        key = collective_key(
            key, (variable->on_read ? 1U : 0U) + (variable->origin.in_function ? 2U : 0U));
        key = collective_key(key, variable->rank);
        for (uint32_t axis = 0; axis < variable->rank; axis++) {
            key = collective_key(key, (uint64_t)variable->dims[axis]);
        }
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        key = text_key(key, strategy->state_part->registered[i].name);
        key = collective_key(key, strategy->state_part->registered[i].size);
    }
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        const cadre_distributed_dataset *dataset = strategy->input->datasets[i];
        /* Iterators come and go as the program runs, and a task that lacks some makes them. */
        key = dataset->iterating.of == NULL ? text_key(key, dataset->name) : key;
    }
    return key;
}

/* --- ranges of it --- */

/* The part of a range that lies in one tensor. */
struct overlap {
    size_t in_tensor; /* offset there */
    size_t in_range;  /* offset in the range */
    size_t bytes;
};

/* Of the tensor at [at, at + bytes) and the range at [offset, offset + byte_count). */
static struct overlap overlap_of(size_t at, size_t bytes, size_t offset, size_t byte_count)
{
    CADRE_ASSERT(at + bytes >= at);
    CADRE_ASSERT(offset + byte_count >= offset);
    size_t begin = at > offset ? at : offset;
    size_t tensor_end = at + bytes;
    size_t range_end = offset + byte_count;
    size_t end = tensor_end < range_end ? tensor_end : range_end;
    if (begin >= end) {
        return (struct overlap){0};
    }
    return (struct overlap){
        .in_tensor = begin - at, .in_range = begin - offset, .bytes = end - begin};
}

cadre_status state_read(const struct cadre_strategy *strategy, size_t offset, void *into,
    size_t byte_count, struct cadre_error *error)
{
    CADRE_ASSERT(offset + byte_count <= state_bytes(strategy));
    size_t at = 0;
    for (uint32_t i = 0; i < strategy->variables->count && at < offset + byte_count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        struct overlap part = overlap_of(at, variable->bytes, offset, byte_count);
        if (part.bytes > 0) {
            CADRE_TRY(variable_to_host(variable, variable_state(variable), part.in_tensor,
                (char *)into + part.in_range, part.bytes, error));
        }
        at += variable->bytes;
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count && at < offset + byte_count;
         i++) {
        const struct registered_state *state = &strategy->state_part->registered[i];
        struct overlap part = overlap_of(at, state->size, offset, byte_count);
        if (part.bytes > 0) {
            memcpy((char *)into + part.in_range,
                (const char *)registered_data(state) + part.in_tensor, part.bytes);
        }
        at += state->size;
    }
    return CADRE_OK;
}

static cadre_status write_variable(
    cadre_variable *variable, struct overlap part, const char *from, struct cadre_error *error)
{
    CADRE_ASSERT(part.in_tensor + part.bytes <= variable->bytes);
    if (variable->on_read) {
        return variable_from_host(
            variable, &variable->total, part.in_tensor, from, part.bytes, error);
    }
    cadre_status status = CADRE_OK;
    for (uint32_t local = 0; status == CADRE_OK && local < variable->component_count; local++) {
        status = variable_from_host(
            variable, &variable->components[local], part.in_tensor, from, part.bytes, error);
    }
    return status;
}

cadre_status state_write(struct cadre_strategy *strategy, size_t offset, const void *from,
    size_t byte_count, struct cadre_error *error)
{
    CADRE_ASSERT(offset + byte_count <= state_bytes(strategy));
    size_t at = 0;
    for (uint32_t i = 0; i < strategy->variables->count && at < offset + byte_count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        struct overlap part = overlap_of(at, variable->bytes, offset, byte_count);
        if (part.bytes > 0) {
            CADRE_TRY(write_variable(variable, part, (const char *)from + part.in_range, error));
        }
        at += variable->bytes;
    }
    for (uint32_t i = 0; i < strategy->state_part->registered_count && at < offset + byte_count;
         i++) {
        const struct registered_state *state = &strategy->state_part->registered[i];
        struct overlap part = overlap_of(at, state->size, offset, byte_count);
        if (part.bytes > 0 && receiving.registered) {
            memcpy((char *)state->pointer + part.in_tensor, (const char *)from + part.in_range,
                part.bytes);
        }
        at += state->size;
    }
    return CADRE_OK;
}

/* --- receiving --- */

static cadre_status keep_variable(cadre_variable *variable, struct cadre_error *error)
{
    if (variable->on_read) {
        return component_open_write(variable, &variable->total, error);
    }
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < variable->component_count; i++) {
        status = component_open_write(variable, &variable->components[i], error);
    }
    return status;
}

static cadre_status keep_registered(struct registered_state *state, struct cadre_error *error)
{
    CADRE_ASSERT(state->kept == NULL); /* one reception at a time */
    state->kept = malloc(state->size);
    if (state->kept == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to keep the %zu bytes of the registered state '%s' while another task's "
            "come in",
            state->size, state->name);
    }
    memcpy(state->kept, state->pointer, state->size);
    return CADRE_OK;
}

static void forget_registered(struct cadre_strategy *strategy, bool restore)
{
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        struct registered_state *state = &strategy->state_part->registered[i];
        if (restore && state->kept != NULL) {
            memcpy(state->pointer, state->kept, state->size);
        }
        free(state->kept);
        state->kept = NULL;
    }
}

cadre_status state_receive(
    struct cadre_strategy *strategy, bool keep, bool registered, struct cadre_error *error)
{
    receiving.registered = registered;
    receiving.restored = false;
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; keep && status == CADRE_OK && i < strategy->variables->count; i++) {
        status = keep_variable(strategy->variables->list[i], error);
    }
    for (uint32_t i = 0;
         keep && registered && status == CADRE_OK && i < strategy->state_part->registered_count;
         i++) {
        status = keep_registered(&strategy->state_part->registered[i], error);
    }
    if (status != CADRE_OK) {
        state_undo(strategy); /* nothing is written yet */
    }
    return status;
}

/* Of a step that others applied. What it created here was undone with its values. */
static void adopt_variable(cadre_variable *variable)
{
    if (variable->on_read && variable->origin.fresh) {
        on_read_reset_components(variable);
    } else {
        on_read_adopt(variable); /* only these were undone */
    }
}

void state_commit(struct cadre_strategy *strategy)
{
    for (uint32_t i = 0; !receiving.registered && i < strategy->variables->count; i++) {
        adopt_variable(strategy->variables->list[i]);
    }
    variables_commit(strategy);
    forget_registered(strategy, false);
    for (uint32_t i = 0; receiving.registered && i < strategy->variables->count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        if (variable->on_read && receiving.restored) {
            on_read_spread(variable);
        } else if (variable->on_read) {
            on_read_reset_components(variable);
        }
    }
}

void state_undo(struct cadre_strategy *strategy)
{
    variables_restore(strategy);
    forget_registered(strategy, true);
}

void state_restored(void)
{
    receiving.restored = true;
}
