/* SPDX-License-Identifier: Apache-2.0
 * The values of the sample messages of the client service: jobs, what they left, workers. Included
 * once, by samples.c. */
#ifndef CADRE_TESTS_UNIT_WIRE_SAMPLES_JOBS_H
#define CADRE_TESTS_UNIT_WIRE_SAMPLES_JOBS_H

#include "tests/unit/wire/samples_values.h"

static const struct submit_response submit_response = {
    .id = {7}, .queued_before = 3, .note = "the checkpoint of step 30 of job 6 is damaged"};
static const struct job_request job_request = {.id = {7}};

static const struct task_info task_infos[] = {
    {
        .slot = 0,
        .incarnation = 2,
        .state = TASK_EXITED,
        .worker = "host-a",
        .pid = 4711,
        .has_exit = true,
        .exit = {.code = 1, .signal = 0, .text = "assertion failed"},
        .uses_cadre = true,
        .log_bytes = 1000,
    },
    {.slot = 16383,
        .state = TASK_STARTING,
        .worker = "",
        .fetch =
            {.kind = FETCH_CHECKPOINT, .done_bytes = 5001, .whole_bytes = 5002, .elapsed_us = 5003},
        .usage = USAGE,
        .waited_us = 5004},
    {.slot = 1, .state = TASK_RUNNING, .worker = "b", .usage = {.has_cpu = true}}, /* it rests */
};
const struct job_info sample_info = {
    .id = {7},
    .name = "digits",
    .program = "bin/digits",
    .state = JOB_FAILED,
    .code = CADRE_ABORTED,
    .message = "task 0 exited with status 1",
    .workers = 3,
    .workers_min = 2,
    .roster = 16384,
    .restarts = 1006,
    .replicas = 3,
    .priority = 4,
    .submitted_us = 1001,
    .started_us = 1002,
    .ended_us = 1003,
    .position = 1004,
    .verified_position = 1000,
    .verified_digest = UINT64_C(0xfedcba9876543210),
    .generation = 1005,
    .checkpoint = "checkpoints/checkpoint-1004.json",
    .exit_code = 139,
    .has_progress = true,
    .progress = PROGRESS,
    .shards = sample_shards,
    .shards_count = 2,
    .wait = {.slot = 16383, .worker = "host-b", .waited_us = 1007},
    .tasks = task_infos,
    .task_count = 3,
    .limits = {.memory_bytes = LIMIT_MEMORY_MIN,
        .cpu_thousandths = 1500,
        .pids = 256,
        .time_limit_us = 4005},
    .outputs_folder = "s3://bucket/runs",
};
static const struct job_info info_bare = {
    .id = {8},
    .name = "j",
    .program = "p",
    .state = JOB_QUEUED,
    .message = "",
    .workers = 1,
    .checkpoint = "",
};
/* With parameter servers. */
static const struct task_info task_infos_of_ps_job[] = {
    {.slot = 0, .role = ROLE_CHIEF, .state = TASK_RUNNING, .worker = "host-a"},
    {.slot = 5, .role = ROLE_EVALUATOR, .state = TASK_WAITING, .worker = ""},
};
static const struct job_info info_of_ps_job = {
    .id = {8},
    .name = "j",
    .program = "p",
    .state = JOB_RUNNING,
    .message = "",
    .workers = 6,
    .workers_min = 6,
    .ps_job = {.workers = 2, .servers = 2, .evaluators = 1, .backups = true},
    .checkpoint = "",
    .has_evaluation = true,
    .evaluation = PROGRESS,
    .tasks = task_infos_of_ps_job,
    .task_count = 2,
};
static const struct job_spec spec_of_ps_job = {
    .name = "j",
    .program = {.name = "p"},
    .workers = 6,
    .workers_min = 6,
    .strategy = PS_JOB_STRATEGY,
    .ps_job = {.workers = 2, .servers = 2, .evaluators = 1, .backups = true},
    .checkpoint_folder = "",
};
static const struct job_info listed[] = {
    {.id = {8},
        .name = "j",
        .program = "p",
        .state = JOB_QUEUED,
        .message = "",
        .workers = 1,
        .checkpoint = ""},
    {.id = {7},
        .name = "k",
        .program = "q",
        .state = JOB_RUNNING,
        .message = "runs",
        .workers = 2,
        .checkpoint = ""},
};
static const struct list_jobs_response list_jobs = {.jobs = listed, .count = 2, .more = true};
static const struct list_jobs_response list_no_jobs = {.count = 0};

static const struct logs_request logs_request = {.id = {7},
    .one_slot = true,
    .slot = 1,
    .follow = true,
    .tail_bytes = 4096,
    .stream = LOG_STREAM_STDERR,
    .tail_lines = 20,
    .since_us = 33};
static const struct logs_request logs_of_slot_0 = {.id = {7}, .one_slot = true};
static const struct logs_request logs_of_all = {.id = {7}};
static const struct log_chunk log_chunk = {.job = {7},
    .slot = 1,
    .offset = 701,
    .bytes = data,
    .size_bytes = sizeof data,
    .end = true,
    .marks = log_marks,
    .mark_count = 2,
    .skipped_bytes = 44};
static const struct log_chunk log_chunk_bare = {.job = {7}};

static const uint8_t hashes[][LIMIT_SHA256_BYTES] = {HASH(6), HASH(7), HASH(8)};
static const struct blob_list blob_list = {.sha256 = hashes, .count = 3};
static const struct blob_list blob_list_bare = {.count = 0};
static const struct blob_chunk blob_chunk = {.has_header = true,
    .sha256 = HASH(9),
    .size_bytes = 7,
    .bytes = data,
    .byte_count = sizeof data};
static const struct blob_chunk blob_chunk_bare = {.has_header = false};
static const struct get_blob_request get_blob = {.sha256 = HASH(10)};
static const struct output_chunk output_chunk = {.has_header = true,
    .task = TASK,
    .path = "model.safetensors",
    .size_bytes = 7,
    .refers = true,
    .checkpoint = HASH(11),
    .bytes = data,
    .byte_count = sizeof data};
static const struct output_chunk output_chunk_bare = {.has_header = false, .path = ""};
static const struct settle_file_request settle_file = {.task = TASK,
    .file = LIMIT_FILES_PER_JOB - 1,
    .found = {.sha256 = HASH(12), .size_bytes = 71, .version = "\"0123-4\""}};
static const struct output_info outputs[] = {{"0/a", 1}, {"1/b/c", 2}};
static const struct checkpoint_ref stored[] = {{.position = 7,
                                                   .shared = true,
                                                   .path = "a/checkpoint-7.json",
                                                   .manifest_bytes = 1,
                                                   .manifest_sha256 = HASH(8)},
    {.position = 9,
        .shared = true,
        .path = "checkpoint-9.json",
        .manifest_bytes = LIMIT_MANIFEST_BYTES,
        .manifest_sha256 = HASH(9)}};
static const struct list_outputs_response list_outputs = {.outputs = outputs,
    .count = 2,
    .more = true,
    .stored = stored,
    .stored_count = 2,
    .store = "s3://bucket/run 1/",
    .folder = "s3://bucket/runs"};
static const struct get_output_request get_output = {.id = {7}, .path = "0/a"};
static const struct drain_request drain = {
    .worker = "host-a", .reason = "kernel update", .ends = true};
static const struct verify_request verify_request = {
    .id = {7}, .from = {.generation = 6007, .stream = 39, .epoch = 6008, .position = 6009}};
static const struct verify_request verify_first = {.id = {7}};
static const struct verify_generation generations[] = {
    {.generation = {1, 2}},
    {
        .generation = GENERATION,
        .resume = 6001,
        .restarted = true,
        .members = 16384,
        .planned_us = 6002,
    },
};
static const struct verify_epoch epochs[] = {
    {.name = ""},
    {
        .stream = 39,
        .name = "digits",
        .shares = true,
        .source_samples = 6003,
        .cursor = CURSOR,
        .consumption = FEED,
    },
};
static const struct verified verified[] = {
    {.position = 0, .digest = 1}, {.position = 6010, .digest = UINT64_MAX}};
const struct verify_response sample_verify = {
    .job = {.id = {8},
        .name = "j",
        .program = "p",
        .state = JOB_SUCCEEDED,
        .message = "",
        .workers = 1,
        .checkpoint = ""},
    .committed = 6004,
    .generations = generations,
    .generation_count = 2,
    .epochs = epochs,
    .epoch_count = 2,
    .more = true,
    .next = {.generation = 6005, .stream = 39, .epoch = 6006, .position = 6011},
    .verified = verified,
    .verified_count = 2,
};
static const char *const wanted_names[] = {"loss", "accuracy"};
static const struct metrics_request metrics_request = {
    .id = {7}, .names = wanted_names, .name_count = 2, .first_step = 1501, .last_step = 1502};
static const struct metrics_request metrics_all = {.id = {UINT64_MAX}};
static const struct series_bucket series_buckets[] = {
    {.first_step = 0, .last_step = 3, .count = 4, .not_finite = 4, .last = -1},
    {.first_step = 4,
        .last_step = 1503,
        .count = 1504,
        .not_finite = 1,
        .minimum = -1.5,
        .maximum = 2.5,
        .mean = 0.25,
        .last = 1e-300},
};
static const struct series_point series_points[] = {
    {.step = 1505, .value = 0}, {.step = LIMIT_POSITION, .value = -7.25}};
static const struct metric_series metric_series[] = {
    {.name = "loss",
        .stride = 2048,
        .buckets = series_buckets,
        .bucket_count = 2,
        .points = series_points,
        .point_count = 2},
    {.name = "accuracy", .stride = 1},
};
static const struct verify_generation metric_generations[] = {
    {.generation = GENERATION, .resume = 1506, .members = 3, .planned_us = 1507}};
const struct metrics_response sample_metrics = {.series = metric_series,
    .series_count = 2,
    .generations = metric_generations,
    .generation_count = 1,
    .lost_bytes = 1508,
    .refused = 1509};
static const struct metrics_response metrics_none = {.series_count = 0};

static const struct history_request history_some = {.id = {1}, .after = 1600, .limit = 1024};
static const struct history_request history_all = {.id = {UINT64_MAX}};
static const struct history_event history_events[] = {
    {.number = 1601,
        .time_us = 1602,
        .kind = HISTORY_GENERATION,
        .generation = 1603,
        .position = LIMIT_POSITION,
        .slot = 7,
        .incarnation = 1604,
        .tasks = LIMIT_TASKS_PER_JOB,
        .undone = 1605,
        .restarted = true,
        .waited_us = 1606,
        .exit_code = -1,
        .exit_signal = 9,
        .state = JOB_FAILED,
        .code = CADRE_UNAUTHENTICATED,
        .worker = "host-a",
        .roster = "0-2,5,...",
        .text = "task 1 was lost"},
    {.number = 1607,
        .kind = HISTORY_SUBMITTED,
        .slot = HISTORY_SLOT_NONE,
        .worker = "",
        .roster = "",
        .text = ""},
};
#define HISTORY_JOB                                                                                \
    {                                                                                              \
        .id = {8}, .name = "j", .program = "p", .state = JOB_QUEUED, .message = "", .workers = 1,  \
        .checkpoint = ""                                                                           \
    }
static const struct history_response history = {.job = HISTORY_JOB,
    .events = history_events,
    .event_count = 2,
    .last = 1608,
    .dropped = 1609,
    .more = true};
static const struct history_response history_bare = {.job = HISTORY_JOB};

static const struct verify_response verify_bare = {
    .job = {.id = {8},
        .name = "j",
        .program = "p",
        .state = JOB_QUEUED,
        .message = "",
        .workers = 1,
        .checkpoint = ""},
};
static const struct worker_info workers[] = {
    {
        .id = {1},
        .name = "host-a",
        .host = "a.example.org",
        .version = "0.2.0",
        .slots = 4,
        .slots_used = 2,
        .cpus = 64,
        .memory_bytes = 65,
        .draining = true,
        .connected = true,
        .joined_us = 66,
        .gpus = GPUS,
        .certificate_ends_us = 68,
        .expected = true,
        .drained_by = "alice",
        .drained_why = "kernel update",
        .usage = USAGE,
    },
    {.id = {2}, .name = "b", .host = "", .version = ""},
    {.id = {3}, .name = "c", .host = "", .version = "", .gpus = {.omitted = 8, .usable = 7}},
};
static const struct list_workers_request list_worker = {.worker = "host-a"};
static const struct list_workers_request list_all_workers = {.worker = ""};
static const struct list_workers_response list_workers = {.workers = workers, .count = 3};
static const struct version_response version = {.version = "0.2.0",
    .agent_protocol = 1,
    .task_frame = 2,
    .started_us = 3,
    .jobs_live = 4,
    .workers = 5,
    .request_ids = true,
    .objects = true};
static const struct login_response login = {.token = "viewer~1~v~00",
    .expires_us = 1700,
    .role = "viewer",
    .name = "v",
    .http = "127.0.0.1:9464",
    .http_tls = true};
static const struct login_response login_bare = {.token = "", .role = "", .name = "", .http = ""};
static const struct version_response version_bare = {.version = ""};
static const struct coordinator_info coordinators[] = {{.name = "c1",
                                                           .addresses = "h1:7070,h1:7071",
                                                           .state = COORDINATOR_FOLLOWER,
                                                           .text = "reads the log",
                                                           .term = {1801, 1802, 1803},
                                                           .since_us = 1804,
                                                           .applied = 1805,
                                                           .head = 1806,
                                                           .version = "0.2.0",
                                                           .age_us = 1807,
                                                           .process = 1808,
                                                           .format_max = 1809,
                                                           .written_us = 1700000000000000},
    {.name = "c2", .addresses = "", .state = "new", .text = "", .leads = true, .version = ""}};
static const struct list_coordinators_response list_coordinators = {coordinators, 2};
static const struct leader_response leader = {.self = {.name = "c3",
                                                  .addresses = "h3:7070",
                                                  .state = COORDINATOR_LEADING,
                                                  .text = "",
                                                  .leads = true,
                                                  .term = {1801, 1802, 1803},
                                                  .version = "0.2.0"},
    .may_lead_us = 1808,
    .leader = "c3",
    .leader_addresses = "h3:7070"};
static const struct leader_response leader_bare = {.self = {.name = "c3",
                                                       .addresses = "",
                                                       .state = COORDINATOR_REFUSED,
                                                       .text = "",
                                                       .version = ""},
    .leader = "",
    .leader_addresses = ""};

#endif
