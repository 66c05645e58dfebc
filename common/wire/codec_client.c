/* SPDX-License-Identifier: Apache-2.0
 * What moves contents and listings: blobs, logs, outputs, workers, the version. */
#include <string.h>

#include "common/wire/codec.h"

/* Of a chunk beside its data: header, tags and lengths. */
#define CHUNK_HEAD_BYTES 4096

_Static_assert(LIMIT_BLOBS_LISTED > LIMIT_FILES_PER_JOB &&
                   LIMIT_BLOBS_LISTED > LIMIT_BLOB_BYTES / LIMIT_CHECKPOINT_BLOCK_BYTES,
    "all contents of a job, and of a checkpoint, can be asked for at once");

/* ---- LogsRequest, LogChunk ---- */

cadre_status wire_pack_logs_request(
    const struct logs_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__LogsRequest wire = CADRE__V1__LOGS_REQUEST__INIT;
    wire.id = message->id.n;
    if (message->one_slot) {
        wire._slot_case = CADRE__V1__LOGS_REQUEST___SLOT_SLOT;
        wire.slot = message->slot;
    }
    wire.follow = message->follow;
    wire.tail_bytes = message->tail_bytes;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_logs_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct logs_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__LogsRequest *wire = decoder_open(
        &decoder, &cadre__v1__logs_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL) {
        return decoder.status;
    }
    *ret_message = (struct logs_request){
        .id = decode_job_id(&decoder, "LogsRequest.id", wire->id),
        .one_slot = wire->_slot_case == CADRE__V1__LOGS_REQUEST___SLOT_SLOT,
        .follow = wire->follow,
        .tail_bytes = wire->tail_bytes,
    };
    if (ret_message->one_slot) {
        ret_message->slot =
            decode_u32(&decoder, "LogsRequest.slot", wire->slot, 0, LIMIT_TASKS_PER_JOB - 1);
    }
    return decoder.status;
}

cadre_status wire_pack_log_chunk(
    const struct log_chunk *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__LogChunk wire = CADRE__V1__LOG_CHUNK__INIT;
    wire.job = message->job.n;
    wire.slot = message->slot;
    wire.offset = message->offset;
    wire.data =
        (ProtobufCBinaryData){.len = message->size_bytes, .data = (uint8_t *)message->bytes};
    wire.end = message->end;
    return encoder_finish(&encoder, &wire.base, LIMIT_LOG_CHUNK_BYTES + CHUNK_HEAD_BYTES);
}

cadre_status wire_unpack_log_chunk(const void *bytes, size_t size, struct wire_arena *arena,
    struct log_chunk *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__LogChunk *wire = decoder_open(&decoder, &cadre__v1__log_chunk__descriptor,
        bytes, size, LIMIT_LOG_CHUNK_BYTES + CHUNK_HEAD_BYTES);
    if (wire == NULL) {
        return decoder.status;
    }
    *ret_message = (struct log_chunk){
        .job = decode_job_id(&decoder, "LogChunk.job", wire->job),
        .slot = decode_u32(&decoder, "LogChunk.slot", wire->slot, 0, LIMIT_TASKS_PER_JOB - 1),
        .offset = decode_number(&decoder, "LogChunk.offset", wire->offset, 0, INT64_MAX),
        .end = wire->end,
    };
    decode_data(&decoder, "LogChunk.data", wire->data, LIMIT_LOG_CHUNK_BYTES, &ret_message->bytes,
        &ret_message->size_bytes);
    return decoder.status;
}

/* ---- BlobList, BlobChunk, GetBlobRequest ---- */

cadre_status wire_pack_blob_list(
    const struct blob_list *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__BlobList wire = CADRE__V1__BLOB_LIST__INIT;
    ProtobufCBinaryData *hashes = encoder_array(&encoder, message->count, sizeof *hashes);
    for (size_t i = 0; i < message->count && hashes != NULL; i++) {
        hashes[i] =
            (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)message->sha256[i]};
    }
    wire.sha256 = hashes;
    wire.n_sha256 = hashes != NULL ? message->count : 0;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_blob_list(const void *bytes, size_t size, struct wire_arena *arena,
    struct blob_list *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__BlobList *wire =
        decoder_open(&decoder, &cadre__v1__blob_list__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL ||
        !decode_count(&decoder, "BlobList.sha256", wire->n_sha256, LIMIT_BLOBS_LISTED)) {
        return decoder.status;
    }
    uint8_t(*hashes)[LIMIT_SHA256_BYTES] = decode_array(&decoder, wire->n_sha256, sizeof *hashes);
    decoder.list = "BlobList.sha256";
    for (size_t i = 0; i < wire->n_sha256 && hashes != NULL; i++) {
        decoder.entry = i;
        decode_fixed_bytes(
            &decoder, "BlobList.sha256", wire->sha256[i], hashes[i], LIMIT_SHA256_BYTES);
    }
    ret_message->sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes;
    ret_message->count = wire->n_sha256;
    return decoder.status;
}

cadre_status wire_pack_blob_chunk(
    const struct blob_chunk *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__BlobChunk wire = CADRE__V1__BLOB_CHUNK__INIT;
    Cadre__V1__BlobHeader header = CADRE__V1__BLOB_HEADER__INIT;
    if (message->has_header) {
        header.sha256 =
            (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)message->sha256};
        header.size_bytes = message->size_bytes;
        wire.header = &header;
    }
    wire.data =
        (ProtobufCBinaryData){.len = message->byte_count, .data = (uint8_t *)message->bytes};
    return encoder_finish(&encoder, &wire.base, LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);
}

cadre_status wire_unpack_blob_chunk(const void *bytes, size_t size, struct wire_arena *arena,
    struct blob_chunk *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__BlobChunk *wire = decoder_open(&decoder, &cadre__v1__blob_chunk__descriptor,
        bytes, size, LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);
    if (wire == NULL) {
        return decoder.status;
    }
    *ret_message = (struct blob_chunk){.has_header = wire->header != NULL};
    if (wire->header != NULL) {
        decode_fixed_bytes(&decoder, "BlobHeader.sha256", wire->header->sha256, ret_message->sha256,
            LIMIT_SHA256_BYTES);
        ret_message->size_bytes = decode_number(
            &decoder, "BlobHeader.size_bytes", wire->header->size_bytes, 0, LIMIT_BLOB_BYTES);
    }
    decode_data(&decoder, "BlobChunk.data", wire->data, LIMIT_BLOB_CHUNK_BYTES, &ret_message->bytes,
        &ret_message->byte_count);
    return decoder.status;
}

cadre_status wire_pack_get_blob_request(
    const struct get_blob_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__GetBlobRequest wire = CADRE__V1__GET_BLOB_REQUEST__INIT;
    wire.sha256 =
        (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)message->sha256};
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_get_blob_request(const void *bytes, size_t size, struct wire_arena *arena,
    struct get_blob_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__GetBlobRequest *wire = decoder_open(
        &decoder, &cadre__v1__get_blob_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        decode_fixed_bytes(&decoder, "GetBlobRequest.sha256", wire->sha256, ret_message->sha256,
            LIMIT_SHA256_BYTES);
    }
    return decoder.status;
}

/* ---- OutputChunk, ListOutputsResponse, GetOutputRequest ---- */

cadre_status wire_pack_output_chunk(
    const struct output_chunk *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__OutputChunk wire = CADRE__V1__OUTPUT_CHUNK__INIT;
    Cadre__V1__OutputHeader header = CADRE__V1__OUTPUT_HEADER__INIT;
    Cadre__V1__TaskRef task;
    if (message->has_header) {
        encode_task_ref(&task, message->task);
        header.task = &task;
        header.path = (char *)message->path;
        header.size_bytes = message->size_bytes;
        header.checkpoint = (ProtobufCBinaryData){.len = message->refers ? LIMIT_SHA256_BYTES : 0,
            .data = (uint8_t *)message->checkpoint};
        wire.header = &header;
    }
    wire.data =
        (ProtobufCBinaryData){.len = message->byte_count, .data = (uint8_t *)message->bytes};
    return encoder_finish(&encoder, &wire.base, LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);
}

cadre_status wire_unpack_output_chunk(const void *bytes, size_t size, struct wire_arena *arena,
    struct output_chunk *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__OutputChunk *wire =
        decoder_open(&decoder, &cadre__v1__output_chunk__descriptor, bytes, size,
            LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);
    if (wire == NULL) {
        return decoder.status;
    }
    *ret_message = (struct output_chunk){.has_header = wire->header != NULL, .path = ""};
    if (wire->header != NULL) {
        ret_message->task = decode_task_ref(&decoder, "OutputHeader.task", wire->header->task);
        ret_message->path = decode_path(&decoder, "OutputHeader.path", wire->header->path);
        ret_message->size_bytes = decode_number(
            &decoder, "OutputHeader.size_bytes", wire->header->size_bytes, 0, LIMIT_BLOB_BYTES);
        ret_message->refers = wire->header->checkpoint.len > 0;
        if (ret_message->refers) {
            decode_fixed_bytes(&decoder, "OutputHeader.checkpoint", wire->header->checkpoint,
                ret_message->checkpoint, LIMIT_SHA256_BYTES);
        }
    }
    decode_data(&decoder, "OutputChunk.data", wire->data, LIMIT_BLOB_CHUNK_BYTES,
        &ret_message->bytes, &ret_message->byte_count);
    return decoder.status;
}

cadre_status wire_pack_list_outputs_response(const struct list_outputs_response *message,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__ListOutputsResponse wire = CADRE__V1__LIST_OUTPUTS_RESPONSE__INIT;
    Cadre__V1__OutputInfo **list = encoder_array(&encoder, message->count, sizeof *list);
    Cadre__V1__OutputInfo *outputs = encoder_array(&encoder, message->count, sizeof *outputs);
    if (list != NULL && outputs != NULL) {
        for (size_t i = 0; i < message->count; i++) {
            cadre__v1__output_info__init(&outputs[i]);
            outputs[i].path = (char *)message->outputs[i].path;
            outputs[i].size_bytes = message->outputs[i].size_bytes;
            list[i] = &outputs[i];
        }
        wire.outputs = list;
        wire.n_outputs = message->count;
    }
    wire.more = message->more;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_list_outputs_response(const void *bytes, size_t size,
    struct wire_arena *arena, struct list_outputs_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__ListOutputsResponse *wire = decoder_open(
        &decoder, &cadre__v1__list_outputs_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL || !decode_count(&decoder, "ListOutputsResponse.outputs", wire->n_outputs,
                            LIMIT_OUTPUTS_LISTED)) {
        return decoder.status;
    }
    struct output_info *outputs = decode_array(&decoder, wire->n_outputs, sizeof *outputs);
    decoder.list = "ListOutputsResponse.outputs";
    for (size_t i = 0; i < wire->n_outputs && outputs != NULL; i++) {
        decoder.entry = i;
        outputs[i] = (struct output_info){
            .path = decode_path(&decoder, "OutputInfo.path", wire->outputs[i]->path),
            .size_bytes = wire->outputs[i]->size_bytes,
        };
    }
    *ret_message = (struct list_outputs_response){
        .outputs = outputs, .count = wire->n_outputs, .more = wire->more};
    return decoder.status;
}

cadre_status wire_pack_get_output_request(
    const struct get_output_request *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__GetOutputRequest wire = CADRE__V1__GET_OUTPUT_REQUEST__INIT;
    wire.id = message->id.n;
    wire.path = (char *)message->path;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_get_output_request(const void *bytes, size_t size,
    struct wire_arena *arena, struct get_output_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__GetOutputRequest *wire = decoder_open(
        &decoder, &cadre__v1__get_output_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        *ret_message = (struct get_output_request){
            .id = decode_job_id(&decoder, "GetOutputRequest.id", wire->id),
            .path = decode_path(&decoder, "GetOutputRequest.path", wire->path),
        };
    }
    return decoder.status;
}

/* ---- ListWorkersRequest, ListWorkersResponse, VersionResponse ---- */

static void encode_worker(struct encoder *encoder, Cadre__V1__WorkerInfo *wire,
    Cadre__V1__Gpus *gpus, const struct worker_info *worker)
{
    cadre__v1__worker_info__init(wire);
    wire->id = worker->id.n;
    wire->name = (char *)worker->name;
    wire->host = (char *)worker->host;
    wire->version = (char *)worker->version;
    wire->slots = worker->slots;
    wire->slots_used = worker->slots_used;
    wire->cpus = worker->cpus;
    wire->memory_bytes = worker->memory_bytes;
    wire->draining = worker->draining;
    wire->connected = worker->connected;
    wire->expected = worker->expected;
    wire->drained_by = (char *)worker->drained_by;
    wire->drained_why = (char *)worker->drained_why;
    wire->joined_us = worker->joined_us;
    wire->gpus = encode_gpus(encoder, gpus, &worker->gpus);
    wire->certificate_ends_us = worker->certificate_ends_us;
}

static struct worker_info decode_worker(struct decoder *decoder, const Cadre__V1__WorkerInfo *wire)
{
    return (struct worker_info){
        .id = {decode_number(decoder, "WorkerInfo.id", wire->id, 1, UINT64_MAX)},
        .name = decode_name(decoder, "WorkerInfo.name", wire->name),
        .host = decode_name_or_empty(decoder, "WorkerInfo.host", wire->host),
        .version = decode_name_or_empty(decoder, "WorkerInfo.version", wire->version),
        .slots = decode_u32(decoder, "WorkerInfo.slots", wire->slots, 0, LIMIT_SLOTS_PER_WORKER),
        .slots_used = decode_u32(
            decoder, "WorkerInfo.slots_used", wire->slots_used, 0, LIMIT_SLOTS_PER_WORKER),
        .cpus = wire->cpus,
        .memory_bytes = wire->memory_bytes,
        .draining = wire->draining,
        .connected = wire->connected,
        .expected = wire->expected,
        .drained_by = decode_name_or_empty(decoder, "WorkerInfo.drained_by", wire->drained_by),
        .drained_why = decode_name_or_empty(decoder, "WorkerInfo.drained_why", wire->drained_why),
        .joined_us = wire->joined_us,
        .gpus = decode_gpus(decoder, wire->gpus, false),
        .certificate_ends_us = decode_number(
            decoder, "WorkerInfo.certificate_ends_us", wire->certificate_ends_us, 0, INT64_MAX),
    };
}

cadre_status wire_pack_list_workers_request(const struct list_workers_request *message,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__ListWorkersRequest wire = CADRE__V1__LIST_WORKERS_REQUEST__INIT;
    wire.worker = (char *)message->worker;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_list_workers_request(const void *bytes, size_t size,
    struct wire_arena *arena, struct list_workers_request *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__ListWorkersRequest *wire = decoder_open(
        &decoder, &cadre__v1__list_workers_request__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        ret_message->worker =
            decode_name_or_empty(&decoder, "ListWorkersRequest.worker", wire->worker);
    }
    return decoder.status;
}

cadre_status wire_pack_list_workers_response(const struct list_workers_response *message,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__ListWorkersResponse wire = CADRE__V1__LIST_WORKERS_RESPONSE__INIT;
    Cadre__V1__WorkerInfo **list = encoder_array(&encoder, message->count, sizeof *list);
    Cadre__V1__WorkerInfo *workers = encoder_array(&encoder, message->count, sizeof *workers);
    Cadre__V1__Gpus *gpus = encoder_array(&encoder, message->count, sizeof *gpus);
    if (list != NULL && workers != NULL && gpus != NULL) {
        for (size_t i = 0; i < message->count; i++) {
            encode_worker(&encoder, &workers[i], &gpus[i], &message->workers[i]);
            list[i] = &workers[i];
        }
        wire.workers = list;
        wire.n_workers = message->count;
    }
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_list_workers_response(const void *bytes, size_t size,
    struct wire_arena *arena, struct list_workers_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__ListWorkersResponse *wire = decoder_open(
        &decoder, &cadre__v1__list_workers_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire == NULL || !decode_count(&decoder, "ListWorkersResponse.workers", wire->n_workers,
                            LIMIT_TASKS_PER_JOB)) {
        return decoder.status;
    }
    struct worker_info *workers = decode_array(&decoder, wire->n_workers, sizeof *workers);
    decoder.list = "ListWorkersResponse.workers";
    for (size_t i = 0; i < wire->n_workers && workers != NULL; i++) {
        decoder.entry = i;
        workers[i] = decode_worker(&decoder, wire->workers[i]);
    }
    *ret_message = (struct list_workers_response){.workers = workers, .count = wire->n_workers};
    return decoder.status;
}

cadre_status wire_pack_version_response(
    const struct version_response *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    Cadre__V1__VersionResponse wire = CADRE__V1__VERSION_RESPONSE__INIT;
    wire.version = (char *)message->version;
    wire.agent_protocol = message->agent_protocol;
    wire.task_frame = message->task_frame;
    wire.started_us = message->started_us;
    wire.jobs_live = message->jobs_live;
    wire.workers = message->workers;
    return encoder_finish(&encoder, &wire.base, LIMIT_FRAME_BYTES);
}

cadre_status wire_unpack_version_response(const void *bytes, size_t size, struct wire_arena *arena,
    struct version_response *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__VersionResponse *wire = decoder_open(
        &decoder, &cadre__v1__version_response__descriptor, bytes, size, LIMIT_FRAME_BYTES);
    if (wire != NULL) {
        *ret_message = (struct version_response){
            .version = decode_name_or_empty(&decoder, "VersionResponse.version", wire->version),
            .agent_protocol = wire->agent_protocol,
            .task_frame = wire->task_frame,
            .started_us = wire->started_us,
            .jobs_live = wire->jobs_live,
            .workers = wire->workers,
        };
    }
    return decoder.status;
}
