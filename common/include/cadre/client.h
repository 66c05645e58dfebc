/* SPDX-License-Identifier: Apache-2.0
 * libcadre-client: submit jobs to a coordinator and follow them (cadre/job.h), as `cadre` does.
 *
 * Two forms of every call. With `then` NULL a call blocks until its end and returns how it ended.
 * With a `then` it returns as soon as the call was started, and then->done(status, message, user)
 * is called exactly once, from inside cadre_client_run() or cadre_client_release(); its ret_
 * pointer must stay valid until that moment and is filled only when the status is OK; NULL where
 * the result is not wanted. A call that could not be started returns the error at once, and done is
 * not called.
 *
 * A client belongs to one thread at a time; a program may have several. Callbacks run on the thread
 * that drives the client; they may start further calls with a `then`, but not blocking ones
 * (FAILED_PRECONDITION), and they may not release the client. Nothing here is safe in a signal
 * handler.
 *
 * Options and what they point to are copied before a call returns. Results are objects of their
 * own: all that they point to lives as long as they do, and cadre_result_release() releases any of
 * them. Structs may grow at their end in later versions: make options with designated initialisers.
 *
 * Errors that any call may give: UNAVAILABLE when no coordinator answers, DEADLINE_EXCEEDED when it
 * answers too late, INVALID_ARGUMENT for values that no coordinator would take. After a failure
 * cadre_error_message() says in one sentence what failed and what to do next. */
#ifndef CADRE_CLIENT_H
#define CADRE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/client_history.h"
#include "cadre/client_stored.h"
#include "cadre/job.h"
#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The coordinator's address when neither the options nor CADRE_COORDINATOR have one. */
#define CADRE_CLIENT_ADDRESS_DEFAULT "unix:/run/cadre/coordinator.sock"

/* A connection to a coordinator, with the calls in progress. */
typedef struct cadre_client cadre_client;

/* What to do when a call has ended. `message`: a sentence, "" with OK; valid until done returns. */
typedef struct cadre_then {
    void (*done)(cadre_status status, const char *message, void *user); /* called once */
    void *user;
} cadre_then;

/* How a coordinator is reached. Zeros and NULL mean the defaults that are named. */
typedef struct cadre_client_options {
    /* unix:/PATH, 127.0.0.1:PORT, or with TLS HOST:PORT; CADRE_COORDINATOR, else the default. Or up
     * to 16 of them, separated by commas, where several coordinators serve one cluster: the first
     * that answers is used, for as long as it does. One that does not connect within 2 s is passed
     * over, and one that names the coordinator which leads is followed there, even when that is
     * not listed. */
    const char *address;
    uint64_t timeout_us;      /* how long a short call may take; 30 s. Streams have no such limit */
    uint64_t wait_timeout_us; /* how long cadre_client_submit, cadre_client_watch and followed logs
                                 try again to connect while the coordinator is away; 60 s */
    /* Called when those begin to wait for a lost coordinator (true), and when it is back
     * (false). */
    void (*on_outage)(bool away, void *user);
    void *user;
    /* Mutual TLS, for an address that is not of this machine: PEM files with the certificate, its
     * private key, and the cluster's CA; CADRE_TLS_CERT, CADRE_TLS_KEY, CADRE_TLS_CA, else
     * cert.pem, key.pem and ca.pem in the folder tls_dir or CADRE_TLS_DIR, else no TLS. `cadre pki`
     * makes them. A Unix socket needs none: what is named here is read all the same, so that a
     * wrong name is found, and what the environment names is not. */
    const char *tls_dir;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_ca;
    /* Not NULL, where several coordinators serve one cluster: cadre_client_jobs, cadre_client_job
     * and cadre_client_history may be answered by one that does not lead, from its copy of the
     * ledger, also while none leads. After each call it is how old the answer may be, in
     * microseconds, 0 of one by the coordinator that leads, UINT64_MAX if that is not known,
     * because the one that answers has not read the log to its end since it was started. The
     * pointer is valid as long as the client. NULL: only the one that leads answers. In both cases
     * no answer is older than one that this client had. */
    uint64_t *stale_age_us;
} cadre_client_options;

/* Connects and fetches the coordinator's version; blocks. On error *ret_client is NULL.
 * INVALID_ARGUMENT: the address, or a TLS file. UNAVAILABLE: no coordinator answers there.
 * UNAUTHENTICATED: the certificate of one end is not accepted by the other; PERMISSION_DENIED: its
 * role may not do this. FAILED_PRECONDITION: the own certificate has expired. */
CADRE_API cadre_status cadre_client_connect(
    const cadre_client_options *options, cadre_client **ret_client);

/* The address of the coordinator that is asked now: the one that answered last, among several. The
 * client's; valid until its next call. */
CADRE_API const char *cadre_client_address(const cadre_client *client);

/* Ends the calls in progress (their `done` gets CANCELLED, from in here) and the connection. NULL
 * is allowed. */
CADRE_API void cadre_client_release(cadre_client *client);

/* Runs the calls that were started with a `then`, until none is in progress (OK), `timeout_us` have
 * passed (DEADLINE_EXCEEDED; 0 handles what is ready), or cadre_client_wake() was called
 * (CANCELLED). Neither of the two is a failure: no message is left. FAILED_PRECONDITION from inside
 * a callback. */
CADRE_API cadre_status cadre_client_run(cadre_client *client, uint64_t timeout_us);

/* Makes cadre_client_run() return; from any thread. */
CADRE_API void cadre_client_wake(cadre_client *client);

/* A descriptor for a program that has an event loop of its own: when poll(2) or epoll finds it
 * readable, cadre_client_run(client, 0) has something to do, and has handled it when it returns.
 * Also after calls were started it is readable once. It stays the client's, is never read or
 * written by the program, and lives as long as the client. The first call starts a thread in the
 * library; callbacks run inside of cadre_client_run() as ever. On error *ret_fd is -1. */
CADRE_API cadre_status cadre_client_fd(cadre_client *client, int *ret_fd);

/* Releases any result of the calls below; NULL is allowed. */
CADRE_API void cadre_result_release(void *result);

/* ---- jobs ---- */

/* A file that goes with the job, or an object ("s3://BUCKET/KEY", "https://HOST/PATH") that workers
 * fetch, with the job's credentials: all tasks have the bytes that were fetched first. */
typedef struct cadre_file {
    const char *path;    /* here, or of the object */
    const char *name;    /* relative path in the task's working folder; NULL: its last part */
    const char *version; /* ETag of an object, with its size: another one is DATA_LOSS; or NULL */
    uint64_t size_bytes;
} cadre_file;

/* How far the upload is; only what the coordinator does not have yet is uploaded. */
typedef struct cadre_upload {
    const char *path; /* of the file that is uploaded now; valid during the callback */
    size_t file;      /* from 0 */
    size_t files;
    uint64_t sent_bytes; /* of all */
    uint64_t total_bytes;
} cadre_upload;

/* What to run, with how many tasks, and on which conditions. Zeroed but for `program`: one task. */
typedef struct cadre_submit_options {
    const char *program;          /* path of an executable file */
    const char *const *arguments; /* without argv[0] */
    size_t argument_count;
    const char *const *environment; /* "NAME=value" */
    size_t environment_count;
    const cadre_file *files;
    size_t file_count;
    const char *name;     /* for people; NULL: the program's */
    uint32_t workers;     /* tasks, each a process of its own; 0 is 1 */
    uint32_t replicas;    /* per task; 0: all local devices */
    const char *strategy; /* what cadre_strategy_default() shall give; NULL: the program's choice */
    int32_t priority;     /* higher first; in order of submission within one */
    void (*on_upload)(const cadre_upload *upload, void *user); /* during the upload; or NULL */
    void *user;
    /* Elastic: it goes on with so many tasks, and with more when there is room. 0: `workers`. */
    uint32_t workers_min;
    /* How often it goes on after tasks failed by themselves (a status other than 0, a signal);
     * workers that are lost or drained do not count. 0: 3; negative: the first failure ends it. */
    int32_t max_restarts;
    uint64_t wait_us; /* with fewer than workers_min tasks, before it fails; 0: the coordinator's */
    /* The task that others wait for in a step for so long is replaced. 0: the coordinator's. */
    uint64_t stall_us;
    uint64_t checkpoint_every; /* steps; 0: at its end, and when the program requests one */
    uint32_t checkpoints_kept; /* the newest so many; 0: 3 */
    /* Where checkpoints go: an absolute path that every worker sees under this name, or
     * "s3://bucket/key", which the tasks reach with the credentials of the job's environment or of
     * their hosts (cadre/checkpoint.h). NULL: to the coordinator. */
    const char *checkpoint_folder;
    uint64_t restore_from; /* go on from the newest checkpoint of this job; 0: from the beginning */
    uint64_t restore_step; /* with it: from that of this step, which must be kept; 0: the newest */
    const cadre_stored_checkpoint *restore_stored; /* go on from this, not from restore_from */
    /* Parameter servers, with the strategy "parameter_server" and only with it. `workers` are then
     * those that run closures, and the chief comes on top; the job begins when there is room for
     * all, and a worker or a server that ends is started again. */
    uint32_t servers;
    uint32_t evaluators; /* 0 or 1: reads the servers' variables beside the training */
    bool server_backups; /* each server holds a copy of another one's variables; of two or more */
    /* GPUs that each task needs to itself, of a slot that has so many; at most 64. 0: any slot. */
    uint32_t gpus;
    /* What each task may use, with all processes that it starts. A task that uses more memory is
     * killed by the kernel, and its exit text says so; more processes or threads cannot be created.
     * A worker that cannot enforce one of these, or allows less, does not start the task
     * (FAILED_PRECONDITION). 0: no limit, or the worker's. */
    uint64_t memory_bytes;    /* at least 1 MiB */
    uint32_t cpu_thousandths; /* of one CPU: 1500 are one and a half; at least 10 */
    uint32_t pids;            /* at least 2 */
    /* Since the job's first start: the time in the queue after a preemption counts, and a restart
     * of the coordinator does not reset it. After that its state is saved as for a preemption, and
     * it fails with DEADLINE_EXCEEDED. 0: no limit. */
    uint64_t time_limit_us;
    /* Each task's standard output and error are one pseudo-terminal: for programs that print at
     * once to a terminal only, and do not call cadre_init. Their logs are CADRE_STDOUT. */
    bool terminal;
    /* "s3://bucket/key": workers write what tasks leave as OUTPUTS_FOLDER/<job>/<task>/<path>, with
     * the job's credentials; what cannot be, and all else (NULL), is at the coordinator. */
    const char *outputs_folder;
} cadre_submit_options;

/* What the coordinator has made of a submission. */
typedef struct cadre_submitted {
    uint64_t job;
    uint32_t queued_before; /* jobs ahead of it */
    /* A sentence for people, as which checkpoint the job goes on from because a newer one is
     * damaged; "": there is none. */
    char note[512];
} cadre_submitted;

/* Submits a job. Program and files are read and hashed before this returns, in both forms, and what
 * the coordinator lacks is uploaded by content hash. Nothing is sent when the options are wrong.
 * NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT: a file, named with what is wrong with it.
 * ABORTED: a file changed while it was being uploaded.
 *
 * When the connection breaks, or no answer comes in time, the submission is repeated for
 * wait_timeout_us, on_outage being called; a random id that is drawn once for each call of this
 * function goes with it, and a coordinator that has the job, also one that was started again
 * meanwhile, answers with that one. After that time, and at once with a coordinator of an earlier
 * version, which knows no ids: UNAVAILABLE or DEADLINE_EXCEEDED, with a message that says whether
 * the job may have been accepted. */
CADRE_API cadre_status cadre_client_submit(cadre_client *client,
    const cadre_submit_options *options, cadre_submitted *ret_submitted, const cadre_then *then);

/* One job with its tasks. NOT_FOUND: there is no such job. */
CADRE_API cadre_status cadre_client_job(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then);

/* The newest jobs, at most 500, without their tasks. */
CADRE_API cadre_status cadre_client_jobs(
    cadre_client *client, cadre_job_list **ret_jobs, const cadre_then *then);

/* Requests that a job stops, and returns its state; a job that has ended is not changed. Made
 * again, it changes nothing and returns the same. FAILED_PRECONDITION: the job is ending for
 * another reason. */
CADRE_API cadre_status cadre_client_cancel(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then);

/* Requests a checkpoint now: all tasks save before the next step that none has begun, and go on.
 * Returns the job's state; its `checkpoint` changes when the new one is published. Made again, it
 * saves at most once more, which does no harm. NOT_FOUND; FAILED_PRECONDITION: it has ended, or no
 * step is being done now. */
CADRE_API cadre_status cadre_client_checkpoint(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then);

/* Called with the job at once and whenever it changed, at most some ten times a second; always
 * called with its final state. `job` is valid until it returns. False: the call ends with OK. */
typedef bool cadre_job_fn(const cadre_job *job, void *user);

/* Follows a job until it has ended, also across a restart of the coordinator. */
CADRE_API cadre_status cadre_client_watch(
    cadre_client *client, uint64_t job, cadre_job_fn *on_job, void *user, const cadre_then *then);

/* ---- the proof of what a job consumed ---- */

/* What is known of one epoch of one dataset. */
typedef enum cadre_verdict {
    CADRE_VERDICT_EXACT = 1,    /* every sample of the source, or of the files, once */
    CADRE_VERDICT_AS_DEFINED,   /* exactly what the dataset defines, which is not each sample once:
                                   a part of an epoch, batches that are dropped, a repetition */
    CADRE_VERDICT_DIFFERS,      /* something else than the dataset defines */
    CADRE_VERDICT_NOT_PROVABLE, /* the ledger has too little for it; `text` says why */
} cadre_verdict;

/* "exact", "as defined", "differs", "not provable"; "unknown" for a number outside the enum. */
CADRE_API const char *cadre_verdict_name(cadre_verdict verdict);

/* An epoch of a dataset, and what the records prove of it. */
typedef struct cadre_verified_epoch {
    uint32_t stream;      /* the dataset, in order of creation from 1; 0: steps without samples */
    const char *name;     /* of the dataset */
    uint64_t epoch;       /* from 0 */
    uint64_t steps;       /* committed */
    uint64_t steps_whole; /* of the whole epoch; 0: not known */
    uint64_t samples;     /* consumed in the committed steps, by all tasks */
    uint64_t source_samples; /* of the dataset; 0: not known */
    cadre_verdict verdict;
    const char *text;     /* the verdict in one sentence */
    uint64_t first;       /* position of its first step, counted over all datasets of the job */
    uint64_t consumed[2]; /* digest of the consumed ids; of two jobs equal when those are */
} cadre_verified_epoch;

/* One roster of the job. */
typedef struct cadre_verified_generation {
    uint64_t number;
    uint64_t first; /* it owns the steps from here ... */
    uint64_t end;   /* ... to here: where the next one begins, or what is committed */
    uint32_t tasks;
    bool restarted; /* the state was lost: it began again at a checkpoint, or at the beginning */
    uint64_t planned_us; /* Unix time by the coordinator's clock */
} cadre_verified_generation;

/* The states of all replicas were compared after so many steps, and found equal. */
typedef struct cadre_verified_state {
    uint64_t position; /* steps */
    uint64_t digest;   /* of the state: of two jobs equal when those are; never 0 */
} cadre_verified_state;

/* The result of cadre_client_verify(). */
typedef struct cadre_verification {
    uint64_t job;
    const char *job_name;
    cadre_job_state state; /* of one that has not ended, what was committed so far is judged */
    uint64_t committed;    /* steps */
    const cadre_verified_generation *generations; /* in order */
    size_t generation_count;
    bool tiled;                         /* each committed step belongs to exactly one generation */
    const char *tiling;                 /* the same in one sentence */
    const cadre_verified_epoch *epochs; /* by dataset and epoch */
    size_t epoch_count;
    size_t exact; /* epochs of each verdict */
    size_t as_defined;
    size_t differing;
    size_t not_provable;
    uint64_t steps_proved; /* committed steps in epochs that are exact or as defined */
    bool more;             /* the coordinator is of a version that left out the newest */
    const char *program;   /* as it was submitted */
    const cadre_verified_state *states; /* by position: the ledger keeps one a minute, and each
                                           checkpoint whose state was compared */
    size_t state_count;
} cadre_verification;

/* How far a verification is. */
typedef struct cadre_verify_progress {
    bool judging;      /* false: the records are still being fetched */
    uint64_t epochs;   /* that were fetched; or that are judged */
    uint64_t expected; /* how many it will be: of records about, until all are here */
} cadre_verify_progress;

/* How much is verified. Zeroed: all is judged, without reports of progress. */
typedef struct cadre_verify_options {
    bool unjudged; /* only the records: of each epoch `verdict` is 0, and `text` "" */
    void (*on_progress)(const cadre_verify_progress *progress, void *user); /* meanwhile; or NULL */
    void *user;
} cadre_verify_options;

/* Proves what a job's committed steps consumed: the coordinator's records have the digests of the
 * sample ids that were consumed and that should have been, and for each whole epoch that has as
 * many samples as its source this library computes the digest of all of them again. That takes
 * about a second for 200 million samples of an epoch, on the thread that drives the client. Digests
 * guard against faults, not against forgery.
 *
 * All epochs are fetched, page by page. The job may go on meanwhile: the proof is of what was
 * committed when the first page was fetched. When the job begins again at a checkpoint meanwhile,
 * the fetch begins again too. `options` may be NULL. NOT_FOUND: there is no such job. ABORTED: it
 * began again each time. */
CADRE_API cadre_status cadre_client_verify(cadre_client *client, uint64_t job,
    const cadre_verify_options *options, cadre_verification **ret_verification,
    const cadre_then *then);

/* ---- what a program reported, by step ---- */

/* A value that the program reported, and how many steps were applied then; of a plain program the
 * step that it named (cadre_plain_progress), else how often it had reported. */
typedef struct cadre_series_point {
    uint64_t step;
    double value; /* may be NaN or infinite */
} cadre_series_point;

/* The values of steps that are so long ago that they are not kept one by one. */
typedef struct cadre_series_bucket {
    uint64_t first_step;
    uint64_t last_step;
    uint64_t count;      /* of values, at least 1 */
    uint64_t not_finite; /* of them NaN or infinite; the next three leave those out, or are 0 */
    double minimum;
    double maximum;
    double mean;
    double last; /* the value of last_step */
} cadre_series_bucket;

/* The values of one name: buckets, and then points, by rising steps. */
typedef struct cadre_series {
    const char *name;
    uint64_t stride;                    /* steps of a bucket, a power of two */
    const cadre_series_bucket *buckets; /* at most 1024 */
    size_t bucket_count;
    const cadre_series_point *points; /* the newest ones, each: at most 4096 */
    size_t point_count;
} cadre_series;

/* One membership of the job; it did the steps after `first_step`. */
typedef struct cadre_series_generation {
    uint64_t number;
    uint64_t first_step; /* steps that were applied when it began */
    uint32_t tasks;
    bool restarted;    /* the state was lost: it began again at a checkpoint, or at the start */
    uint64_t began_us; /* Unix time by the coordinator's clock */
} cadre_series_generation;

/* The result of cadre_client_metrics(). */
typedef struct cadre_job_series {
    const cadre_series *series; /* in the order in which they were reported first; at most 32 */
    size_t count;
    const cadre_series_generation *generations; /* in order; the newest 1024 */
    size_t generation_count;
    uint64_t lost_bytes; /* of the coordinator's file of these values: damaged, and cut off */
    uint64_t refused;    /* values whose names were more than 16, or another source's: not kept */
} cadre_job_series;

/* Zeroed: all. */
typedef struct cadre_metrics_options {
    const char *const *names; /* only these, at most 32 */
    size_t name_count;
    uint64_t first_step; /* only of these steps; buckets that have one of them are whole */
    uint64_t last_step;  /* 0: up to the newest */
} cadre_metrics_options;

/* Fetches what a job's program reported with cadre_report or cadre_plain_report, by step, and as
 * evaluation_NAME with cadre_report_evaluation. The values are those of the steps that count: a
 * step that was done again has the value of the newest time. `options` may be NULL. NOT_FOUND:
 * there is no such job. INVALID_ARGUMENT: a name is empty, too long or has control characters.
 * (TensorBoard's scalars.) */
CADRE_API cadre_status cadre_client_metrics(cadre_client *client, uint64_t job,
    const cadre_metrics_options *options, cadre_job_series **ret_metrics, const cadre_then *then);

/* ---- what happened to a job (client_history.h) ---- */

/* Fetches what happened to a job: events with a number above `after`, at most `limit` of them (0,
 * or more than 1024: 1024). They are in the coordinator's ledger with what they describe, so they
 * outlive its restarts, and are removed with the job. A step alone is no event. NOT_FOUND: there is
 * no such job. DATA_LOSS: the ledger's record of them is damaged. (Kubernetes' events of an
 * object; Ray's job events.) */
CADRE_API cadre_status cadre_client_history(cadre_client *client, uint64_t job, uint64_t after,
    uint32_t limit, cadre_history **ret_history, const cadre_then *then);

/* ---- what tasks print, and what they leave ---- */

/* Where a task wrote to. Of bytes 0 means that it was not recorded (by a worker or coordinator of
 * an earlier version): they count as CADRE_STDOUT. */
typedef enum cadre_log_stream { CADRE_STDOUT = 1, CADRE_STDERR = 2 } cadre_log_stream;

/* Which part of which logs is read. Zeroed: the logs of all tasks from their start, as far as they
 * are now. */
typedef struct cadre_log_options {
    bool one_task; /* only `task`'s log */
    uint32_t task;
    bool follow;             /* go on until the job has ended */
    uint64_t tail_bytes;     /* begin so many bytes before the end of each log; 0: at its start */
    cadre_log_stream stream; /* only what was written to this one; 0: both */
    uint64_t tail_lines;     /* begin so many lines, of that stream, before the end of each log */
    uint64_t since_us; /* begin at what a worker read at this Unix time or after; 0: at its start */
} cadre_log_options;

/* A piece of a task's log. */
typedef struct cadre_log {
    uint32_t task;
    uint64_t offset; /* of its first byte in the task's log */
    const char *bytes;
    size_t size;
    bool end; /* nothing follows for this task */
    /* So many bytes before these are not kept: of a long log the coordinator keeps the beginning
     * and the newest end (--log-limit). 0 mostly. */
    uint64_t left_out;
    cadre_log_stream stream; /* of all these bytes; 0: not recorded */
    uint64_t received_us; /* Unix time at which a worker read them from the task; 0: not recorded */
} cadre_log;

/* Called with each piece of a log, valid until it returns. False: the call ends with OK. */
typedef bool cadre_log_fn(const cadre_log *log, void *user);

/* Reads the logs of a job's tasks; each byte that is kept once and in order, also across a restart
 * of the coordinator. `options` may be NULL. OUT_OF_RANGE: the job has no such task. */
CADRE_API cadre_status cadre_client_logs(cadre_client *client, uint64_t job,
    const cadre_log_options *options, cadre_log_fn *on_log, void *user, const cadre_then *then);

/* A file that a task left. */
typedef struct cadre_output {
    const char *path; /* "<task>/<path below its output folder>" */
    uint64_t size_bytes;
} cadre_output;

/* The result of cadre_client_outputs(). */
typedef struct cadre_output_list {
    const cadre_output *outputs; /* sorted by path */
    size_t count;
    bool more;                /* there are more files; cadre_client_get_output fetches them too */
    cadre_stored_list stored; /* checkpoints in an object store */
    const char *folder; /* the job's outputs_folder, "" or where its tasks left what is not here */
} cadre_output_list;

/* The files that a job's tasks left in their output folders, at most 4000. */
CADRE_API cadre_status cadre_client_outputs(
    cadre_client *client, uint64_t job, cadre_output_list **ret_outputs, const cadre_then *then);

/* Writes one of these files to the descriptor `fd`, which stays the caller's and open until the end
 * of the call. What was written before an error stays. DATA_LOSS: the content ended early. */
CADRE_API cadre_status cadre_client_get_output(
    cadre_client *client, uint64_t job, const char *path, int fd, const cadre_then *then);

/* ---- the cluster ---- */

/* A GPU of a worker's host. Texts are "" and numbers 0 where they are not known; `name` is always
 * there. */
typedef struct cadre_gpu {
    const char *name; /* "NVIDIA H200" */
    const char *uuid; /* "GPU-...", what CUDA_VISIBLE_DEVICES takes */
    const char *bus;  /* "0000:65:00.0" */
    uint64_t memory_bytes;
    uint32_t compute_major; /* its compute capability: 9.0 of an H200 */
    uint32_t compute_minor;
    const char *unused; /* why no task gets it; "": the worker's slots share it out */
} cadre_gpu;

/* A worker, as the coordinator has it. */
typedef struct cadre_worker {
    uint64_t id;
    const char *name;
    const char *host;
    const char *version;
    uint32_t slots; /* tasks that may run on it at one time */
    uint32_t slots_used;
    uint32_t cpus;
    uint64_t memory_bytes;
    bool draining;
    const char *drained_by;  /* the client that drained it; "": none did */
    const char *drained_why; /* the reason that it gave; "": none */
    bool connected;
    /* It had tasks when the coordinator was started, and has not come back since: of it only its
     * name and the slots that these take are known. */
    bool expected;
    uint64_t joined_us; /* Unix time by the coordinator's clock; 0: it is expected */
    /* GPUs of its host, as they were when it started; those that tasks get come in the order of
     * their driver. */
    const cadre_gpu *gpus;
    size_t gpu_count;
    /* That `gpus` leaves out in the list of a cluster of thousands, not when it is requested by
     * name. */
    uint32_t gpus_omitted;
    /* That tasks get, listed or omitted: slot k of S slots has those from k * usable / S to below
     * (k + 1) * usable / S. With fewer GPUs than slots, tasks that run at one time share one. */
    uint32_t gpus_usable;
    const char *gpu_driver;  /* "580.159.04 (CUDA 13.0)"; "": there is none */
    const char *gpu_runtime; /* what its device plugin was built with: "CUDA 13.0"; "": no plugin */
    uint32_t nccl;           /* NCCL_VERSION_CODE: 22809 is 2.28.9; 0: there is none */
    const char *gpu_reason;  /* why tasks get no GPU, or not all of them; "": they get all */
    uint64_t certificate_ends_us; /* Unix time, or its CA's; 0: none, or not reported */
    cadre_usage usage;            /* of the whole host, by whatever program */
} cadre_worker;

/* The result of cadre_client_workers(). */
typedef struct cadre_worker_list {
    const cadre_worker *workers;
    size_t count;
} cadre_worker_list;

/* The workers of the coordinator, with `worker` NULL; or the one of this name, with all of its
 * GPUs: a list of one. NOT_FOUND: no worker has this name. */
CADRE_API cadre_status cadre_client_workers(cadre_client *client, const char *worker,
    cadre_worker_list **ret_workers, const cadre_then *then);

/* Empties a worker: it gets no new tasks, and those that it has move to other workers in an orderly
 * way, as far as there is room; a job that cannot go on without them saves, and waits in the queue.
 * No committed step is lost. It holds for every daemon of that name, also after the coordinator was
 * started again, until cadre_client_undrain(). `reason` is for people, at most 128 bytes; NULL:
 * none. Returns once the coordinator has recorded it; cadre_client_workers() shows how many tasks
 * are left, and which client drained it. Made again, it changes nothing but the reason and the
 * client. NOT_FOUND: no worker has this name. */
CADRE_API cadre_status cadre_client_drain(
    cadre_client *client, const char *worker, const char *reason, const cadre_then *then);

/* Ends the draining of a worker: it takes tasks again. NOT_FOUND: no client drained one of this
 * name, or its draining has ended already, as when the call is made again. */
CADRE_API cadre_status cadre_client_undrain(
    cadre_client *client, const char *worker, const cadre_then *then);

/* The coordinator's version and what it runs now. */
typedef struct cadre_coordinator_version {
    const char *version;
    uint32_t agent_protocol; /* between it and its workers */
    uint32_t task_frame;     /* between workers and programs */
    uint64_t started_us;     /* Unix time */
    uint64_t jobs_live;      /* that wait or run */
    uint64_t workers;        /* that are connected */
    bool request_ids;        /* a submission that is repeated makes no second job */
    bool objects;            /* files, outputs and checkpoints of a job may be in an object store */
} cadre_coordinator_version;

/* Where the pages of a coordinator are: the result of cadre_client_login(). */
typedef struct cadre_login {
    const char *token;   /* for "Authorization: Bearer TOKEN": a secret of its holder; "": none */
    uint64_t expires_us; /* Unix time; a start of the coordinator makes it void before; or 0 */
    const char *role;    /* whose rights it has, as "viewer"; "local": a Unix socket, all rights */
    const char *name;    /* of the certificate, or "" */
    const char *http;    /* HOST:PORT of its pages; "": it serves none (--http) */
    bool http_tls;       /* they are off loopback: each browser has to show a certificate */
} cadre_login;

/* Fetches where the coordinator's pages are, with a token that has the rights of this client and
 * expires after 12 hours, or with the certificate. There is no token where there are no pages, or
 * where they need none: a browser shows a certificate there, or every process of that host may call
 * the coordinator. PERMISSION_DENIED: the certificate is a worker's. */
CADRE_API cadre_status cadre_client_login(
    cadre_client *client, cadre_login **ret_login, const cadre_then *then);

/* Fetches the coordinator's version. */
CADRE_API cadre_status cadre_client_version(
    cadre_client *client, cadre_coordinator_version **ret_version, const cadre_then *then);

#ifdef __cplusplus
}
#endif
#endif
