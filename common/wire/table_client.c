/* SPDX-License-Identifier: Apache-2.0
 * The messages of contents and listings: blobs, logs, outputs, workers, the version. */
#include "common/wire/rows.h"

/* Of a chunk beside its data: header, tags and lengths. */
#define CHUNK_HEAD_BYTES 4096
#define MARK_BYTES       32 /* of a LogMark, at most */

_Static_assert(LIMIT_BLOBS_LISTED > LIMIT_FILES_PER_JOB &&
                   LIMIT_BLOBS_LISTED > LIMIT_BLOB_BYTES / LIMIT_CHECKPOINT_BLOCK_BYTES,
    "all contents of a job, and of a checkpoint, fit one blob_list");

/* ---- logs ---- */

ROWS(LogsRequest) = {
    JOB(LogsRequest, id, id.n),
    NUMBER_IF(LogsRequest, slot, LOGS_REQUEST___SLOT_SLOT, one_slot, 0, LIMIT_TASKS_PER_JOB - 1),
    BOOL(LogsRequest, follow),
    COPY(LogsRequest, tail_bytes),
    SIGNED(LogsRequest, stream, LOG_STREAM_ANY, LOG_STREAM_STDERR),
    COPY(LogsRequest, tail_lines),
    SPAN(LogsRequest, since_us),
};
TABLE_WITH(LogsRequest, logs_request, .limit_bytes = LIMIT_FRAME_BYTES);

static void log_chunk_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct log_chunk *chunk = model;
    decode_log_marks(decoder, chunk->marks, chunk->mark_count, chunk->offset, chunk->size_bytes);
}

ROWS(LogChunk) = {
    JOB(LogChunk, job, job.n),
    SLOT(LogChunk, slot),
    SPAN(LogChunk, offset),
    BOOL(LogChunk, end),
    DATA(LogChunk, data, bytes, size_bytes, LIMIT_LOG_CHUNK_BYTES),
    MESSAGES(LogChunk, marks, LogMark, marks, mark_count, LIMIT_LOG_MARKS),
    SPAN(LogChunk, skipped_bytes),
};
TABLE_WITH(LogChunk, log_chunk,
    .limit_bytes = LIMIT_LOG_CHUNK_BYTES + LIMIT_LOG_MARKS * MARK_BYTES + CHUNK_HEAD_BYTES,
    .after_take = log_chunk_after_take);

/* ---- contents ---- */

ROWS(BlobList) = {
    HASHES(BlobList, sha256, count, LIMIT_BLOBS_LISTED),
};
TABLE_WITH(BlobList, blob_list, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(BlobHeader, struct blob_chunk);

ROWS(BlobHeader) = {
    BYTES(BlobHeader, sha256),
    NUMBER(BlobHeader, size_bytes, 0, LIMIT_BLOB_BYTES),
};
static TABLE(BlobHeader, blob_header);

ROWS(BlobChunk) = {
    INLINE_IF(BlobChunk, header, BlobHeader, has_header),
    DATA(BlobChunk, data, bytes, byte_count, LIMIT_BLOB_CHUNK_BYTES),
};
TABLE_WITH(BlobChunk, blob_chunk, .limit_bytes = LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);

ROWS(GetBlobRequest) = {
    BYTES(GetBlobRequest, sha256),
};
TABLE_WITH(GetBlobRequest, get_blob_request, .limit_bytes = LIMIT_FRAME_BYTES);

/* ---- outputs ---- */

WIRE_MODEL(OutputHeader, struct output_chunk);

ROWS(OutputHeader) = {
    MESSAGE(OutputHeader, task, TaskRef),
    TEXT(OutputHeader, path, decode_path),
    NUMBER(OutputHeader, size_bytes, 0, LIMIT_BLOB_BYTES),
    BYTES_IF(OutputHeader, checkpoint, refers),
};
static TABLE(OutputHeader, output_header);

ROWS(OutputChunk) = {
    INLINE_IF(OutputChunk, header, OutputHeader, has_header),
    DATA(OutputChunk, data, bytes, byte_count, LIMIT_BLOB_CHUNK_BYTES),
};
TABLE_WITH(OutputChunk, output_chunk, .limit_bytes = LIMIT_BLOB_CHUNK_BYTES + CHUNK_HEAD_BYTES);

ROWS(SettledFile) = {
    BYTES(SettledFile, sha256),
    NUMBER(SettledFile, size_bytes, 0, LIMIT_BLOB_BYTES),
    TEXT(SettledFile, version, decode_name_or_empty),
};
TABLE_WITH(SettledFile, settled_file, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(SettleFileRequest) = {
    MESSAGE(SettleFileRequest, task, TaskRef),
    NUMBER(SettleFileRequest, file, 0, LIMIT_FILES_PER_JOB - 1),
    MESSAGE(SettleFileRequest, found, SettledFile),
};
TABLE_WITH(SettleFileRequest, settle_file_request, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(OutputInfo, struct output_info);

ROWS(OutputInfo) = {
    TEXT(OutputInfo, path, decode_path),
    COPY(OutputInfo, size_bytes),
};
static TABLE(OutputInfo, output_info);

ROWS(ListOutputsResponse) = {
    MESSAGES(ListOutputsResponse, outputs, OutputInfo, outputs, count, LIMIT_OUTPUTS_LISTED),
    BOOL(ListOutputsResponse, more),
    MESSAGES(ListOutputsResponse, stored, CheckpointRef, stored, stored_count, LIMIT_STORED_LISTED),
    TEXT(ListOutputsResponse, store, decode_folder_or_empty),
    TEXT(ListOutputsResponse, folder, decode_outputs_folder_or_empty),
};
TABLE_WITH(ListOutputsResponse, list_outputs_response, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(GetOutputRequest) = {
    JOB(GetOutputRequest, id, id.n),
    TEXT(GetOutputRequest, path, decode_path),
};
TABLE_WITH(GetOutputRequest, get_output_request, .limit_bytes = LIMIT_FRAME_BYTES);

/* ---- workers, the version ---- */

ROWS(DrainRequest) = {
    TEXT(DrainRequest, worker, decode_name),
    TEXT(DrainRequest, reason, decode_name_or_empty),
    BOOL(DrainRequest, ends),
};
TABLE_WITH(DrainRequest, drain_request, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(WorkerInfo, struct worker_info);

ROWS(WorkerInfo) = {
    NUMBER_AS(WorkerInfo, id, id.n, 1, UINT64_MAX),
    TEXT(WorkerInfo, name, decode_name),
    TEXT(WorkerInfo, host, decode_name_or_empty),
    TEXT(WorkerInfo, version, decode_name_or_empty),
    NUMBER(WorkerInfo, slots, 0, LIMIT_SLOTS_PER_WORKER),
    NUMBER(WorkerInfo, slots_used, 0, LIMIT_SLOTS_PER_WORKER),
    COPY(WorkerInfo, cpus),
    COPY(WorkerInfo, memory_bytes),
    BOOL(WorkerInfo, draining),
    BOOL(WorkerInfo, connected),
    BOOL(WorkerInfo, expected),
    TEXT(WorkerInfo, drained_by, decode_name_or_empty),
    TEXT(WorkerInfo, drained_why, decode_name_or_empty),
    COPY(WorkerInfo, joined_us),
    MESSAGE_OR_NONE(WorkerInfo, gpus, Gpus),
    SPAN(WorkerInfo, certificate_ends_us),
    MESSAGE_OR_NONE(WorkerInfo, usage, ResourceUsage),
};
static TABLE(WorkerInfo, worker_info);

ROWS(ListWorkersRequest) = {
    TEXT(ListWorkersRequest, worker, decode_name_or_empty),
};
TABLE_WITH(ListWorkersRequest, list_workers_request, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(ListWorkersResponse) = {
    MESSAGES(ListWorkersResponse, workers, WorkerInfo, workers, count, LIMIT_TASKS_PER_JOB),
};
TABLE_WITH(ListWorkersResponse, list_workers_response, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(LoginResponse) = {
    TEXT(LoginResponse, token, decode_text),
    COPY(LoginResponse, expires_us),
    TEXT(LoginResponse, role, decode_name_or_empty),
    TEXT(LoginResponse, name, decode_name_or_empty),
    TEXT(LoginResponse, http, decode_text),
    BOOL(LoginResponse, http_tls),
};
TABLE_WITH(LoginResponse, login_response, .limit_bytes = LIMIT_FRAME_BYTES);

ROWS(VersionResponse) = {
    TEXT(VersionResponse, version, decode_name_or_empty),
    COPY(VersionResponse, agent_protocol),
    COPY(VersionResponse, task_frame),
    COPY(VersionResponse, started_us),
    COPY(VersionResponse, jobs_live),
    COPY(VersionResponse, workers),
    BOOL(VersionResponse, request_ids),
    BOOL(VersionResponse, objects),
};
TABLE_WITH(VersionResponse, version_response, .limit_bytes = LIMIT_FRAME_BYTES);
