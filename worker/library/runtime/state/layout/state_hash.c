/* SPDX-License-Identifier: Apache-2.0
 * Hashes of one local replica's state, kept by chunk, and their digest. digests/ prepares and
 * compares them; checkpoint_copy.c and checkpoint_load.c hash copies. */
#include "worker/library/runtime/state/layout/state_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/device/memory_hash.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_reset.h"

static const struct state_hash_turn whole = {.number = 0, .of = 1};

static void free_room(struct state_hashes *hashes)
{
    free(hashes->names);
    free(hashes->values);
    free(hashes->kept);
    free(hashes->chunks);
    free(hashes->pieces);
    free(hashes->pieces_of);
    hashes->names = NULL;
    hashes->values = NULL;
    hashes->kept = NULL;
    hashes->chunks = NULL;
    hashes->pieces = NULL;
    hashes->pieces_of = NULL;
    hashes->piece_count = 0;
    hashes->count = 0;
    hashes->variables = 0;
    hashes->variable_chunks = 0;
    hashes->capacity = 0;
    hashes->chunk_capacity = 0;
}

void state_hashes_clear(struct state_hashes *hashes)
{
    free_room(hashes);
    *hashes = (struct state_hashes){0};
}

/* --- room --- */

static size_t bytes_of(const cadre_strategy *strategy, uint32_t i)
{
    uint32_t variables = strategy->variables->count;
    return i < variables ? strategy->variables->list[i]->bytes
                         : strategy->state_part->registered[i - variables].size;
}

static uint64_t name_of(const cadre_strategy *strategy, uint32_t i)
{
    char name[LIMIT_NAME_BYTES + sizeof REGISTERED_PREFIX];
    uint32_t variables = strategy->variables->count;
    if (i < variables) {
        const char *of_variable = strategy->variables->list[i]->name;
        return hash_plain(of_variable, strlen(of_variable));
    }
    int length = snprintf(name, sizeof name, REGISTERED_PREFIX "%s",
        strategy->state_part->registered[i - variables].name);
    CADRE_ASSERT(length > 0);
    return hash_plain(name, (size_t)length);
}

static size_t count_chunks(const cadre_strategy *strategy, uint32_t from, uint32_t to)
{
    size_t chunks = 0;
    for (uint32_t i = from; i < to; i++) {
        chunks += hash_chunk_count(bytes_of(strategy, i));
    }
    return chunks;
}

static cadre_status get_room(
    struct state_hashes *hashes, uint32_t count, size_t chunks, struct cadre_error *error)
{
    free_room(hashes);
    hashes->names = calloc((size_t)count + 1, sizeof *hashes->names);
    hashes->values = calloc((size_t)count + 1, sizeof *hashes->values);
    hashes->kept = calloc((size_t)count + 1, sizeof *hashes->kept);
    hashes->chunks = calloc(chunks + 1, sizeof *hashes->chunks);
    hashes->pieces = calloc((size_t)count + 1, sizeof *hashes->pieces);
    hashes->pieces_of = calloc((size_t)count + 1, sizeof *hashes->pieces_of);
    if (hashes->names == NULL || hashes->values == NULL || hashes->kept == NULL ||
        hashes->chunks == NULL || hashes->pieces == NULL || hashes->pieces_of == NULL) {
        free_room(hashes);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the hashes of %u tensors", count);
    }
    hashes->capacity = count;
    hashes->chunk_capacity = chunks;
    return CADRE_OK;
}

/* The tensors from `from` on, of which no hash is kept. */
static void lay_out(const cadre_strategy *strategy, struct state_hashes *hashes, uint32_t from)
{
    size_t first = from > 0 ? hashes->variable_chunks : 0;
    for (uint32_t i = from; i < hashes->count; i++) {
        hashes->names[i] = name_of(strategy, i);
        hashes->kept[i] = (struct state_hash_kept){.first = first};
        first += hash_chunk_count(bytes_of(strategy, i));
    }
}

cadre_status state_hash_prepare(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error)
{
    uint32_t variables = strategy->variables->count;
    uint32_t count = variables + strategy->state_part->registered_count;
    bool same = hashes->names != NULL && hashes->variables == variables;
    size_t of_variables = same ? hashes->variable_chunks : count_chunks(strategy, 0, variables);
    size_t chunks = of_variables + count_chunks(strategy, variables, count);
    if (hashes->names == NULL || count > hashes->capacity || chunks > hashes->chunk_capacity) {
        CADRE_TRY(get_room(hashes, count, chunks, error));
        same = false;
    }
    hashes->count = count;
    hashes->variables = variables;
    hashes->variable_chunks = of_variables;
    hashes->hashed = 0;
    lay_out(strategy, hashes, same ? variables : 0);
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
        hash = hash_seeded(&size, sizeof size, hash);
        hash = hash_seeded(strings[i].bytes, (size_t)size, hash);
    }
    return hash;
}

/* The chunks of tensor `i` that are hashed in this turn. */
static struct hash_turn turn_of(const struct state_hash_kept *kept, struct state_hash_turn turn)
{
    CADRE_ASSERT(turn.of > 0);
    size_t past = (kept->first + turn.number) % turn.of;
    return (struct hash_turn){.first = (turn.of - past) % turn.of, .stride = turn.of};
}

static void state_hash_join(struct state_hashes *hashes, uint32_t i, size_t size)
{
    CADRE_ASSERT(i < hashes->count);
    hashes->values[i] = hash_join(hashes->chunks + hashes->kept[i].first, hash_chunk_count(size));
}

static void hash_on_replica(
    struct state_hashes *hashes, uint32_t i, const void *bytes, size_t size, struct hash_turn turn)
{
    CADRE_ASSERT(i < hashes->count);
    if (turn.first < hash_chunk_count(size)) {
        hashes->hashed += hash_chunks(bytes, size, turn, hashes->chunks + hashes->kept[i].first);
        state_hash_join(hashes, i, size);
    }
}

/* Tensors on a device are hashed together, by hash_pieces. */
static void add_piece(struct state_hashes *hashes, uint32_t i, const cadre_variable *variable,
    const struct variable_component *component, struct hash_turn turn)
{
    if (turn.first < hash_chunk_count(variable->bytes)) {
        CADRE_ASSERT(hashes->piece_count < hashes->capacity);
        CADRE_ASSERT(hashes->piece_count == 0 || hashes->device == component->device);
        hashes->device = component->device; /* of one replica */
        hashes->pieces_of[hashes->piece_count] = i;
        hashes->pieces[hashes->piece_count++] = (struct device_hashed){.data = component->value,
            .size = variable->bytes,
            .turn = turn,
            .chunks = hashes->chunks + hashes->kept[i].first};
    }
}

static cadre_status hash_pieces(struct state_hashes *hashes, struct cadre_error *error)
{
    uint32_t count = hashes->piece_count;
    hashes->piece_count = 0;
    if (count == 0) {
        return CADRE_OK;
    }
    cadre_status status =
        device_hash(hashes->device, hashes->pieces, count, &hashes->hashed, error);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = hashes->pieces_of[k];
        if (status == CADRE_OK) {
            state_hash_join(hashes, i, hashes->pieces[k].size);
        } else {
            hashes->kept[i].writes = 0; /* it has no hash */
        }
    }
    return status;
}

static void hash_component(const cadre_variable *variable,
    const struct variable_component *component, uint32_t i, struct state_hash_turn turn,
    struct state_hashes *hashes)
{
    struct state_hash_kept *kept = &hashes->kept[i];
    struct hash_turn chunks = turn_of(kept, kept->writes == component->writes + 1 ? turn : whole);
    if (component->device != NULL) {
        add_piece(hashes, i, variable, component, chunks);
    } else {
        hash_on_replica(hashes, i, component->value, variable->bytes, chunks);
    }
    kept->writes = component->writes + 1;
}

/* --- all of them --- */

/* Whether each local replica has a component of it that it alone writes in a step. */
static bool is_own(const cadre_variable *variable)
{
    return variable->component_count > 1 && !variable->on_read;
}

cadre_status state_hash_shared(const cadre_strategy *strategy, struct state_hash_turn turn,
    struct state_hashes *hashes, struct cadre_error *error)
{
    uint32_t variables = strategy->variables->count;
    CADRE_ASSERT(hashes->count == variables + strategy->state_part->registered_count);
    for (uint32_t i = 0; i < variables; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype == CADRE_STRING) {
            hashes->values[i] = hash_strings(variable);
        } else if (!is_own(variable)) {
            hash_component(variable, variable_state(variable), i, turn, hashes);
        }
    }
    for (uint32_t i = variables; i < hashes->count; i++) {
        const struct registered_state *state = &strategy->state_part->registered[i - variables];
        hash_on_replica(
            hashes, i, registered_data(state), state->size, turn_of(&hashes->kept[i], whole));
    }
    return hash_pieces(hashes, error);
}

cadre_status state_hash_own(const cadre_strategy *strategy, uint32_t local,
    struct state_hash_turn turn, struct state_hashes *hashes, struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->dtype != CADRE_STRING && is_own(variable)) {
            hash_component(variable, &variable->components[local], i, turn, hashes);
        }
    }
    return hash_pieces(hashes, error);
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
    CADRE_TRY(state_hash_shared(strategy, whole, hashes, error));
    CADRE_TRY(state_hash_own(strategy, local, whole, hashes, error));
    if (fault_point("state_hash.flip")) { /* a test's fault of the memory */
        *(uint8_t *)strategy->variables->list[0]->components[local].value ^= 1;
    }
    return CADRE_OK;
}

uint64_t state_digest(const struct state_hashes *hashes)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < hashes->count; i++) {
        const uint64_t pair[2] = {hashes->names[i], hashes->values[i]};
        digest = hash_seeded(pair, sizeof pair, digest);
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

void state_hash_copied(struct state_hashes *hashes, uint32_t i, const void *bytes, size_t size)
{
    hash_on_replica(hashes, i, bytes, size, turn_of(&hashes->kept[i], whole));
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
