/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/wire/samples.h"

#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/common.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "cadre/v1/task.pb-c.h"
#include "common/pure/assert.h"

#define KIND(type)                                                                                 \
    static cadre_status pack_##type(                                                               \
        const void *message, struct wire_buffer *buffer, struct cadre_error *error)                \
    {                                                                                              \
        return wire_pack_##type(message, buffer, error);                                           \
    }                                                                                              \
    static cadre_status repack_##type(const void *bytes, size_t size, struct wire_arena *arena,    \
        struct wire_buffer *buffer, bool *ret_unpacked, struct cadre_error *error)                 \
    {                                                                                              \
        struct type message;                                                                       \
        *ret_unpacked = false;                                                                     \
        CADRE_TRY(wire_unpack_##type(bytes, size, arena, &message, error));                        \
        *ret_unpacked = true;                                                                      \
        return wire_pack_##type(&message, buffer, error);                                          \
    }

#define KINDS(X)                                                                                   \
    X(task_up)                                                                                     \
    X(task_down)                                                                                   \
    X(agent_up)                                                                                    \
    X(agent_down)                                                                                  \
    X(job_spec)                                                                                    \
    X(submit_response)                                                                             \
    X(job_request)                                                                                 \
    X(job_info)                                                                                    \
    X(list_jobs_response)                                                                          \
    X(logs_request)                                                                                \
    X(log_chunk)                                                                                   \
    X(blob_list)                                                                                   \
    X(blob_chunk)                                                                                  \
    X(get_blob_request)                                                                            \
    X(output_chunk)                                                                                \
    X(list_outputs_response)                                                                       \
    X(get_output_request)                                                                          \
    X(list_workers_response)                                                                       \
    X(version_response)

KINDS(KIND)

#define KIND_INDEX(type) KIND_##type,
enum { KINDS(KIND_INDEX) KIND_COUNT };

#define KIND_ROW(type)                                                                             \
    [KIND_##type] = {#type, &cadre__v1__##type##__descriptor, pack_##type, repack_##type},
const struct kind kinds[] = {KINDS(KIND_ROW)};
const size_t kind_count = KIND_COUNT;

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
        .stream = 21, .epoch = 22, .first = 23, .steps = 24, .begin = 25                           \
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
            .frame_version = 1,
            .library_version = "0.1.0",
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
            .digest = {UINT64_MAX, 1},
        },
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
            .reason = REPORT_FINISHED,
            .text = "rank 1 closed the connection \xc3\xa4",
        },
};
static const struct task_up part = {
    .type = TASK_UP_PART,
    .part =
        {
            .generation = GENERATION,
            .position = 302,
            .path = "ckpt/00000302/part-0.safetensors",
            .size_bytes = LIMIT_BLOB_BYTES,
            .sha256 = HASH(1),
        },
};
static const struct task_up progress = {.type = TASK_UP_PROGRESS, .progress = PROGRESS};
static const struct task_up progress_bare = {.type = TASK_UP_PROGRESS, .progress = {.stream = ""}};

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
            .halt_kind = HALT_STOP,
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
            .halt_kind = HALT_END,
        },
};
/* A mark at position 0 is not the same as none. */
static const struct task_down release_zero = {
    .type = TASK_DOWN_RELEASE,
    .release = {.generation = {1, 2}, .checkpoint_at = 0, .halt_at = 0, .halt_kind = HALT_REGROUP},
};
static const struct task_down release_bare = {
    .type = TASK_DOWN_RELEASE,
    .release = {.generation = {1, 2}, .checkpoint_at = POSITION_NONE, .halt_at = POSITION_NONE},
};
static const struct task_down abort_task = {
    .type = TASK_DOWN_ABORT,
    .generation = GENERATION,
    .reason = "task 1 on host b was killed by signal 9",
};
static const struct task_down reset = {.type = TASK_DOWN_RESET};
static const struct task_down bye = {.type = TASK_DOWN_BYE, .generation = GENERATION};
static const struct task_down superseded = {.type = TASK_DOWN_SUPERSEDED};
static const struct task_down task_refused = {
    .type = TASK_DOWN_REFUSED,
    .refused = {.code = CADRE_FAILED_PRECONDITION, .text = "version 2 is not 1"},
};

static const struct task_ref tasks[] = {TASK, {.job = {8}, .slot = 0, .incarnation = 1}};
const struct agent_up sample_agent_hello = {
    .type = AGENT_UP_HELLO,
    .hello =
        {
            .protocol_version = 1,
            .library_version = "0.1.0",
            .name = "host-a",
            .host = "a.example.org",
            .boot_nonce = UINT64_C(0x0123456789abcdef),
            .slots = 4,
            .cpus = 64,
            .memory_bytes = UINT64_C(1) << 38,
            .draining = true,
            .tasks = tasks,
            .task_count = 2,
        },
};
static const struct agent_up heartbeat = {.type = AGENT_UP_HEARTBEAT};
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
            .digest = {2, UINT64_MAX},
        },
};
static const struct agent_up started = {
    .type = AGENT_UP_TASK_STARTED, .started = {.task = TASK, .pid = INT32_MAX}};
static const struct agent_up gone = {
    .type = AGENT_UP_TASK_GONE,
    .gone = {.task = TASK, .exit = {.code = 255, .signal = 11, .text = "Segmentation fault"}},
};
static const struct agent_up gone_well = {.type = AGENT_UP_TASK_GONE, .gone = {.task = TASK}};
static const struct agent_up collected = {
    .type = AGENT_UP_TASK_COLLECTED,
    .collected = {.task = TASK, .code = CADRE_DATA_LOSS, .text = "out/a: read failed"},
};
static const struct agent_up said = {
    .type = AGENT_UP_SAID,
    .said = {.task = TASK, .up = {.type = TASK_UP_PROGRESS, .progress = PROGRESS}},
};
static const uint8_t data[] = {0, 'a', '\n', 0xff, 0x80, 'z', 0};
static const struct agent_up log_piece = {
    .type = AGENT_UP_LOG,
    .log = {.task = TASK, .offset = 701, .bytes = data, .size_bytes = sizeof data},
};

static const char *const arguments[] = {"--epochs", "20", "", "line\nbreak", "\xe2\x82\xac"};
static const char *const environment[] = {"A=", "_B2=x=y\t", "PATH=/usr/bin"};
static const struct job_file files[] = {
    {.name = "data/train.bin", .sha256 = HASH(3), .size_bytes = 12, .executable = true},
    {.name = "data/test.bin", .sha256 = HASH(4), .size_bytes = LIMIT_BLOB_BYTES},
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
};
static const struct job_spec spec_bare = {
    .name = "j",
    .program = {.name = "p"},
    .workers = 1,
    .strategy = "",
};

static const struct agent_down welcome = {
    .type = AGENT_DOWN_WELCOME, .welcome = {.worker = {11}, .lease_us = 10000000}};
static const struct agent_down agent_refused = {
    .type = AGENT_DOWN_REFUSED, .refused = {.code = CADRE_ALREADY_EXISTS, .text = "name in use"}};
/* The spec is a copy: constant initialisers cannot name another object. */
static const struct agent_down start = {
    .type = AGENT_DOWN_START,
    .start =
        {
            .task = TASK,
            .task_count = LIMIT_TASKS_PER_JOB,
            .spec = {.name = "digits", .program = {.name = "p"}, .workers = 1, .strategy = ""},
        },
};
static const struct agent_down stop = {
    .type = AGENT_DOWN_STOP,
    .stop = {.job = {7}, .one = true, .task = TASK, .grace_us = 5000000},
};
static const struct agent_down stop_all = {.type = AGENT_DOWN_STOP, .stop = {.job = {7}}};
static const struct agent_down tell = {
    .type = AGENT_DOWN_TELL,
    .tell =
        {
            .job = {7},
            .one = true,
            .task = TASK,
            .down = {.type = TASK_DOWN_BYE, .generation = GENERATION},
        },
};
static const struct agent_down tell_all = {
    .type = AGENT_DOWN_TELL,
    .tell =
        {
            .job = {7},
            .down =
                {
                    .type = TASK_DOWN_RELEASE,
                    .release =
                        {
                            .generation = GENERATION,
                            .up_to = 801,
                            .checkpoint_at = POSITION_NONE,
                            .halt_at = POSITION_NONE,
                        },
                },
        },
};
static const struct agent_down log_ack = {
    .type = AGENT_DOWN_LOG_ACK, .log_ack = {.task = TASK, .offset = 901}};

static const struct submit_response submit_response = {.id = {7}, .queued_before = 3};
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
    {.slot = 16383, .state = TASK_WAITING, .worker = ""},
};
const struct job_info sample_info = {
    .id = {7},
    .name = "digits",
    .program = "bin/digits",
    .state = JOB_FAILED,
    .code = CADRE_ABORTED,
    .message = "task 0 exited with status 1",
    .workers = 2,
    .replicas = 3,
    .priority = 4,
    .submitted_us = 1001,
    .started_us = 1002,
    .ended_us = 1003,
    .position = 1004,
    .generation = 1005,
    .checkpoint = "0/ckpt/00001004",
    .exit_code = 139,
    .has_progress = true,
    .progress = PROGRESS,
    .tasks = task_infos,
    .task_count = 2,
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

static const struct logs_request logs_request = {
    .id = {7}, .one_slot = true, .slot = 1, .follow = true, .tail_bytes = 4096};
static const struct logs_request logs_of_slot_0 = {.id = {7}, .one_slot = true};
static const struct logs_request logs_of_all = {.id = {7}};
static const struct log_chunk log_chunk = {
    .job = {7}, .slot = 1, .offset = 5, .bytes = data, .size_bytes = sizeof data, .end = true};
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
    .bytes = data,
    .byte_count = sizeof data};
static const struct output_chunk output_chunk_bare = {.has_header = false, .path = ""};
static const struct output_info outputs[] = {{"0/a", 1}, {"1/b/c", 2}};
static const struct list_outputs_response list_outputs = {
    .outputs = outputs, .count = 2, .more = true};
static const struct get_output_request get_output = {.id = {7}, .path = "0/a"};
static const struct worker_info workers[] = {
    {
        .id = {1},
        .name = "host-a",
        .host = "a.example.org",
        .version = "0.1.0",
        .slots = 4,
        .slots_used = 2,
        .cpus = 64,
        .memory_bytes = 65,
        .draining = true,
        .connected = true,
        .joined_us = 66,
    },
    {.id = {2}, .name = "b", .host = "", .version = ""},
};
static const struct list_workers_response list_workers = {.workers = workers, .count = 2};
static const struct version_response version = {.version = "0.1.0",
    .agent_protocol = 1,
    .task_frame = 2,
    .started_us = 3,
    .jobs_live = 4,
    .workers = 5};
static const struct version_response version_bare = {.version = ""};

const struct sample samples[] = {
    {"task_up hello", &kinds[KIND_task_up], &sample_hello},
    {"task_up hello, bare", &kinds[KIND_task_up], &hello_bare},
    {"task_up arrive", &kinds[KIND_task_up], &sample_arrive},
    {"task_up arrive, bare", &kinds[KIND_task_up], &arrive_bare},
    {"task_up report", &kinds[KIND_task_up], &report},
    {"task_up part", &kinds[KIND_task_up], &part},
    {"task_up progress", &kinds[KIND_task_up], &progress},
    {"task_up progress, bare", &kinds[KIND_task_up], &progress_bare},
    {"task_down plan", &kinds[KIND_task_down], &sample_plan},
    {"task_down plan, bare", &kinds[KIND_task_down], &plan_bare},
    {"task_down release", &kinds[KIND_task_down], &sample_release},
    {"task_down release, marks at 0", &kinds[KIND_task_down], &release_zero},
    {"task_down release, bare", &kinds[KIND_task_down], &release_bare},
    {"task_down abort", &kinds[KIND_task_down], &abort_task},
    {"task_down reset", &kinds[KIND_task_down], &reset},
    {"task_down bye", &kinds[KIND_task_down], &bye},
    {"task_down superseded", &kinds[KIND_task_down], &superseded},
    {"task_down refused", &kinds[KIND_task_down], &task_refused},
    {"agent_up hello", &kinds[KIND_agent_up], &sample_agent_hello},
    {"agent_up heartbeat", &kinds[KIND_agent_up], &heartbeat},
    {"agent_up draining", &kinds[KIND_agent_up], &draining},
    {"agent_up arrived", &kinds[KIND_agent_up], &sample_agent_arrived},
    {"agent_up started", &kinds[KIND_agent_up], &started},
    {"agent_up gone", &kinds[KIND_agent_up], &gone},
    {"agent_up gone, bare", &kinds[KIND_agent_up], &gone_well},
    {"agent_up collected", &kinds[KIND_agent_up], &collected},
    {"agent_up said", &kinds[KIND_agent_up], &said},
    {"agent_up log", &kinds[KIND_agent_up], &log_piece},
    {"agent_down welcome", &kinds[KIND_agent_down], &welcome},
    {"agent_down refused", &kinds[KIND_agent_down], &agent_refused},
    {"agent_down start", &kinds[KIND_agent_down], &start},
    {"agent_down stop", &kinds[KIND_agent_down], &stop},
    {"agent_down stop, all", &kinds[KIND_agent_down], &stop_all},
    {"agent_down tell", &kinds[KIND_agent_down], &tell},
    {"agent_down tell, all", &kinds[KIND_agent_down], &tell_all},
    {"agent_down log_ack", &kinds[KIND_agent_down], &log_ack},
    {"job_spec", &kinds[KIND_job_spec], &sample_spec},
    {"job_spec, bare", &kinds[KIND_job_spec], &spec_bare},
    {"submit_response", &kinds[KIND_submit_response], &submit_response},
    {"job_request", &kinds[KIND_job_request], &job_request},
    {"job_info", &kinds[KIND_job_info], &sample_info},
    {"job_info, bare", &kinds[KIND_job_info], &info_bare},
    {"list_jobs_response", &kinds[KIND_list_jobs_response], &list_jobs},
    {"list_jobs_response, none", &kinds[KIND_list_jobs_response], &list_no_jobs},
    {"logs_request", &kinds[KIND_logs_request], &logs_request},
    {"logs_request, slot 0", &kinds[KIND_logs_request], &logs_of_slot_0},
    {"logs_request, all", &kinds[KIND_logs_request], &logs_of_all},
    {"log_chunk", &kinds[KIND_log_chunk], &log_chunk},
    {"log_chunk, bare", &kinds[KIND_log_chunk], &log_chunk_bare},
    {"blob_list", &kinds[KIND_blob_list], &blob_list},
    {"blob_list, none", &kinds[KIND_blob_list], &blob_list_bare},
    {"blob_chunk", &kinds[KIND_blob_chunk], &blob_chunk},
    {"blob_chunk, bare", &kinds[KIND_blob_chunk], &blob_chunk_bare},
    {"get_blob_request", &kinds[KIND_get_blob_request], &get_blob},
    {"output_chunk", &kinds[KIND_output_chunk], &output_chunk},
    {"output_chunk, bare", &kinds[KIND_output_chunk], &output_chunk_bare},
    {"list_outputs_response", &kinds[KIND_list_outputs_response], &list_outputs},
    {"get_output_request", &kinds[KIND_get_output_request], &get_output},
    {"list_workers_response", &kinds[KIND_list_workers_response], &list_workers},
    {"version_response", &kinds[KIND_version_response], &version},
    {"version_response, bare", &kinds[KIND_version_response], &version_bare},
};
const size_t sample_count = CADRE_COUNT_OF(samples);
