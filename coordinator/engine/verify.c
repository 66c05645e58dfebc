/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves about a job, read from the store page by page. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/engine_state.h"

struct audit_stream {
    uint32_t stream;
    uint64_t samples;
    bool shares;
    char name[LIMIT_NAME_BYTES];
};

/* A page has room for the newest epoch of each stream beside those in order, and for the newest
 * verified position. */
#define EPOCHS_IN_ORDER   (LIMIT_PAGE_EPOCHS - LIMIT_STREAMS)
#define VERIFIED_IN_ORDER (LIMIT_PAGE_VERIFIED - 1)

struct gathering {
    struct audit *audit;
    struct verify_from next;
    bool more_generations;
    bool more_epochs;
    bool more_verified;
    bool short_of_memory;
};

void engine_audit_free(struct audit *audit)
{
    free(audit->generations);
    free(audit->epochs);
    free(audit->streams);
    free(audit->verified);
    *audit = (struct audit){0};
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
    struct audit *audit = gathering->audit;
    if (audit->generation_count == LIMIT_PAGE_GENERATIONS) {
        gathering->more_generations = true;
        gathering->next.generation = plan->generation.number;
        return;
    }
    gathering->next.generation = plan->generation.number + 1;
    audit->generations = with_room(gathering, audit->generations, sizeof *audit->generations,
        audit->generation_count, &audit->generation_capacity);
    if (!gathering->short_of_memory) {
        audit->generations[audit->generation_count++] =
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
    struct audit *audit = gathering->audit;
    audit->streams = with_room(gathering, audit->streams, sizeof *audit->streams,
        audit->stream_count, &audit->stream_capacity);
    if (!gathering->short_of_memory) {
        struct audit_stream *made = &audit->streams[audit->stream_count++];
        *made = (struct audit_stream){
            .stream = stream->stream, .samples = stream->samples, .shares = stream->shares};
        memcpy(made->name, stream->name, strnlen(stream->name, sizeof made->name - 1));
    }
}

static void add_epoch(struct gathering *gathering, const struct store_epoch *epoch)
{
    struct audit *audit = gathering->audit;
    audit->epochs = with_room(gathering, audit->epochs, sizeof *audit->epochs, audit->epoch_count,
        &audit->epoch_capacity);
    if (!gathering->short_of_memory) {
        audit->epochs[audit->epoch_count++] = (struct verify_epoch){.stream = epoch->cursor.stream,
            .name = "",
            .cursor = epoch->cursor,
            .consumption = epoch->consumption};
    }
}

static void take_epoch(void *user, const struct store_epoch *epoch)
{
    struct gathering *gathering = user;
    gathering->next.stream = epoch->cursor.stream;
    gathering->next.epoch = epoch->cursor.epoch;
    if (gathering->audit->epoch_count == EPOCHS_IN_ORDER) {
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
    struct audit *audit = gathering->audit;
    audit->verified = with_room(gathering, audit->verified, sizeof *audit->verified,
        audit->verified_count, &audit->verified_capacity);
    if (!gathering->short_of_memory) {
        audit->verified[audit->verified_count++] = *verified;
    }
}

static void take_verified(void *user, const struct verified *verified)
{
    struct gathering *gathering = user;
    gathering->next.position = verified->position;
    if (gathering->audit->verified_count == VERIFIED_IN_ORDER) {
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
static void name_epochs(struct audit *audit)
{
    size_t at = 0;
    for (size_t i = 0; i < audit->epoch_count; i++) {
        struct verify_epoch *epoch = &audit->epochs[i];
        while (at < audit->stream_count && audit->streams[at].stream < epoch->stream) {
            at++;
        }
        if (at < audit->stream_count && audit->streams[at].stream == epoch->stream) {
            epoch->name = audit->streams[at].name;
            epoch->shares = audit->streams[at].shares;
            epoch->source_samples = audit->streams[at].samples;
        }
    }
}

static cadre_status engine_gather(struct engine *engine, const struct verify_request *request,
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
    gathering->audit->generation_count = 0;
    gathering->audit->epoch_count = 0;
    gathering->audit->stream_count = 0;
    gathering->audit->verified_count = 0;
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
    struct audit *audit = &engine->audit;
    struct gathering gathering = {.audit = audit, .next = request->from};
    CADRE_TRY(engine_gather(engine, request, &gathering, error));
    name_epochs(audit);
    *ret_response = (struct verify_response){.generations = audit->generations,
        .generation_count = audit->generation_count,
        .epochs = audit->epochs,
        .epoch_count = audit->epoch_count,
        .verified = audit->verified,
        .verified_count = audit->verified_count,
        .more = gathering.more_generations || gathering.more_epochs || gathering.more_verified};
    if (ret_response->more) {
        ret_response->next = gathering.next;
    }
    engine_fill_basics(engine, entry, &ret_response->job);
    ret_response->committed = ret_response->job.position;
    return CADRE_OK;
}
