/* SPDX-License-Identifier: Apache-2.0
 * Requests and responses of the services cadre.v1.Jobs (clients) and cadre.v1.Agents (worker
 * daemons) that are not on the Join stream. Borrowed strings and arrays, as in job.h. */
#ifndef CADRE_MODEL_CLIENT_MESSAGE_H
#define CADRE_MODEL_CLIENT_MESSAGE_H

#include "common/pure/log_mark.h"
#include "common/model/history.h"
#include "common/model/series.h"
#include "common/model/task_message.h"

/* Jobs.Submit. All blobs must be there (Jobs.MissingBlobs, Jobs.PutBlob), else FAILED_PRECONDITION
 * naming one. */
struct submit_response {
    struct job_id id;
    uint32_t queued_before; /* jobs before it in the queue */
    const char *note;       /* for people; "": nothing */
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
    enum log_stream stream;
    uint64_t tail_lines; /* of each log; 0: from the start */
    uint64_t since_us;   /* wall clock; 0: from the start */
};

/* Jobs.MissingBlobs, Agents.MissingBlobs: which of these contents must be uploaded. */
struct blob_list {
    const uint8_t (*sha256)[LIMIT_SHA256_BYTES];
    size_t count;
};

/* Jobs.PutBlob and Agents.PutBlob (client streams), Agents.GetBlob and Jobs.GetOutput (server
 * streams). The first chunk names the hash and the whole size; a content that does not match is
 * DATA_LOSS and nothing is kept. An all-zero hash in GetOutput: not known. */
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
    bool refers; /* it is a file of a checkpoint that is there already: no bytes follow */
    uint8_t checkpoint[LIMIT_SHA256_BYTES]; /* of its manifest */
    const uint8_t *bytes;
    size_t byte_count;
};

/* Agents.SettleFile: which bytes an object among a job's files has, for all its tasks. */
struct settled_file {
    uint8_t sha256[LIMIT_SHA256_BYTES];
    uint64_t size_bytes;
    const char *version; /* its ETag; "": the store gives none */
};

struct settle_file_request {
    struct task_ref task;
    uint32_t file;             /* its index in job_spec.files */
    struct settled_file found; /* what this worker fetched */
};

struct list_outputs_response {
    const struct output_info
        *outputs; /* sorted by path, "<slot>/<path>"; at most LIMIT_OUTPUTS_LISTED */
    size_t count;
    bool more; /* there are more files; get_output serves them too */
    /* Checkpoints that lie in an object store, oldest first; at most LIMIT_STORED_LISTED. */
    const struct checkpoint_ref *stored;
    size_t stored_count;
    const char *store;  /* their folder, "s3://bucket/key"; "": none */
    const char *folder; /* the job's outputs_folder: what its tasks left is there; "": none */
};

struct get_output_request {
    struct job_id id;
    const char *path; /* "<slot>/<path>" */
};

/* Jobs.Drain: the worker gets no new tasks; its tasks move elsewhere, as far as there is room;
 * until it ends. NOT_FOUND: no worker has this name, or none of this name is drained. */
struct drain_request {
    const char *worker;
    const char *reason; /* "": none is given */
    bool ends;          /* the worker takes tasks again */
};

/* Jobs.Verify: what the ledger can prove about a job, page by page. Generations in order, epochs in
 * order of (stream, epoch), verified positions in order: a page has those from `from` on, as many
 * as fit. */
struct verify_from {
    uint64_t generation;
    uint32_t stream;
    uint64_t epoch;
    uint64_t position; /* of those that were verified */
};

struct verify_request {
    struct job_id id;
    struct verify_from from; /* all zero: the first page */
};

struct verify_generation {
    struct generation generation;
    uint64_t resume; /* it owns the steps from here to the next one's */
    bool restarted;  /* no state was left: the steps since its checkpoint were repeated */
    uint32_t members;
    uint64_t planned_us;
};

struct verify_epoch {
    uint32_t stream;
    const char *name;        /* of the stream; "": steps without samples */
    bool shares;             /* each sample goes to one replica; else nothing is claimed */
    uint64_t source_samples; /* of the dataset; 0: not known */
    struct cursor cursor;
    struct consumption consumption;
};

/* A job may go on between two pages, of which the coordinator keeps nothing. All pages together
 * prove what was committed at the first one, because that also contains the newest epoch of every
 * stream, in its position by order. Only those may still be consumed: what is older in its stream
 * is complete, and no record of it changes. So of the following pages count the epochs older than
 * that one of their stream, and generations up to the newest of then. A newer one that `restarted`
 * removed committed steps: then the pages are read again from the first. The first page also
 * contains the newest verified position, and of the following pages count those before it. */
struct verify_response {
    struct job_info job; /* without tasks */
    uint64_t committed;
    const struct verify_generation *generations;
    size_t generation_count;
    const struct verify_epoch *epochs;
    size_t epoch_count;
    const struct verified *verified; /* at which positions the states were found equal */
    size_t verified_count;
    bool more;               /* there is another page */
    struct verify_from next; /* of that page; all zero: its coordinator sends one page only */
};

/* Jobs.Metrics: what the program of a job reported, by step. */
struct metrics_request {
    struct job_id id;
    const char *const *names; /* none: all */
    size_t name_count;
    uint64_t first_step;
    uint64_t last_step; /* 0: the newest */
};

/* The values of one name: buckets, then points, by rising steps. */
struct metric_series {
    const char *name;
    uint64_t stride; /* steps of a bucket, a power of two */
    const struct series_bucket *buckets;
    size_t bucket_count;
    const struct series_point *points;
    size_t point_count;
};

struct metrics_response {
    const struct metric_series *series; /* in the order in which they were reported first */
    size_t series_count;
    const struct verify_generation *generations; /* the newest, in order */
    size_t generation_count;
    uint64_t lost_bytes; /* of the file of the values: cut off because they were damaged */
    uint64_t refused;    /* values for whose names there was no room */
};

/* Jobs.History: what happened to a job, and when. */
struct history_request {
    struct job_id id;
    uint64_t after; /* events with a higher number */
    uint32_t limit; /* at most so many; 0: LIMIT_EVENTS_LISTED */
};

struct history_response {
    struct job_info job; /* without tasks */
    const struct history_event *events;
    size_t event_count;
    uint64_t last;    /* number of its newest event; 0: there is none */
    uint64_t dropped; /* events between the first and the newest ones that are not kept */
    bool more;        /* there are events behind these */
};

/* Jobs.Trace: what the tasks of a job do in some of the steps to come. */
struct trace_request {
    struct job_id id;
    bool next; /* from the next step on that no task has begun; else from `first` */
    uint64_t first;
    uint64_t steps;    /* how many, at most LIMIT_TRACE_STEPS */
    uint64_t limit_us; /* after so long the trace ends with what there is */
};

enum trace_task_state {
    TRACE_TASK_ASKED = 1, /* nothing came from it */
    TRACE_TASK_RECORDS,
    TRACE_TASK_ENDED, /* its spans are whole, but for those that are counted as lost */
    TRACE_TASK_GONE   /* it ended, or its worker is away: its newest spans may be missing */
};

/* One process of a task in a trace. The coordinator's clock is its clock + offset_ns (modulo 2^64),
 * or up to error_ns before or behind that. */
struct trace_task {
    uint32_t slot;
    uint64_t incarnation;
    enum trace_task_state state;
    const char *worker;
    uint32_t pid;
    uint64_t clock; /* the same number on all of one host; 0: nothing came */
    uint64_t offset_ns;
    uint64_t error_ns;
    uint64_t position;
    uint64_t spans;   /* that came */
    uint64_t lost;    /* for which the task had no room */
    uint64_t missing; /* that were lost on the way, or that the client did not read in time */
};

/* One of a stream: the spans of one task, or the state of all tasks, or both. */
struct trace_response {
    uint64_t first;
    uint64_t end;
    uint64_t clock_ns;              /* the coordinator's clock now, */
    uint64_t wall_us;               /* and the time of day */
    const struct trace_task *tasks; /* when something of them changed: all */
    size_t task_count;
    uint32_t slot; /* of the task that recorded the spans */
    uint64_t incarnation;
    const struct trace_span *spans;
    size_t span_count;
    bool own_numbers; /* steps are from one collective of a plain program to the next */
    bool ended;       /* nothing follows; */
    const char *text; /* and why it is not whole; "" */
};

struct list_workers_request {
    const char *worker; /* only the one of this name; "": all */
};

struct list_workers_response {
    const struct worker_info *workers;
    size_t count;
};

/* Jobs.Login: where the pages are, and a token for them with the caller's rights. */
struct login_response {
    const char *token;
    uint64_t expires_us; /* wall clock */
    const char *role;
    const char *name;
    const char *http; /* HOST:PORT; "": no page is served */
    bool http_tls;
};

struct version_response {
    const char *version;
    uint32_t agent_protocol;
    uint32_t task_frame;
    uint64_t started_us; /* wall clock */
    uint64_t jobs_live;
    uint64_t workers;
    bool request_ids; /* a Submit may be repeated with the same id */
    bool objects;     /* a spec may have files with a url, and an outputs_folder */
};

#endif
