/* SPDX-License-Identifier: Apache-2.0
 * Between bytes and model structs: the only home of protobuf-c. Everything that comes from outside
 * is checked here: sizes, limits of common/model/limits.h, names, UTF-8, enum ranges, hash lengths,
 * the budget of an unpack.
 *
 * unpack: fills *ret_x from `size` bytes; all that it points to is in `arena` and valid until its
 * reset. An error (INVALID_ARGUMENT, RESOURCE_EXHAUSTED) names the message, the field, the value
 * and the limit; the arena stays usable and *ret_x is undefined. Strings are never NULL; arrays
 * without entries may be.
 *
 * pack: appends the encoding to `buffer`. RESOURCE_EXHAUSTED when it would exceed LIMIT_FRAME_BYTES
 * (a job_spec: LIMIT_SPEC_BYTES; a ledger_entry: LIMIT_LEDGER_ENTRY_BYTES; blob and log chunks:
 * their own limits plus 4 KiB) or memory is out; the buffer is then as before. NULL is the empty
 * string. In texts for people (reasons, exit texts, messages) bad UTF-8 becomes "?", control
 * characters become spaces, and long ones are cut. Names, paths and arguments are packed as they
 * are and checked by the receiver; check.h and file_name_check (common/base/files.h) check them
 * beforehand. A job_info that would be too large omits the exit texts of its tasks.
 *
 * Not thread-safe per object; no global state. */
#ifndef CADRE_WIRE_WIRE_H
#define CADRE_WIRE_WIRE_H

#include "common/base/error.h"
#include "common/model/agent_message.h"
#include "common/model/client_message.h"
#include "common/model/coordinator_message.h"
#include "common/model/ledger_entry.h"

/* A growing byte buffer; {0} is an empty one. */
struct wire_buffer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
};

/* size = 0, memory is kept. */
void wire_buffer_clear(struct wire_buffer *buffer);
/* Also of {0}; the buffer is {0} again. */
void wire_buffer_free(struct wire_buffer *buffer);

/* Room for `size` bytes after buffer->size; a buffer at least doubles. False: out of memory,
 * nothing changed. */
bool wire_buffer_reserve(struct wire_buffer *buffer, size_t size);

/* Memory of unpacked messages with a byte budget; reset after each message keeps the first block.
 */
struct wire_arena;
/* NULL: out of memory. */
struct wire_arena *wire_arena_new(size_t budget_bytes);
/* Ends what was unpacked; keeps the first block. */
void wire_arena_reset(struct wire_arena *arena);
/* Accepts NULL. */
void wire_arena_free(struct wire_arena *arena);

/* X(model struct, message in the .proto files) for each message of its own. */
#define WIRE_MESSAGES(X)                                                                           \
    X(task_up, TaskUp)                                                                             \
    X(task_down, TaskDown)                                                                         \
    X(agent_up, AgentUp)                                                                           \
    X(agent_down, AgentDown)                                                                       \
    X(job_spec, JobSpec)                                                                           \
    X(submit_response, SubmitResponse)                                                             \
    X(job_request, JobRequest)                                                                     \
    X(job_info, JobInfo)                                                                           \
    X(list_jobs_response, ListJobsResponse)                                                        \
    X(logs_request, LogsRequest)                                                                   \
    X(log_chunk, LogChunk)                                                                         \
    X(blob_list, BlobList)                                                                         \
    X(blob_chunk, BlobChunk)                                                                       \
    X(get_blob_request, GetBlobRequest)                                                            \
    X(output_chunk, OutputChunk)                                                                   \
    X(settled_file, SettledFile)                                                                   \
    X(settle_file_request, SettleFileRequest)                                                      \
    X(list_outputs_response, ListOutputsResponse)                                                  \
    X(get_output_request, GetOutputRequest)                                                        \
    X(drain_request, DrainRequest)                                                                 \
    X(metrics_request, MetricsRequest)                                                             \
    X(metrics_response, MetricsResponse)                                                           \
    X(history_request, HistoryRequest)                                                             \
    X(history_response, HistoryResponse)                                                           \
    X(trace_request, TraceRequest)                                                                 \
    X(trace_response, TraceResponse)                                                               \
    X(verify_request, VerifyRequest)                                                               \
    X(verify_response, VerifyResponse)                                                             \
    X(ledger_entry, LedgerEntry)                                                                   \
    X(list_workers_request, ListWorkersRequest)                                                    \
    X(list_workers_response, ListWorkersResponse)                                                  \
    X(login_response, LoginResponse)                                                               \
    X(version_response, VersionResponse)                                                           \
    X(leader_response, LeaderResponse)                                                             \
    X(list_coordinators_response, ListCoordinatorsResponse)

#define WIRE_DECLARE(name, m)                                                                      \
    cadre_status wire_pack_##name(                                                                 \
        const struct name *message, struct wire_buffer *buffer, struct cadre_error *error);        \
    cadre_status wire_unpack_##name(const void *bytes, size_t size, struct wire_arena *arena,      \
        struct name *ret_message, struct cadre_error *error);
WIRE_MESSAGES(WIRE_DECLARE)
#undef WIRE_DECLARE

#endif
