/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves about a job, gathered from the store page by page. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/engine_state.h"

struct proof_stream {
    uint32_t stream;
    uint64_t samples;
    bool shares;
    char name[LIMIT_NAME_BYTES];
};

/* A page has room for the newest epoch of each stream beside those that follow each other, and for
 * the newest verified position. */
#define EPOCHS_IN_ORDER   (LIMIT_PAGE_EPOCHS - LIMIT_STREAMS)
#define VERIFIED_IN_ORDER (LIMIT_PAGE_VERIFIED - 1)

struct gathering {
    struct proof *proof;
    struct verify_from next;
    bool more_generations;
    bool more_epochs;
    bool more_verified;
    bool short_of_memory;
};

void engine_proof_free(struct proof *proof)
{
    free(proof->generations);
    free(proof->epochs);
    free(proof->streams);
    free(proof->verified);
    *proof = (struct proof){0};
}

/* The items with room for one more; as they were when memory is out. */
static void *with_room(
    struct gathering *gathering, void *items, size_t item_bytes, size_t count, size_t *capacity)
{
    if (count < *capacity) {
        return items;
    }
    size_t wanted = *capacity > 0 ? *capacity * 2 : 64;
    void *grown = realloc(items, wanted * item_bytes);
    if (grown == NULL) {
        gathering->short_of_memory = true;
        return items;
    }
    *capacity = wanted;
    return grown;
}

static void take_plan(void *user, const struct store_plan *plan)
{
    struct gathering *gathering = user;
    struct proof *proof = gathering->proof;
    if (proof->generation_count == LIMIT_PAGE_GENERATIONS) {
        gathering->more_generations = true;
        gathering->next.generation = plan->generation.number;
        return;
    }
    gathering->next.generation = plan->generation.number + 1;
    proof->generations = with_room(gathering, proof->generations, sizeof *proof->generations,
        proof->generation_count, &proof->generation_capacity);
    if (!gathering->short_of_memory) {
        proof->generations[proof->generation_count++] =
            (struct verify_generation){.generation = plan->generation,
                .resume = plan->resume,
                .restarted = plan->restarted,
                .members = plan->members,
                .planned_us = plan->planned_us};
    }
}

static void take_stream(void *user, const struct store_stream *stream)
{
    struct gathering *gathering = user;
    struct proof *proof = gathering->proof;
    proof->streams = with_room(gathering, proof->streams, sizeof *proof->streams,
        proof->stream_count, &proof->stream_capacity);
    if (!gathering->short_of_memory) {
        struct proof_stream *made = &proof->streams[proof->stream_count++];
        *made = (struct proof_stream){
            .stream = stream->stream, .samples = stream->samples, .shares = stream->shares};
        memcpy(made->name, stream->name, strnlen(stream->name, sizeof made->name - 1));
    }
}

static void add_epoch(struct gathering *gathering, const struct store_epoch *epoch)
{
    struct proof *proof = gathering->proof;
    proof->epochs = with_room(gathering, proof->epochs, sizeof *proof->epochs, proof->epoch_count,
        &proof->epoch_capacity);
    if (!gathering->short_of_memory) {
        proof->epochs[proof->epoch_count++] = (struct verify_epoch){.stream = epoch->cursor.stream,
            .name = "",
            .cursor = epoch->cursor,
            .feed = epoch->feed};
    }
}

static void take_epoch(void *user, const struct store_epoch *epoch)
{
    struct gathering *gathering = user;
    gathering->next.stream = epoch->cursor.stream;
    gathering->next.epoch = epoch->cursor.epoch;
    if (gathering->proof->epoch_count == EPOCHS_IN_ORDER) {
        gathering->more_epochs = true;
    } else {
        gathering->next.epoch++;
        add_epoch(gathering, epoch);
    }
}

/* On the first page; those that it does not have yet come after all that it has. */
static void take_newest(void *user, const struct store_epoch *epoch)
{
    struct gathering *gathering = user;
    const struct verify_from *next = &gathering->next;
    const struct cursor *cursor = &epoch->cursor;
    if (gathering->more_epochs &&
        (cursor->stream > next->stream ||
            (cursor->stream == next->stream && cursor->epoch >= next->epoch))) {
        add_epoch(gathering, epoch);
    }
}

static void add_verified(struct gathering *gathering, const struct verified *verified)
{
    struct proof *proof = gathering->proof;
    proof->verified = with_room(gathering, proof->verified, sizeof *proof->verified,
        proof->verified_count, &proof->verified_capacity);
    if (!gathering->short_of_memory) {
        proof->verified[proof->verified_count++] = *verified;
    }
}

static void take_verified(void *user, const struct verified *verified)
{
    struct gathering *gathering = user;
    gathering->next.position = verified->position;
    if (gathering->proof->verified_count == VERIFIED_IN_ORDER) {
        gathering->more_verified = true;
    } else {
        gathering->next.position++;
        add_verified(gathering, verified);
    }
}

/* On the first page; it is there already when there is no other page. */
static void take_newest_verified(void *user, const struct verified *verified)
{
    struct gathering *gathering = user;
    if (gathering->more_verified) {
        add_verified(gathering, verified);
    }
}

/* Both are in order of stream. */
static void name_epochs(struct proof *proof)
{
    size_t at = 0;
    for (size_t i = 0; i < proof->epoch_count; i++) {
        struct verify_epoch *epoch = &proof->epochs[i];
        while (at < proof->stream_count && proof->streams[at].stream < epoch->stream) {
            at++;
        }
        if (at < proof->stream_count && proof->streams[at].stream == epoch->stream) {
            epoch->name = proof->streams[at].name;
            epoch->shares = proof->streams[at].shares;
            epoch->source_samples = proof->streams[at].samples;
        }
    }
}

static cadre_status gather(struct engine *engine, const struct verify_request *request,
    struct gathering *gathering, struct cadre_error *error)
{
    const struct verify_from *from = &request->from;
    bool first =
        from->generation == 0 && from->stream == 0 && from->epoch == 0 && from->position == 0;
    const struct store_walk walk = {.generation = from->generation,
        .plans_max = LIMIT_PAGE_GENERATIONS + 1,
        .stream = from->stream,
        .epoch = from->epoch,
        .epochs_max = EPOCHS_IN_ORDER + 1,
        .position = from->position,
        .verified_max = VERIFIED_IN_ORDER + 1,
        .plan_row = take_plan,
        .stream_row = take_stream,
        .epoch_row = take_epoch,
        .newest_row = first ? take_newest : NULL,
        .verified_row = take_verified,
        .newest_verified_row = first ? take_newest_verified : NULL,
        .user = gathering};
    gathering->proof->generation_count = 0;
    gathering->proof->epoch_count = 0;
    gathering->proof->stream_count = 0;
    gathering->proof->verified_count = 0;
    CADRE_TRY(engine->store->ops->ledger(engine->store, request->id, &walk, error));
    if (gathering->short_of_memory) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for the ledger of job %llu",
            (unsigned long long)request->id.n);
    }
    return CADRE_OK;
}

cadre_status engine_verify(struct engine *engine, const struct verify_request *request,
    struct verify_response *ret_response, struct cadre_error *error)
{
    struct directory_entry *entry = directory_find(&engine->directory, request->id);
    if (entry == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)request->id.n);
    }
    if (entry->damaged) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "job %llu cannot be verified: %s",
            (unsigned long long)request->id.n, entry->text);
    }
    struct proof *proof = &engine->proof;
    struct gathering gathering = {.proof = proof, .next = request->from};
    CADRE_TRY(gather(engine, request, &gathering, error));
    name_epochs(proof);
    *ret_response = (struct verify_response){.generations = proof->generations,
        .generation_count = proof->generation_count,
        .epochs = proof->epochs,
        .epoch_count = proof->epoch_count,
        .verified = proof->verified,
        .verified_count = proof->verified_count,
        .more = gathering.more_generations || gathering.more_epochs || gathering.more_verified};
    if (ret_response->more) {
        ret_response->next = gathering.next;
    }
    engine_fill_basics(engine, entry, &ret_response->job);
    ret_response->committed = ret_response->job.position;
    return CADRE_OK;
}
