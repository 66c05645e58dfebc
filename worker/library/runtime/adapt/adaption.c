/* SPDX-License-Identifier: Apache-2.0
 * Rounds of blocks over a dataset: which replica reads a block, the meetings while one still
 * reads, the exchange. normalize.c and vocabulary.c run it. */
#include "worker/library/runtime/adapt/adaption.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"

/* A wait of a second for another task is reported, and a task that is waited for too long is
 * replaced. So all meet about this often while they read. */
#define MEET_US (CADRE_US_PER_S / 4)

/* --- one block --- */

/* Puts the iterator before element `number`. */
static cadre_status seek_before(
    struct adaption *adaption, uint64_t number, struct cadre_error *error)
{
    if (adaption->iterator != NULL && adaption->next_element > number) {
        cadre_iterator_release(adaption->iterator);
        adaption->iterator = NULL;
    }
    if (adaption->iterator == NULL) {
        const struct pass pass = {.ordered = true};
        CADRE_TRY(dataset_iterate(adaption->data, &pass, &adaption->iterator, error));
        adaption->next_element = 0;
    }
    uint64_t skipped = 0;
    CADRE_ASSERT(adaption->next_element <= number);
    CADRE_TRY(iterator_skip(adaption->iterator, number - adaption->next_element, &skipped, error));
    adaption->next_element += skipped;
    return adaption->next_element == number ? CADRE_OK : iterator_end(error);
}

/* OUT_OF_RANGE after the last one. */
static cadre_status read_element(struct adaption *adaption, uint64_t number,
    cadre_element *ret_element, struct cadre_error *error)
{
    if (adaption->by_index) {
        int64_t cardinality = dataset_cardinality(adaption->data);
        struct id_list ids = {0};
        cadre_status status =
            cardinality >= 0 && number >= (uint64_t)cardinality
                ? iterator_end(error)
                : dataset_at(adaption->data, (struct element_position){.index = number},
                      ret_element, &ids, error);
        id_list_clear(&ids);
        return status;
    }
    CADRE_TRY(seek_before(adaption, number, error));
    CADRE_TRY(iterator_next(adaption->iterator, ret_element, NULL, error));
    adaption->next_element++;
    return CADRE_OK;
}

static cadre_status read_block(
    struct adaption *adaption, uint32_t local, uint64_t block, struct cadre_error *error)
{
    CADRE_ASSERT(block < adaption->blocks);
    CADRE_ASSERT(adaption->counts[block] < 0);
    uint64_t first =
        (adaption->round * adaption->blocks + block) * (uint64_t)adaption->block_elements;
    int64_t count = 0;
    adaption->ops->empty(adaption, block);
    while (count < adaption->block_elements) {
        cadre_element element = {0};
        uint64_t number = first + (uint64_t)count;
        cadre_status status = read_element(adaption, number, &element, error);
        if (status == CADRE_OUT_OF_RANGE) {
            break;
        }
        if (status == CADRE_OK) {
            status = adaption->ops->add(adaption, local, block, &element, number, error);
        }
        cadre_element_release(&element);
        CADRE_TRY(status);
        count++;
    }
    adaption->counts[block] = count;
    return CADRE_OK;
}

/* --- one round --- */

/* Whether a replica reads a block. In order only the first replica of a task reads, because an
 * iterator has one position. */
static bool is_mine(const cadre_strategy *strategy, uint32_t local, bool by_index, uint64_t block)
{
    uint64_t rank = strategy->roster.rank;
    uint64_t locals = strategy->local_replicas;
    uint64_t tasks = strategy->roster.member_count;
    return by_index ? block % (tasks * locals) == rank * locals + local
                    : local == 0 && block % tasks == rank;
}

bool adaption_owns_block(
    const cadre_strategy *strategy, const struct adaption *adaption, uint32_t local, uint64_t block)
{
    /* Blocks of other replicas may be being read just now. Not all of the own are read where the
     * last meeting was played back to this task. */
    return is_mine(strategy, local, adaption->by_index, block) && adaption->counts[block] >= 0;
}

/* Reads blocks that are not read yet, until it is time to meet the others; *ret_left: some are
 * left. */
static cadre_status read_mine(const cadre_strategy *strategy, uint32_t local,
    struct adaption *adaption, bool *ret_left, struct cadre_error *error)
{
    const uint64_t until_us = clock_monotonic_us() + MEET_US;
    *ret_left = false;
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        bool unread =
            is_mine(strategy, local, adaption->by_index, block) && adaption->counts[block] < 0;
        if (unread && clock_monotonic_us() >= until_us) {
            *ret_left = true;
            return CADRE_OK;
        }
        if (unread) {
            CADRE_TRY(read_block(adaption, local, block, error));
        }
    }
    return adaption->ops->prepare(strategy, adaption, local, error);
}

static int64_t exchanged_elements(
    const cadre_strategy *strategy, uint32_t local, const struct adaption *adaption)
{
    int64_t elements = 0;
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        if (adaption_owns_block(strategy, adaption, local, block)) {
            elements += adaption->counts[block];
        }
    }
    return elements;
}

/* Until all replicas have read theirs, or one cannot. They meet in between: the slowest of them
 * decides how often, and all count the same. */
static cadre_status read_round(cadre_strategy *strategy, uint32_t local, struct adaption *adaption,
    uint64_t key, int64_t *ret_failures, struct cadre_error *error)
{
    int64_t counts[3] = {1, 0, 0}; /* replicas that have not read all; that cannot; elements */
    for (uint64_t times = 0; counts[0] > 0 && counts[1] == 0; times++) {
        bool left = false;
        struct cadre_error own = {0};
        cadre_status status = read_mine(strategy, local, adaption, &left, &own);
        if (status != CADRE_OK && !atomic_flag_test_and_set(adaption->own_is_set)) {
            adaption->own = own;
            adaption->own.code = status;
        }
        counts[0] = left ? 1 : 0;
        counts[1] = status != CADRE_OK ? 1 : 0;
        counts[2] = exchanged_elements(strategy, local, adaption);
        const struct mesh_buffer buffer = {
            .data = counts, .bytes = sizeof counts, .dtype = MESH_I64};
        CADRE_TRY(collective_sum(strategy, local, &buffer, 1, collective_key(key, times), error));
    }
    *ret_failures = counts[1];
    if (local == 0) {
        adaption->failures = counts[1];
        adaption->elements = counts[2];
    }
    return CADRE_OK;
}

static cadre_status round_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct adaption *adaption = user;
    CADRE_ASSERT(local < strategy->local_replicas);
    uint64_t key = collective_key(adaption->key, adaption->round);
    int64_t failures = 0;
    cadre_status status = read_round(strategy, local, adaption, key, &failures, error);
    if (status == CADRE_OK && failures > 0) {
        return collective_share_first_error(
            strategy, local, &adaption->own, &adaption->theirs, error);
    }
    if (status == CADRE_OK) {
        status = adaption->ops->exchange(strategy, adaption, local, key, error);
    }
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status,
            "the tasks do not call %s for the same data: here it has %s", adaption->name,
            adaption->exchanged_text);
    }
    return status;
}

static cadre_status run_round(
    cadre_strategy *strategy, struct adaption *adaption, struct cadre_error *error)
{
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        adaption->counts[block] = -1;
    }
    atomic_flag own_is_set = ATOMIC_FLAG_INIT;
    adaption->own = (struct cadre_error){0};
    adaption->own_is_set = &own_is_set;
    char what[STRATEGY_CALL_TEXT_BYTES];
    snprintf(what, sizeof what, "%s to %s", adaption->name, adaption->exchanged_text);
    CADRE_TRY(strategy_between_steps(strategy, what, round_on_replica, adaption, error));
    if (adaption->failures != 0) {
        *error = adaption->own.code != CADRE_OK ? adaption->own : adaption->theirs;
        return error->code;
    }
    return adaption->ops->merge(adaption, error);
}

/* --- all of it --- */

cadre_status adaption_check(
    const struct adaption *adaption, cadre_tensor_spec *ret_spec, struct cadre_error *error)
{
    cadre_element_spec spec;
    if (adaption->data == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the dataset is NULL: there was no memory to build it, or none was given");
    }
    CADRE_TRY(dataset_status(adaption->data, error));
    CADRE_TRY(dataset_spec(adaption->data, &spec, error));
    if (dataset_cardinality(adaption->data) == CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a dataset without an end cannot be read once; take a part of it");
    }
    if (adaption->component >= spec.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "there is no component %" PRIu32 ": the elements of the dataset have %" PRIu32,
            adaption->component, spec.count);
    }
    *ret_spec = spec.tensors[adaption->component];
    return CADRE_OK;
}

cadre_status adaption_run(
    cadre_strategy *strategy, struct adaption *adaption, struct cadre_error *error)
{
    CADRE_ASSERT(adaption->blocks > 0);
    CADRE_ASSERT(adaption->block_elements > 0);
    adaption->counts = calloc(adaption->blocks, sizeof *adaption->counts);
    if (adaption->counts == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " counts", adaption->blocks);
    }
    adaption->by_index = adaption->data->indexable;
    if (adaption->by_index) {
        CADRE_TRY(dataset_prepare(adaption->data, error));
    }
    int64_t whole = (int64_t)adaption->blocks * adaption->block_elements;
    do {
        CADRE_TRY(run_round(strategy, adaption, error));
        adaption->round++;
    } while (adaption->elements == whole);
    return CADRE_OK;
}

void adaption_end(struct adaption *adaption)
{
    cadre_iterator_release(adaption->iterator);
    free(adaption->counts);
}
