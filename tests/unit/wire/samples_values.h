/* SPDX-License-Identifier: Apache-2.0
 * The values of the sample messages that tasks, daemons and the coordinator send each other; those
 * of the client service are in samples_jobs.h. Included once, by samples.c, for its table. */
#ifndef CADRE_TESTS_UNIT_WIRE_SAMPLES_VALUES_H
#define CADRE_TESTS_UNIT_WIRE_SAMPLES_VALUES_H

#include "tests/unit/wire/samples.h"

/* ---- values, each different from the others so that a swap shows ---- */

#define HASH(first)                                                                                \
    {                                                                                              \
        first, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, \
            25, 26, 27, 28, 29, 30, 31, 32                                                         \
    }
#define GENERATION                                                                                 \
    {                                                                                              \
        .number = 4, .nonce = UINT64_C(0xfedcba9876543210)                                         \
    }
#define TASK                                                                                       \
    {                                                                                              \
        .job = {7}, .slot = 16383, .incarnation = 3                                                \
    }
#define CURSOR                                                                                     \
    {                                                                                              \
        .stream = 21, .epoch = 22, .first = 23, .steps = 24, .begin = 25, .nested = true           \
    }
#define FEED                                                                                       \
    {                                                                                              \
        .steps = 26, .samples = 27, .consumed = {28, UINT64_MAX}, .expected = {29, 30},            \
        .provable = true, .files = CONSUMED_FILES_DROPPED                                          \
    }

static const struct metric metrics[] = {{"loss", 0.25}, {"accuracy", 0.97}};
#define PROGRESS                                                                                   \
    {                                                                                              \
        .stream = "digits", .epoch = 1, .epochs = 20, .step = 5, .steps = 45,                      \
        .samples_per_s = 1234.5, .left_s = -1, .metrics = metrics, .metric_count = 2               \
    }

const struct task_up sample_hello = {
    .type = TASK_UP_HELLO,
    .hello =
        {
            .frame_version = 2,
            .library_version = "0.2.0",
            .pid = 4711,
            .replicas = 2,
            .mesh_address = "127.0.0.1:40001",
            .generation = GENERATION,
            .position = 101,
            .clean = true,
            .released = 102,
            .arrived = 103,
            .frozen = true,
            .reason = REPORT_PEER_ERROR,
            .plain = true,
        },
};
static const struct task_up hello_bare = {
    .type = TASK_UP_HELLO,
    .hello = {.library_version = "", .pid = 1, .replicas = 1, .mesh_address = ""},
};
const struct task_up sample_arrive = {
    .type = TASK_UP_ARRIVE,
    .arrive =
        {
            .generation = GENERATION,
            .up_to = 201,
            .applied = 199,
            .wanted = 200,
            .cursor = CURSOR,
            .consumption = FEED,
            .verified = {198, UINT64_MAX},
        },
};
/* The consumption can be nothing and known to be nothing. */
static const struct task_up arrive_nothing_consumed = {
    .type = TASK_UP_ARRIVE,
    .arrive = {.generation = {1, 0}, .consumption = {.provable = true}},
};
static const struct task_up arrive_bare = {
    .type = TASK_UP_ARRIVE,
    .arrive = {.generation = {1, 0}},
};
static const struct task_up report = {
    .type = TASK_UP_REPORT,
    .report =
        {
            .generation = GENERATION,
            .position = 301,
            .clean = true,
            .reason = REPORT_FAILED,
            .code = CADRE_INTERNAL,
            .text = "rank 1 closed the connection \xc3\xa4",
            .begun = true,
            .stream = 31,
            .nested = true,
        },
};
static const struct task_up report_finished = {
    .type = TASK_UP_REPORT,
    .report = {.generation = GENERATION,
        .position = 302,
        .clean = true,
        .reason = REPORT_FINISHED,
        .text = "",
        .digest = 303,
        .trusts = 302},
};
static const struct task_up report_diverged = {
    .type = TASK_UP_REPORT,
    .report = {.generation = GENERATION,
        .position = 306,
        .clean = true,
        .reason = REPORT_DIVERGED,
        .text = "replica 1 differs",
        .divergence = {.position = 305,
            .verified = 304,
            .culprits = {1, LIMIT_TASKS_PER_JOB - 1},
            .culprit_count = 2}},
};
static const struct task_up report_bare = {
    .type = TASK_UP_REPORT,
    .report = {.generation = GENERATION, .reason = REPORT_HALT, .text = ""},
};
static const struct task_up join = {.type = TASK_UP_JOIN, .join = {.stream = 32, .epoch = 33}};
static const struct task_up join_without_batch = {.type = TASK_UP_JOIN};
static const struct task_up stream = {
    .type = TASK_UP_STREAM,
    .stream = {.stream = 33, .name = "digits", .samples = 34, .shares = true},
};
static const struct task_up preempt = {
    .type = TASK_UP_PREEMPT,
    .preempt = {.stops = true, .grace_us = 30000000},
};
static const struct task_up backed = {
    .type = TASK_UP_BACKED,
    .backed = {.number = UINT64_MAX, .by = 1304},
};
static const struct task_up alone = {.type = TASK_UP_BACKED, .backed = {.number = 1}};
static const struct task_up stall = {
    .type = TASK_UP_STALL,
    .stall = {.generation = GENERATION, .position = 303, .slot = 16383, .waited_us = INT64_MAX},
};

static const struct task_up stall_of_replicas = {
    .type = TASK_UP_STALL,
    .stall = {.generation = GENERATION,
        .position = 304,
        .slot = 16382,
        .waited_us = 10000001,
        .hang = {.at = HANG_COLLECTIVE, .collective = 305, .replica = 4194303, .others = 255}},
};
static const struct task_up part = {
    .type = TASK_UP_PART,
    .part =
        {
            .generation = GENERATION,
            .position = 302,
            .path = "checkpoints/checkpoint-302.json",
            .shared = true,
            .size_bytes = LIMIT_MANIFEST_BYTES,
            .sha256 = HASH(1),
            .digest = 304,
            .compared = true,
        },
};
static const struct task_up progress = {.type = TASK_UP_PROGRESS, .progress = PROGRESS};
static const struct shard_file shard_files[] = {
    {.name = "train-00001.tfrecord", .rank = 3, .read = 512},
    {.name = "train-00000.tfrecord", .rank = SHARD_NO_TASK, .read = 1000, .total = 1000},
};
#define SHARDS                                                                                     \
    {                                                                                              \
        .name = "train", .policy = "FILE", .epoch = 2, .step = 40, .readers = 4, .files = 300,     \
        .files_read = 17, .shown = shard_files, .shown_count = 2                                   \
    }
static const struct shards_report sample_shards[] = {
    SHARDS, {.name = "test", .policy = "DATA", .readers = 4}};
static const struct task_up shards = {.type = TASK_UP_SHARDS, .shards = SHARDS};
static const struct task_up shards_bare = {
    .type = TASK_UP_SHARDS, .shards = {.name = "t", .policy = ""}};
static const struct task_up progress_of_fetch = {.type = TASK_UP_PROGRESS,
    .progress = {.stream = "",
        .left_s = -1,
        .fetch = {.kind = FETCH_READ, .done_bytes = 74, .whole_bytes = 75, .elapsed_us = 76}}};
static const struct task_up progress_bare = {.type = TASK_UP_PROGRESS, .progress = {.stream = ""}};

static const char *const value_names[] = {"loss", "accuracy"};
static const struct reported_value reported[] = {
    {.name = 1, .step = 1401, .value = -0.5}, {.name = 0, .step = LIMIT_POSITION, .value = 1e308}};
const struct task_up sample_values = {
    .type = TASK_UP_VALUES,
    .values = {.generation = GENERATION,
        .names = value_names,
        .name_count = 2,
        .values = reported,
        .value_count = 2,
        .end = 1402},
};
static const struct task_up values_of_own_numbers = {
    .type = TASK_UP_VALUES,
    .values = {.generation = GENERATION,
        .numbered = true,
        .lap = 1403,
        .names = value_names,
        .name_count = 1,
        .values = &reported[1],
        .value_count = 1,
        .end = 1},
};
static const struct task_down values_kept = {
    .type = TASK_DOWN_VALUES_KEPT, .values_kept = UINT64_MAX};

static const struct roster_entry roster[] = {
    {.slot = 16383, .incarnation = 9, .replicas = 256, .mesh_address = "10.0.0.1:1"},
    {.slot = 0, .incarnation = 1, .replicas = 1, .mesh_address = ""},
};
const struct task_down sample_plan = {
    .type = TASK_DOWN_PLAN,
    .plan =
        {
            .generation = GENERATION,
            .roster = roster,
            .roster_count = 2,
            .resume = 401,
            .source = 1,
            .key = HASH(2),
            .checkpoint_at = 402,
            .halt_at = 403,
            .halt_kind = HALT_REGROUP,
            .halt_stream = 404,
        },
};
static const struct task_down plan_without_members = {
    .type = TASK_DOWN_PLAN,
    .plan =
        {
            .generation = {1, 2},
            .roster = roster,
            .roster_count = 2,
            .source = SOURCE_NONE,
            .checkpoint_at = POSITION_NONE,
            .halt_at = 405,
            .halt_kind = HALT_STOP,
        },
};
static const struct roster_entry roster_part[] = {
    {.slot = 7, .incarnation = 9, .replicas = 2, .mesh_address = "10.0.0.1:1", .rank = 16383},
    {.slot = 9, .incarnation = 1, .replicas = 2, .mesh_address = "10.0.0.2:1", .rank = 4095},
};
const struct task_down sample_part = {
    .type = TASK_DOWN_PLAN,
    .plan =
        {
            .generation = {1, 2},
            .roster = roster_part,
            .roster_count = 2,
            .members = 16384,
            .source = 16383,
            .checkpoint_at = POSITION_NONE,
            .halt_at = POSITION_NONE,
        },
};
static const struct task_down plan_bare = {
    .type = TASK_DOWN_PLAN,
    .plan =
        {
            .generation = {1, 2},
            .roster = roster,
            .roster_count = 1,
            .checkpoint_at = POSITION_NONE,
            .halt_at = POSITION_NONE,
        },
};
const struct task_down sample_release = {
    .type = TASK_DOWN_RELEASE,
    .release =
        {
            .generation = GENERATION,
            .up_to = 501,
            .checkpoint_at = 502,
            .halt_at = 503,
            .halt_kind = HALT_REGROUP,
            .halt_stream = 504,
            .published = 505,
        },
};
/* A mark at position 0 is not the same as none. */
static const struct task_down release_zero = {
    .type = TASK_DOWN_RELEASE,
    .release = {.generation = {1, 2}, .checkpoint_at = 0, .halt_at = 0, .halt_kind = HALT_REGROUP},
};
static const struct task_down release_any_stream = {
    .type = TASK_DOWN_RELEASE,
    .release =
        {
            .generation = {1, 2},
            .checkpoint_at = POSITION_NONE,
            .halt_at = 506,
            .halt_kind = HALT_REGROUP,
            .halt_stream = STREAM_ANY,
            .published = POSITION_NONE,
        },
};
static const struct stream_position stream_positions[] = {
    {.stream = 35, .epoch = 36, .steps = 37, .applied = 38},
    {.stream = 0},
};
static const struct task_down warm = {
    .type = TASK_DOWN_WARM,
    .warm = {.streams = stream_positions, .stream_count = 2, .tasks = 3},
};
static const struct task_down warm_bare = {.type = TASK_DOWN_WARM};
static const struct task_member task_members_of[] = {
    {.slot = 0,
        .incarnation = 1301,
        .attempts = 2,
        .here = true,
        .address = "127.0.0.1:1302",
        .backed = {.number = 1305, .by = 1306}},
    {.slot = 3, .address = ""},
    {.slot = 16383, .incarnation = UINT64_MAX, .attempts = UINT32_MAX, .address = "127.0.0.1:1303"},
};
static const struct task_down members = {
    .type = TASK_DOWN_MEMBERS,
    .members =
        {
            .generation = GENERATION,
            .key = HASH(12),
            .members = task_members_of,
            .member_count = 3,
            .number = 1304,
            .changes = true,
        },
};
static const struct task_down members_bare = {
    .type = TASK_DOWN_MEMBERS,
    .members = {.generation = {1, 2}, .members = &task_members_of[1], .member_count = 1},
};
static const struct task_down release_bare = {
    .type = TASK_DOWN_RELEASE,
    .release = {.generation = {1, 2},
        .checkpoint_at = POSITION_NONE,
        .halt_at = POSITION_NONE,
        .published = POSITION_NONE},
};
static const struct task_down abort_task = {
    .type = TASK_DOWN_ABORT,
    .generation = GENERATION,
    .reason = "task 1 on host b was killed by signal 9",
};
static const struct task_down reset = {.type = TASK_DOWN_RESET};
static const struct task_down goodbye = {.type = TASK_DOWN_GOODBYE, .generation = GENERATION};
static const struct task_down superseded = {.type = TASK_DOWN_SUPERSEDED};
static const struct task_down task_refused = {
    .type = TASK_DOWN_REFUSED,
    .refused = {.code = CADRE_FAILED_PRECONDITION, .text = "version 2 is not 1"},
};

static const struct task_ref tasks[] = {TASK, {.job = {8}, .slot = 0, .incarnation = 1}};
static const struct job_id kept[] = {{7}, {1401}};
static const struct gpu gpus[] = {
    {.name = "NVIDIA H200",
        .uuid = "GPU-8f7e6d5c-0000-1111-2222-333344445555",
        .bus = "0000:65:00.0",
        .memory_bytes = UINT64_C(150754820096),
        .compute_major = 9,
        .compute_minor = 1,
        .unused = ""},
    {.name = "10de:1eb8",
        .uuid = "",
        .bus = "0000:66:00.0",
        .unused = "the plugin does not offer it"},
};
#define GPUS                                                                                       \
    {                                                                                              \
        .devices = gpus, .count = 2, .usable = 1, .driver = "580.159.04 (CUDA 13.0)",              \
        .runtime = "CUDA 13.0", .nccl = 22809, .reason = "1 of 2 GPUs is not offered",             \
    }
const struct agent_up sample_agent_hello = {
    .type = AGENT_UP_HELLO,
    .certificate_ends_us = INT64_MAX,
    .hello =
        {
            .protocol_version = 2,
            .protocol_newest = 4,
            .library_version = "0.2.0",
            .name = "host-a",
            .host = "a.example.org",
            .seen = {.cluster = 0xc0ffee, .start = 12, .nonce = UINT64_MAX},
            .seen_index = 13,
            .boot_nonce = UINT64_C(0x0123456789abcdef),
            .slots = 4,
            .cpus = 64,
            .memory_bytes = UINT64_C(1) << 38,
            .orphan_us = 900000000,
            .draining = true,
            .tasks = tasks,
            .task_count = 2,
            .kept = kept,
            .kept_count = 2,
            .gpus = GPUS,
        },
};
static const struct agent_up heartbeat = {.type = AGENT_UP_HEARTBEAT, .certificate_ends_us = 67};
static const struct agent_fetch fetches[] = {
    {.task = {{7}, 0, 3}, .fetch = {.kind = FETCH_FILES, .whole_bytes = 71}},
    {.task = {{8}, 5, 4},
        .fetch =
            {.kind = FETCH_CHECK, .done_bytes = 72, .whole_bytes = 73, .elapsed_us = INT64_MAX}},
};
static const struct agent_up heartbeat_with_fetches = {
    .type = AGENT_UP_HEARTBEAT, .heartbeat = {.fetches = fetches, .fetch_count = 2}};
#define USAGE                                                                                      \
    {                                                                                              \
        .has_cpu = true, .has_memory = true, .has_memory_peak = true, .has_gpu = true,             \
        .has_gpu_memory = true, .cpu_thousandths = LIMIT_CPU_MAX, .memory_bytes = 81,              \
        .memory_peak_bytes = 82, .gpu_percent = 100, .gpu_memory_bytes = INT64_MAX                 \
    }
static const struct agent_usage usages[] = {{.task = {{7}, 0, 3}, .usage = USAGE},
    {.task = {{7}, 1, 4}, .usage = {.has_cpu = true, .has_memory = true}}, {.task = {{8}, 5, 4}}};
static const struct agent_up heartbeat_with_usages = {
    .type = AGENT_UP_HEARTBEAT, .heartbeat = {.usages = usages, .usage_count = 3, .host = USAGE}};
static const struct agent_up draining = {.type = AGENT_UP_DRAINING};
const struct agent_up sample_agent_arrived = {
    .type = AGENT_UP_ARRIVED,
    .arrived =
        {
            .job = {7},
            .generation = GENERATION,
            .tasks = 3,
            .up_to = 601,
            .applied = 600,
            .wanted = 602,
            .wanted_slot = 5,
            .cursor = CURSOR,
            .consumption = FEED,
            .verified = {599, 1},
        },
};
static const struct agent_up started = {
    .type = AGENT_UP_TASK_STARTED, .started = {.task = TASK, .pid = INT32_MAX}};
static const struct agent_up gone = {
    .type = AGENT_UP_TASK_GONE,
    .gone = {.task = TASK,
        .exit = {.code = 255, .signal = 11, .text = "Segmentation fault"},
        .damaged_step = 40,
        .cause = CADRE_DATA_LOSS},
};
static const struct agent_up gone_with_success = {
    .type = AGENT_UP_TASK_GONE, .gone = {.task = TASK}};
static const struct agent_up collected = {
    .type = AGENT_UP_TASK_COLLECTED,
    .collected = {.task = TASK, .code = CADRE_DATA_LOSS, .text = "out/a: read failed"},
};
static const struct agent_up relay_up = {
    .type = AGENT_UP_RELAY,
    .relay_up = {.task = TASK, .up = {.type = TASK_UP_PROGRESS, .progress = PROGRESS}},
};
static const uint8_t data[] = {0, 'a', '\n', 0xff, 0x80, 'z', 0};
static const struct log_mark log_marks[] = {
    {701, LOG_STREAM_STDOUT, UINT64_C(1795934404000000)}, {703, LOG_STREAM_STDERR, 1}};
static const struct agent_up log_piece = {
    .type = AGENT_UP_LOG,
    .log = {.task = TASK,
        .offset = 701,
        .bytes = data,
        .size_bytes = sizeof data,
        .marks = log_marks,
        .mark_count = 2},
};

static const char *const arguments[] = {"--epochs", "20", "", "line\nbreak", "\xe2\x82\xac"};
static const char *const environment[] = {"A=", "_B2=x=y\t", "PATH=/usr/bin"};
static const struct job_file files[] = {
    {.name = "data/train.bin", .sha256 = HASH(3), .size_bytes = 12, .executable = true},
    {.name = "data/test.bin",
        .sha256 = HASH(4),
        .size_bytes = LIMIT_BLOB_BYTES,
        .url = "s3://bucket/sets/test set.bin",
        .version = "\"0123-4\""},
};
const struct job_spec sample_spec = {
    .name = "digits",
    .program = {.name = "bin/digits", .sha256 = HASH(5), .size_bytes = 99, .executable = true},
    .arguments = arguments,
    .argument_count = 5,
    .environment = environment,
    .environment_count = 3,
    .files = files,
    .file_count = 2,
    .workers = 2,
    .replicas = 3,
    .strategy = "multi_worker_mirrored",
    .priority = -5,
    .workers_min = 1,
    .max_restarts = LIMIT_RESTARTS,
    .wait_us = 4001,
    .stall_us = 4002,
    .checkpoint_every = 4003,
    .checkpoints_kept = LIMIT_CHECKPOINTS_KEPT,
    .checkpoint_folder = "/mnt/shared/digits",
    .outputs_folder = "s3://bucket/runs/digits",
    .restore_from = {4004},
    .restore_step = 4005,
    .gpus = LIMIT_GPUS_PER_WORKER,
    .terminal = true,
    .has_request_id = true,
    .request_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255},
    .limits = {.memory_bytes = LIMIT_MEMORY_MAX,
        .cpu_thousandths = LIMIT_CPU_MIN,
        .pids = LIMIT_PIDS_MAX,
        .time_limit_us = LIMIT_TIME_US},
};
static const struct job_spec spec_restored = {
    .name = "j",
    .program = {.name = "p"},
    .workers = 1,
    .strategy = "",
    .checkpoint_folder = "s3://bucket/a",
    .has_restore_checkpoint = true,
    .restore_checkpoint = {.position = 4006,
        .shared = true,
        .path = "s3://bucket/b c/checkpoint-4006.json",
        .manifest_bytes = 4007,
        .manifest_sha256 = HASH(6)},
};
static const struct job_spec spec_bare = {
    .name = "j",
    .program = {.name = "p"},
    .workers = 1,
    .strategy = "",
    .checkpoint_folder = "",
};

#endif
