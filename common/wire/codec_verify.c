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
static Cadre__V1__VerifyFrom *encode_from(
    Cadre__V1__VerifyFrom *wire, const struct verify_from *from)
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

static struct verify_from decode_from(struct decoder *decoder, const Cadre__V1__VerifyFrom *wire)
{
    if (wire == NULL) {
        return (struct verify_from){.generation = 0};
    }
    return (struct verify_from){.generation = wire->generation,
        .stream = decode_stream(decoder, "VerifyFrom.stream", wire->stream),
        .epoch = wire->epoch,
        .position = decode_position(decoder, "VerifyFrom.position", wire->position)};
}

cadre_status wire_pack_verify_request(
    const struct verify_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__VerifyRequest wire = CADRE__V1__VERIFY_REQUEST__INIT;
    Cadre__V1__VerifyFrom from;
    wire.id = message->id.n;
    wire.from = encode_from(&from, &message->from);
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_verify_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct verify_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__VerifyRequest *wire = decoder_open(
        &decoder, &cadre__v1__verify_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->id = decode_job_id(&decoder, "VerifyRequest.id", wire->id);
        ret_message->from = decode_from(&decoder, wire->from);
    }
    return decoder.status;
}

/* ---- VerifyResponse ---- */

struct wire_generation {
    Cadre__V1__VerifyGeneration verify;
    Cadre__V1__Generation generation;
};

struct wire_epoch {
    Cadre__V1__VerifyEpoch verify;
    Cadre__V1__Cursor cursor;
    struct wire_consumption consumption;
};

static void encode_generations(struct encoder *encoder, Cadre__V1__VerifyResponse *wire,
    const struct verify_response *response)
{
    size_t count = response->generation_count;
    Cadre__V1__VerifyGeneration **list = encoder_array(encoder, count, sizeof *list);
    struct wire_generation *storage = encoder_array(encoder, count, sizeof *storage);
    if (list == NULL || storage == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct verify_generation *from = &response->generations[i];
        Cadre__V1__VerifyGeneration *to = &storage[i].verify;
        cadre__v1__verify_generation__init(to);
        encode_generation(&storage[i].generation, from->generation);
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

static void encode_epochs(struct encoder *encoder, Cadre__V1__VerifyResponse *wire,
    const struct verify_response *response)
{
    size_t count = response->epoch_count;
    Cadre__V1__VerifyEpoch **list = encoder_array(encoder, count, sizeof *list);
    struct wire_epoch *storage = encoder_array(encoder, count, sizeof *storage);
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
        encode_cursor(&storage[i].cursor, &from->cursor);
        to->cursor = &storage[i].cursor;
        encode_consumption(&storage[i].consumption, &from->consumption);
        to->consumption = &storage[i].consumption.consumption;
        list[i] = to;
    }
    wire->epochs = list;
    wire->n_epochs = count;
}

/* Of each the digest is known. */
static void encode_positions(struct encoder *encoder, Cadre__V1__VerifyResponse *wire,
    const struct verify_response *response)
{
    size_t count = response->verified_count;
    Cadre__V1__Verified **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__Verified *storage = encoder_array(encoder, count, sizeof *storage);
    if (list == NULL || storage == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = encode_verified(&storage[i], &response->verified[i]);
        CADRE_ASSERT(list[i] != NULL);
    }
    wire->verified = list;
    wire->n_verified = count;
}

static void decode_generations(struct decoder *decoder, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!decode_count(
            decoder, "VerifyResponse.generations", wire->n_generations, LIMIT_PAGE_GENERATIONS)) {
        return;
    }
    struct verify_generation *generations =
        decode_array(decoder, wire->n_generations, sizeof *generations);
    if (generations == NULL) {
        return;
    }
    decoder->list = "VerifyResponse.generations";
    for (size_t i = 0; i < wire->n_generations; i++) {
        const Cadre__V1__VerifyGeneration *from = wire->generations[i];
        decoder->entry = i;
        generations[i] = (struct verify_generation){
            .generation =
                decode_generation(decoder, "VerifyGeneration.generation", from->generation),
            .resume = decode_position(decoder, "VerifyGeneration.resume", from->resume),
            .restarted = from->restarted,
            .members = decode_u32(
                decoder, "VerifyGeneration.members", from->members, 0, LIMIT_TASKS_PER_JOB),
            .planned_us = from->planned_us,
        };
    }
    decoder->list = NULL;
    ret_response->generations = generations;
    ret_response->generation_count = wire->n_generations;
}

static void decode_epochs(struct decoder *decoder, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!decode_count(decoder, "VerifyResponse.epochs", wire->n_epochs, LIMIT_PAGE_EPOCHS)) {
        return;
    }
    struct verify_epoch *epochs = decode_array(decoder, wire->n_epochs, sizeof *epochs);
    if (epochs == NULL) {
        return;
    }
    decoder->list = "VerifyResponse.epochs";
    for (size_t i = 0; i < wire->n_epochs; i++) {
        const Cadre__V1__VerifyEpoch *from = wire->epochs[i];
        decoder->entry = i;
        epochs[i] = (struct verify_epoch){
            .stream = decode_stream(decoder, "VerifyEpoch.stream", from->stream),
            .name = decode_name_or_empty(decoder, "VerifyEpoch.name", from->name),
            .shares = from->shares,
            .source_samples =
                decode_position(decoder, "VerifyEpoch.source_samples", from->source_samples),
            .cursor = decode_cursor(decoder, from->cursor),
            .consumption = decode_consumption(decoder, from->consumption),
        };
    }
    decoder->list = NULL;
    ret_response->epochs = epochs;
    ret_response->epoch_count = wire->n_epochs;
}

static void decode_positions(struct decoder *decoder, const Cadre__V1__VerifyResponse *wire,
    struct verify_response *ret_response)
{
    if (!decode_count(decoder, "VerifyResponse.verified", wire->n_verified, LIMIT_PAGE_VERIFIED)) {
        return;
    }
    struct verified *verified = decode_array(decoder, wire->n_verified, sizeof *verified);
    if (verified == NULL) {
        return;
    }
    decoder->list = "VerifyResponse.verified";
    for (size_t i = 0; i < wire->n_verified; i++) {
        decoder->entry = i;
        verified[i] = decode_verified(decoder, wire->verified[i]);
    }
    decoder->list = NULL;
    ret_response->verified = verified;
    ret_response->verified_count = wire->n_verified;
}

cadre_status wire_pack_verify_response(
    const struct verify_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__VerifyResponse wire = CADRE__V1__VERIFY_RESPONSE__INIT;
    Cadre__V1__JobInfo job;
    Cadre__V1__VerifyFrom next;
    encode_job_info(&encoder, &job, &message->job);
    wire.job = &job;
    wire.committed = message->committed;
    wire.more = message->more;
    wire.next = encode_from(&next, &message->next);
    encode_generations(&encoder, &wire, message);
    encode_epochs(&encoder, &wire, message);
    encode_positions(&encoder, &wire, message);
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_verify_response(const void *bytes, size_t size, struct wire_arena *arena,
    struct verify_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__VerifyResponse *wire = decoder_open(
        &decoder, &cadre__v1__verify_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL || !decode_present(&decoder, "VerifyResponse.job", wire->job)) {
        return decoder.status;
    }
    *ret_message = (struct verify_response){
        .committed = decode_position(&decoder, "VerifyResponse.committed", wire->committed),
        .more = wire->more,
        .next = decode_from(&decoder, wire->next),
    };
    decode_job_info(&decoder, wire->job, &ret_message->job);
    decode_generations(&decoder, wire, ret_message);
    decode_epochs(&decoder, wire, ret_message);
    decode_positions(&decoder, wire, ret_message);
    return decoder.status;
}

/* ---- DrainRequest ---- */

cadre_status wire_pack_drain_request(
    const struct drain_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__DrainRequest wire = CADRE__V1__DRAIN_REQUEST__INIT;
    wire.worker = (char *)message->worker;
    wire.reason = (char *)message->reason;
    wire.ends = message->ends;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_drain_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct drain_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__DrainRequest *wire = decoder_open(
        &decoder, &cadre__v1__drain_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->worker = decode_name(&decoder, "DrainRequest.worker", wire->worker);
        ret_message->reason = decode_name_or_empty(&decoder, "DrainRequest.reason", wire->reason);
        ret_message->ends = wire->ends;
    }
    return decoder.status;
}
