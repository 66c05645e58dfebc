/* SPDX-License-Identifier: Apache-2.0
 * Every limit of the system. The decoder (common/wire) refuses what exceeds them with
 * RESOURCE_EXHAUSTED or INVALID_ARGUMENT; the cores rely on them. A limit in bytes of a string
 * counts its terminator: a string that the decoder accepted fits an array of that size. */
#ifndef CADRE_MODEL_LIMITS_H
#define CADRE_MODEL_LIMITS_H

#define LIMIT_TASKS_PER_JOB     16384 /* enough for ten thousand workers */
#define LIMIT_REPLICAS_PER_TASK 256
#define LIMIT_SLOTS_PER_WORKER  1024
#define LIMIT_NAME_BYTES        128  /* job, worker, dataset, metric names */
#define LIMIT_FILE_NAME_BYTES   1024 /* a relative path; components up to 255 */
#define LIMIT_URL_BYTES         4096 /* of an object; one that is signed is long */
#define LIMIT_ARGUMENTS         1024
#define LIMIT_ARGUMENT_BYTES    (64 * 1024) /* one argument or NAME=value */
#define LIMIT_FILES_PER_JOB     4096
#define LIMIT_SPEC_BYTES        (1024 * 1024)
#define LIMIT_TEXT_BYTES        512 /* a reason shown to people */
#define LIMIT_GPUS_PER_WORKER   64
#define LIMIT_MEMORY_MIN        (1ULL << 20) /* that a job may limit its tasks to */
#define LIMIT_MEMORY_MAX        ((1ULL << 60) - 1)
#define LIMIT_CPU_MIN           10 /* thousandths */
#define LIMIT_CPU_MAX           16777216
#define LIMIT_PIDS_MIN          2
#define LIMIT_PIDS_MAX          4194304
#define LIMIT_TIME_US           ((1ULL << 62) - 1)
#define LIMIT_METRICS           16
#define LIMIT_JOB_SERIES        (2 * LIMIT_METRICS) /* of the training, and of its evaluation */
#define LIMIT_SERIES_POINTS     4096                /* newest values of a metric, each kept */
#define LIMIT_SERIES_BUCKETS    1024                /* of steps before them */
#define LIMIT_EVALUATION_PART   4    /* an evaluation's metric has 1/4 of both: it is rarer */
#define LIMIT_REPORTED_VALUES   1024 /* in one message of a task */
#define LIMIT_TRACE_SPANS       1024 /* in one message of a task */
#define LIMIT_TRACE_STEPS       10000
#define LIMIT_TRACE_TIME_US     (3600ULL * 1000000)
#define LIMIT_SHARD_FILES       256 /* of one dataset, in a report to clients */
#define LIMIT_BLOB_CHUNK_BYTES  (1024 * 1024)
#define LIMIT_BLOB_BYTES        (64ULL * 1024 * 1024 * 1024)
#define LIMIT_LOG_CHUNK_BYTES   (64 * 1024)
#define LIMIT_LOG_MARKS         1024              /* in a chunk */
#define LIMIT_FRAME_BYTES       (4 * 1024 * 1024) /* one frame or gRPC control message */
/* A commit of the ledger: a start of 16,384 tasks with names of 127 bytes has 2.4 MiB. */
#define LIMIT_LEDGER_ENTRY_BYTES (64 * 1024 * 1024)
#define LIMIT_UNPACK_BYTES       (32 * 1024 * 1024) /* memory of one unpacked message */
#define LIMIT_ADDRESS_BYTES      64
#define LIMIT_WINDOW_STEPS       1024 /* admission window: 1 to 1,024 steps */
#define LIMIT_JOB_KEY_BYTES      32
#define LIMIT_SHA256_BYTES       32
#define LIMIT_REQUEST_ID_BYTES   16

#define LIMIT_CHECKPOINTS_KEPT         1000
#define LIMIT_CHECKPOINTS_KEPT_DEFAULT 3
#define LIMIT_VERIFY_STEPS             1000000000 /* from one comparison of states to the next */
#define LIMIT_RESTARTS                 1000000
#define LIMIT_STREAMS                                                                              \
    64 /* in one warm message to a joiner; with a proof of each                                    \
        */
#define LIMIT_MANIFEST_BYTES         (16 * 1024 * 1024)
#define LIMIT_CHECKPOINT_BLOCK_BYTES (8 * 1024 * 1024)

/* Of one blob_list: the program and files of a job, or all blocks of a file of LIMIT_BLOB_BYTES and
 * its manifest. */
#define LIMIT_BLOBS_LISTED 16385

/* Of one verify_response, a page of a proof: at their longest they fit LIMIT_FRAME_BYTES. */
#define LIMIT_PAGE_GENERATIONS 16384
#define LIMIT_PAGE_EPOCHS      8192
#define LIMIT_PAGE_VERIFIED    16384

/* Of one metrics_response, the newest ones. */
#define LIMIT_METRIC_GENERATIONS 1024

/* Of the events of a job: the first ones and the newest are kept. One history_response has at most
 * so many: at their longest they fit LIMIT_FRAME_BYTES. */
#define LIMIT_EVENTS        4096
#define LIMIT_EVENTS_FIRST  64
#define LIMIT_EVENTS_LISTED 1024
#define LIMIT_ROSTER_BYTES  128 /* "0-2,5" */

/* Of positions and step counts: sums of two cannot overflow. */
#define LIMIT_POSITION (1ULL << 62)

/* Of one list_coordinators_response. */
#define LIMIT_COORDINATORS 64

/* Entries of one list_jobs_response and of one list_outputs_response: at their longest they fit
 * LIMIT_FRAME_BYTES. */
#define LIMIT_JOBS_LISTED    500
#define LIMIT_OUTPUTS_LISTED 4000
/* Checkpoints in an object store, which count as outputs; these are longer. */
#define LIMIT_STORED_LISTED 500

#endif
