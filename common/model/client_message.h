/* SPDX-License-Identifier: Apache-2.0
 * Requests and responses of the services cadre.v1.Jobs (clients) and cadre.v1.Agents (worker
 * daemons) that are not on the Join stream. Borrowed strings and arrays, as in job.h. */
#ifndef CADRE_MODEL_CLIENT_MESSAGE_H
#define CADRE_MODEL_CLIENT_MESSAGE_H

#include "common/model/job.h"

/* Jobs.Submit. All blobs must be there (Jobs.MissingBlobs, Jobs.PutBlob), else FAILED_PRECONDITION
 * naming one. */
struct submit_response {
    struct job_id id;
    uint32_t queued_before; /* jobs ahead of it */
};

/* Jobs.Get, Jobs.Cancel, Jobs.Watch, Jobs.ListOutputs. */
struct job_request {
    struct job_id id;
};

struct list_jobs_response {
    const struct job_info *jobs; /* newest first; without their tasks; at most LIMIT_JOBS_LISTED */
    size_t count;
    bool more; /* there are older ones */
};

/* Jobs.Watch sends the whole job_info at once and again whenever it changed (at most some ten times
 * a second; the final state is always sent), then closes with OK after the final one. */

/* Jobs.Logs: chunks of all tasks, or of one; follow keeps the stream until the job is collected. */
struct logs_request {
    struct job_id id;
    bool one_slot;
    uint32_t slot;
    bool follow;
    uint64_t tail_bytes; /* 0: from the start */
};

/* Jobs.MissingBlobs: which of these contents must be uploaded. */
struct blob_list {
    const uint8_t (*sha256)[LIMIT_SHA256_BYTES];
    size_t count;
};

/* Jobs.PutBlob (client stream), Agents.GetBlob and Jobs.GetOutput (server streams). The first chunk
 * names the hash and the whole size; a content that does not match is DATA_LOSS and nothing is
 * kept. An all-zero hash in GetOutput: not known. */
struct blob_chunk {
    bool has_header;
    uint8_t sha256[LIMIT_SHA256_BYTES];
    uint64_t size_bytes;
    const uint8_t *bytes;
    size_t byte_count;
};

struct get_blob_request {
    uint8_t sha256[LIMIT_SHA256_BYTES];
};

/* Agents.PutOutput (client stream): a file of a task's output folder. The first chunk has the
 * header. */
struct output_chunk {
    bool has_header;
    struct task_ref task;
    const char *path; /* below the task's output folder */
    uint64_t size_bytes;
    const uint8_t *bytes;
    size_t byte_count;
};

struct list_outputs_response {
    const struct output_info
        *outputs; /* sorted by path, "<slot>/<path>"; at most LIMIT_OUTPUTS_LISTED */
    size_t count;
    bool more; /* there are more files; get_output serves them too */
};

struct get_output_request {
    struct job_id id;
    const char *path; /* "<slot>/<path>" */
};

struct list_workers_response {
    const struct worker_info *workers;
    size_t count;
};

struct version_response {
    const char *version;
    uint32_t agent_protocol;
    uint32_t task_frame;
    uint64_t started_us; /* wall clock */
    uint64_t jobs_live;
    uint64_t workers;
};

#endif
