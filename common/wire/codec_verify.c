/* SPDX-License-Identifier: Apache-2.0
 * What the ledger proves, and the request that empties a worker: VerifyRequest, VerifyResponse,
 * DrainRequest. */
#include "common/pure/assert.h"
#include "common/wire/codec.h"

/* At their longest, tags and lengths counted: a generation has three numbers of 10 bytes, one of 9
 * and two small ones; an epoch has a name and eleven numbers of at most 10 bytes; a verified
 * position two numbers. */
#define GENERATION_BYTES_MAX 64
#define EPOCH_BYTES_MAX      (LIMIT_NAME_BYTES + 192)
#define VERIFIED_BYTES_MAX   24
#define JOB_BYTES_MAX        16384
_Static_assert(JOB_BYTES_MAX + LIMIT_PAGE_GENERATIONS * GENERATION_BYTES_MAX +
                       LIMIT_PAGE_EPOCHS * EPOCH_BYTES_MAX +
                       LIMIT_PAGE_VERIFIED * VERIFIED_BYTES_MAX <=
                   LIMIT_FRAME_BYTES,
    "the longest verify_response fits");

/* ---- VerifyRequest ---- */

static bool is_first(const struct verify_from *from)
{
    return from->generation == 0 && from->stream == 0 && from->epoch == 0 && from->position == 0;
}

/* NULL: the first page, or none. */
static Cadre__V1__VerifyFrom *fill_from(Cadre__V1__VerifyFrom *wire, const struct verify_from *from)
{
    if (is_first(from)) {
        return NULL;
    }
    cadre__v1__verify_from__init(wire);
    wire->generation = from->generation;
    wire->stream = from->stream;
    wire->epoch = from->epoch;
    wire->position = from->position;
    return wire;
}

static struct verify_from take_from(struct taker *taker, const Cadre__V1__VerifyFrom *wire)
{
    if (wire == NULL) {
        return (struct verify_from){.generation = 0};
    }
    return (struct verify_from){.generation = wire->generation,
        .stream = take_stream(taker, "VerifyFrom.stream", wire->stream),
        .epoch = wire->epoch,
        .position = take_position(taker, "VerifyFrom.position", wire->position)};
}

cadre_status wire_pack_verify_request(
    const struct verify_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__VerifyRequest wire = CADRE__V1__VERIFY_REQUEST__INIT;
    Cadre__V1__VerifyFrom from;
    wire.id = message->id.n;
    wire.from = fill_from(&from, &message->from);
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_verify_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct verify_request *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__VerifyRequest *wire =
        taker_open(&taker, &cadre__v1__verify_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->id = take_job_id(&taker, "VerifyRequest.id", wire->id);
        ret_message->from = take_from(&taker, wire->from);
    }
    return taker.status;
}

/* ---- VerifyResponse ---- */

struct wire_generation {
    Cadre__V1__VerifyGeneration verify;
    Cadre__V1__Generation generation;
};

struct wire_epoch {
    Cadre__V1__VerifyEpoch verify;
    Cadre__V1__Cursor cursor;
    struct wire_feed feed;
};

static void fill_generations(
    struct packer *packer, Cadre__V1__VerifyResponse *wire, const struct verify_response *response)
{
    size_t count = response->generation_count;
    Cadre__V1__VerifyGeneration **list = packer_array(packer, count, sizeof *list);
    struct wire_generation *storage = packer_array(packer, count, sizeof *storage);
    if (list == NULL || storage == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct verify_generation *from = &response->generations[i];
        Cadre__V1__VerifyGeneration *to = &storage[i].verify;
        cadre__v1__verify_generation__init(to);
        fill_generation(&storage[i].generation, from->generation);
        to->generation = &storage[i].generation;
        to->resume = from->resume;
        to->restarted = from->restarted;
        to->members = from->members;
        to->planned_us = from->planned_us;
        list[i] = to;
    }
    wire->generations = list;
    wire->n_generations = count;
}

static void fill_epochs(
    struct packer *packer, Cadre__V1__VerifyResponse *wire, const struct verify_response *response)
{
    size_t count = response->epoch_count;
    Cadre__V1__VerifyEpoch **list = packer_array(packer, count, sizeof *list);
    struct wire_epoch *storage = packer_array(packer, count, sizeof *storage);
    if (list == NULL || storage == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct verify_epoch *from = &response->epochs[i];
        Cadre__V1__VerifyEpoch *to = &storage[i].verify;
        cadre__v1__verify_epoch__init(to);
        to->stream = from->stream;
        to->name = (char *)from->name;
        to->shares = from->shares;
        to->source_samples = from->source_samples;
        fill_cursor(&storage[i].cursor, &from->cursor);
        to->cursor = &storage[i].cursor;
        fill_feed(&storage[i].feed, &from->feed);
        to->feed = &storage[i].feed.feed;
        list[i] = to;
    }
    wire->epochs = list;
    wire->n_epochs = count;
}

/* Of each the digest is known. */
static void fill_positions(
    struct packer *packer, Cadre__V1__VerifyResponse *wire, const struct verify_response *response)
{
    size_t count = response->verified_count;
    Cadre__V1__Verified **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__Verified *storage = packer_array(packer, count, sizeof *storage);
    if (list == NULL || storage == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = fill_verified(&storage[i], &response->verified[i]);
        CADRE_ASSERT(list[i] != NULL);
    }
    wire->verified = list;
    wire->n_verified = count;
}

static void take_generations(struct taker *taker, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!take_count(
            taker, "VerifyResponse.generations", wire->n_generations, LIMIT_PAGE_GENERATIONS)) {
        return;
    }
    struct verify_generation *generations =
        take_array(taker, wire->n_generations, sizeof *generations);
    if (generations == NULL) {
        return;
    }
    taker->list = "VerifyResponse.generations";
    for (size_t i = 0; i < wire->n_generations; i++) {
        const Cadre__V1__VerifyGeneration *from = wire->generations[i];
        taker->entry = i;
        generations[i] = (struct verify_generation){
            .generation = take_generation(taker, "VerifyGeneration.generation", from->generation),
            .resume = take_position(taker, "VerifyGeneration.resume", from->resume),
            .restarted = from->restarted,
            .members =
                take_u32(taker, "VerifyGeneration.members", from->members, 0, LIMIT_TASKS_PER_JOB),
            .planned_us = from->planned_us,
        };
    }
    taker->list = NULL;
    ret_response->generations = generations;
    ret_response->generation_count = wire->n_generations;
}

static void take_epochs(struct taker *taker, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!take_count(taker, "VerifyResponse.epochs", wire->n_epochs, LIMIT_PAGE_EPOCHS)) {
        return;
    }
    struct verify_epoch *epochs = take_array(taker, wire->n_epochs, sizeof *epochs);
    if (epochs == NULL) {
        return;
    }
    taker->list = "VerifyResponse.epochs";
    for (size_t i = 0; i < wire->n_epochs; i++) {
        const Cadre__V1__VerifyEpoch *from = wire->epochs[i];
        taker->entry = i;
        epochs[i] = (struct verify_epoch){
            .stream = take_stream(taker, "VerifyEpoch.stream", from->stream),
            .name = take_name_or_empty(taker, "VerifyEpoch.name", from->name),
            .shares = from->shares,
            .source_samples =
                take_position(taker, "VerifyEpoch.source_samples", from->source_samples),
            .cursor = take_cursor(taker, from->cursor),
            .feed = take_feed(taker, from->feed),
        };
    }
    taker->list = NULL;
    ret_response->epochs = epochs;
    ret_response->epoch_count = wire->n_epochs;
}

static void take_positions(struct taker *taker, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!take_count(taker, "VerifyResponse.verified", wire->n_verified, LIMIT_PAGE_VERIFIED)) {
        return;
    }
    struct verified *verified = take_array(taker, wire->n_verified, sizeof *verified);
    if (verified == NULL) {
        return;
    }
    taker->list = "VerifyResponse.verified";
    for (size_t i = 0; i < wire->n_verified; i++) {
        taker->entry = i;
        verified[i] = take_verified(taker, wire->verified[i]);
    }
    taker->list = NULL;
    ret_response->verified = verified;
    ret_response->verified_count = wire->n_verified;
}

cadre_status wire_pack_verify_response(
    const struct verify_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__VerifyResponse wire = CADRE__V1__VERIFY_RESPONSE__INIT;
    Cadre__V1__JobInfo job;
    Cadre__V1__VerifyFrom next;
    fill_job_info(&packer, &job, &message->job);
    wire.job = &job;
    wire.committed = message->committed;
    wire.more = message->more;
    wire.next = fill_from(&next, &message->next);
    fill_generations(&packer, &wire, message);
    fill_epochs(&packer, &wire, message);
    fill_positions(&packer, &wire, message);
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_verify_response(const void *bytes, size_t size, struct wire_arena *arena,
    struct verify_response *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__VerifyResponse *wire =
        taker_open(&taker, &cadre__v1__verify_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL || !take_present(&taker, "VerifyResponse.job", wire->job)) {
        return taker.status;
    }
    *ret_message = (struct verify_response){
        .committed = take_position(&taker, "VerifyResponse.committed", wire->committed),
        .more = wire->more,
        .next = take_from(&taker, wire->next),
    };
    take_job_info(&taker, wire->job, &ret_message->job);
    take_generations(&taker, wire, ret_message);
    take_epochs(&taker, wire, ret_message);
    take_positions(&taker, wire, ret_message);
    return taker.status;
}

/* ---- DrainRequest ---- */

cadre_status wire_pack_drain_request(
    const struct drain_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    Cadre__V1__DrainRequest wire = CADRE__V1__DRAIN_REQUEST__INIT;
    wire.worker = (char *)message->worker;
    wire.reason = (char *)message->reason;
    wire.ends = message->ends;
    return packer_finish(&packer, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_drain_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct drain_request *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__DrainRequest *wire =
        taker_open(&taker, &cadre__v1__drain_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->worker = take_name(&taker, "DrainRequest.worker", wire->worker);
        ret_message->reason = take_name_or_empty(&taker, "DrainRequest.reason", wire->reason);
        ret_message->ends = wire->ends;
    }
    return taker.status;
}
