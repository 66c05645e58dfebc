/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/state_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/state/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

/* Of what lies on a device so much at a time is in the host's memory. */
#define STAGING_BYTES ((size_t)4 << 20)

void state_hashes_clear(struct state_hashes *hashes)
{
    if (hashes->staging != NULL) {
        tensor_memory_give(hashes->staging_kind, hashes->staging, STAGING_BYTES);
    }
    free(hashes->names);
    free(hashes->values);
    *hashes = (struct state_hashes){0};
}

uint64_t state_hash_bytes(const void *bytes, size_t size)
{
    return XXH3_64bits(size > 0 ? bytes : "", size);
}

/* --- room --- */

static uint64_t registered_name(const struct registered_state *state)
{
    char name[LIMIT_NAME_BYTES + sizeof REGISTERED_PREFIX];
    int length = snprintf(name, sizeof name, REGISTERED_PREFIX "%s", state->name);
    CADRE_ASSERT(length > 0);
    return state_hash_bytes(name, (size_t)length);
}

cadre_status state_hash_prepare(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error)
{
    uint32_t variables = strategy->variables->count;
    uint32_t count = variables + strategy->state_part->registered_count;
    if (count > hashes->capacity) {
        uint64_t *names = calloc(count, sizeof *names);
        uint64_t *values = calloc(count, sizeof *values);
        if (names == NULL || values == NULL) {
            free(names);
            free(values);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for the hashes of %u tensors", count);
        }
        free(hashes->names);
        free(hashes->values);
        hashes->names = names;
        hashes->values = values;
        hashes->capacity = count;
    }
    hashes->count = count;
    for (uint32_t i = 0; i < variables; i++) {
        const char *name = strategy->variables->list[i]->name;
        hashes->names[i] = state_hash_bytes(name, strlen(name));
    }
    for (uint32_t i = variables; i < count; i++) {
        hashes->names[i] = registered_name(&strategy->state_part->registered[i - variables]);
    }
    return CADRE_OK;
}

/* --- one tensor --- */

static uint64_t hash_strings(const cadre_variable *variable)
{
    CADRE_ASSERT(variable->strings != NULL);
    const cadre_string *strings = cadre_tensor_const_data(variable->strings);
    uint64_t hash = 0;
    for (int64_t i = 0; i < variable->count; i++) {
        uint64_t size = strings[i].size;
        hash = XXH3_64bits_withSeed(&size, sizeof size, hash);
        hash = XXH3_64bits_withSeed(size > 0 ? strings[i].bytes : "", (size_t)size, hash);
    }
    return hash;
}

static cadre_status get_staging(struct state_hashes *hashes, struct cadre_error *error)
{
    if (hashes->staging == NULL) {
        hashes->staging_kind = TENSOR_MEMORY_PINNED;
        hashes->staging = tensor_memory_get(TENSOR_MEMORY_PINNED, STAGING_BYTES);
    }
    if (hashes->staging == NULL) {
        hashes->staging_kind = TENSOR_MEMORY_HOST;
        hashes->staging = tensor_memory_get(TENSOR_MEMORY_HOST, STAGING_BYTES);
    }
    return hashes->staging != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory on the host to read variables on a device, %zu bytes",
                     STAGING_BYTES);
}

static cadre_status hash_from_device(const cadre_variable *variable,
    const struct variable_component *component, struct state_hashes *hashes, uint64_t *ret_hash,
    struct cadre_error *error)
{
    CADRE_TRY(get_staging(hashes, error));
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL || XXH3_64bits_reset(state) != XXH_OK) {
        XXH3_freeState(state);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a hash");
    }
    cadre_status status = CADRE_OK;
    for (size_t at = 0; status == CADRE_OK && at < variable->bytes; at += STAGING_BYTES) {
        size_t left = variable->bytes - at;
        size_t size = left < STAGING_BYTES ? left : STAGING_BYTES;
        status = variable_to_host(variable, component, at, hashes->staging, size, error);
        if (status == CADRE_OK) {
            XXH3_64bits_update(state, hashes->staging, size);
        }
    }
    *ret_hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return status;
}

static cadre_status hash_component(const cadre_variable *variable,
    const struct variable_component *component, struct state_hashes *hashes, uint64_t *ret_hash,
    struct cadre_error *error)
{
    if (component->device != NULL) {
        return hash_from_device(variable, component, hashes, ret_hash, error);
    }
    *ret_hash = state_hash_bytes(component->value, variable->bytes);
    return CADRE_OK;
}

/* --- all of them --- */

/* Whether each local replica has a component of it that it alone writes in a step. */
static bool is_own(const cadre_variable *variable)
{
    return variable->component_count > 1 && !variable->on_read;
}

cadre_status state_hash_shared(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error)
{
    uint32_t variables = strategy->variables->count;
    CADRE_ASSERT(hashes->count == variables + strategy->state_part->registered_count);
    for (uint32_t i = 0; i < variables; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype == CADRE_STRING) {
            hashes->values[i] = hash_strings(variable);
        } else if (!is_own(variable)) {
            const struct variable_component *component =
                variable->on_read ? &variable->total : &variable->components[0];
            CADRE_TRY(hash_component(variable, component, hashes, &hashes->values[i], error));
        }
    }
    for (uint32_t i = variables; i < hashes->count; i++) {
        const struct registered_state *state = &strategy->state_part->registered[i - variables];
        hashes->values[i] = state_hash_bytes(registered_data(state), state->size);
    }
    return CADRE_OK;
}

cadre_status state_hash_own(const cadre_strategy *strategy, uint32_t local,
    struct state_hashes *hashes, struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype != CADRE_STRING && is_own(variable)) {
            CADRE_TRY(hash_component(
                variable, &variable->components[local], hashes, &hashes->values[i], error));
        }
    }
    return CADRE_OK;
}

void state_hash_share(
    const cadre_strategy *strategy, const struct state_hashes *from, struct state_hashes *hashes)
{
    CADRE_ASSERT(from->count == hashes->count);
    for (uint32_t i = 0; i < hashes->count; i++) {
        bool variable = i < strategy->variables->count;
        if (!variable || !is_own(strategy->variables->list[i])) {
            hashes->values[i] = from->values[i];
        }
    }
}

cadre_status state_hash_all(const cadre_strategy *strategy, uint32_t local,
    struct state_hashes *hashes, struct cadre_error *error)
{
    CADRE_TRY(state_hash_prepare(strategy, hashes, error));
    CADRE_TRY(state_hash_shared(strategy, hashes, error));
    return state_hash_own(strategy, local, hashes, error);
}

uint64_t state_digest(const struct state_hashes *hashes)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < hashes->count; i++) {
        const uint64_t words[2] = {hashes->names[i], hashes->values[i]};
        digest = XXH3_64bits_withSeed(words, sizeof words, digest);
    }
    return digest != 0 ? digest : 1;
}

void state_hash_strings(const cadre_strategy *strategy, struct state_hashes *hashes)
{
    CADRE_ASSERT(hashes->count >= strategy->variables->count);
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        if (strategy->variables->list[i]->dtype == CADRE_STRING) {
            hashes->values[i] = hash_strings(strategy->variables->list[i]);
        }
    }
}

const char *state_tensor_text(
    const cadre_strategy *strategy, uint32_t i, char text[STATE_TENSOR_TEXT_BYTES])
{
    uint32_t variables = strategy->variables->count;
    CADRE_ASSERT(i < variables + strategy->state_part->registered_count);
    if (i < variables) {
        snprintf(
            text, STATE_TENSOR_TEXT_BYTES, "variable '%.150s'", strategy->variables->list[i]->name);
    } else {
        snprintf(text, STATE_TENSOR_TEXT_BYTES, "the registered state '%.150s'",
            strategy->state_part->registered[i - variables].name);
    }
    return text;
}
