/* SPDX-License-Identifier: Apache-2.0
 * Every rule of the decoder but those for a JobSpec: one bent field at a time must be refused with
 * a sentence that names the message, the field, the value and the limit. */
#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "tests/unit/wire/refuse.h"

SEND(task_up)
SEND(task_down)
SEND(agent_up)
SEND(agent_down)
SEND(job_info)
SEND(job_request)
SEND(submit_response)
SEND(logs_request)
SEND(log_chunk)
SEND(list_outputs_response)
SEND(output_chunk)
SEND(list_workers_request)
SEND(list_workers_response)
SEND(blob_list)
SEND(drain_request)
SEND(verify_request)
SEND(verify_response)

#define BEND_UP(sample, field, value, code, text)                                                  \
    do {                                                                                           \
        struct task_up up = sample;                                                                \
        up.field = value;                                                                          \
        assert_error(send_task_up(&up), code, &error, text);                                       \
    } while (0)

static void task_up_fields(void **state)
{
    (void)state;
    char *address = long_text(LIMIT_ADDRESS_BYTES);
    BEND_UP(sample_hello, hello.pid, 0, INVALID, "TaskHello.pid is 0");
    BEND_UP(sample_hello, hello.pid, UINT32_MAX, INVALID, "TaskHello.pid is 4294967295");
    BEND_UP(sample_hello, hello.replicas, 0, INVALID, "TaskHello.replicas is 0");
    BEND_UP(sample_hello, hello.mesh_address, address, TOO_LARGE, "TaskHello.mesh_address");
    BEND_UP(sample_hello, hello.position, LIMIT_POSITION + 1, INVALID, "TaskHello.position");
    BEND_UP(sample_hello, hello.released, UINT64_MAX, INVALID, "TaskHello.released");
    BEND_UP(sample_hello, hello.arrived, UINT64_MAX, INVALID, "TaskHello.arrived");
    BEND_UP(sample_hello, hello.reason, (enum report_reason)7, INVALID,
        "TaskHello.reason is 7; it must be from 1 to 6");
    BEND_UP(sample_hello, hello.reason, (enum report_reason)0, INVALID, "TaskHello.reason is 0");
    BEND_UP(sample_arrive, arrive.generation.number, 0, INVALID, "Generation.number is 0");
    BEND_UP(sample_arrive, arrive.up_to, UINT64_MAX, INVALID, "TaskArrive.up_to");
    BEND_UP(sample_arrive, arrive.applied, 202, INVALID,
        "TaskArrive.applied is 202; it must be from 0 to 201");
    BEND_UP(sample_arrive, arrive.cursor.first, 26, INVALID, "Cursor.first");
    BEND_UP(sample_arrive, arrive.cursor.begin, UINT64_MAX, INVALID, "Cursor.begin");
    BEND_UP(sample_arrive, arrive.cursor.steps, UINT64_MAX, INVALID, "Cursor.steps");
    BEND_UP(sample_arrive, arrive.cursor.stream, STREAM_ANY, INVALID, "Cursor.stream");
    BEND_UP(
        sample_arrive, arrive.consumption.steps, LIMIT_POSITION + 1, INVALID, "Consumption.steps");
    BEND_UP(sample_arrive, arrive.consumption.samples, LIMIT_POSITION + 1, INVALID,
        "Consumption.samples");
    BEND_UP(
        sample_arrive, arrive.verified.position, LIMIT_POSITION + 1, INVALID, "Verified.position");
    free(address);

    struct metric metrics[LIMIT_METRICS + 1];
    for (size_t i = 0; i <= LIMIT_METRICS; i++) {
        metrics[i] = (struct metric){.name = "m"};
    }
    struct task_up up = {
        .type = TASK_UP_PROGRESS,
        .progress = {.stream = "", .metrics = metrics, .metric_count = LIMIT_METRICS + 1},
    };
    assert_error(send_task_up(&up), TOO_LARGE, &error, "Progress.metrics has 17 entries");
    up.progress.metric_count = 1;
    metrics[0].name = "";
    assert_error(send_task_up(&up), INVALID, &error, "Metric.name is empty");
    struct task_up part = {
        .type = TASK_UP_PART, .part = {.generation = {1, 1}, .path = "../x", .size_bytes = 1}};
    assert_error(send_task_up(&part), INVALID, &error, "TaskPart.path");
    part.part.path = "x";
    assert_ok(send_task_up(&part), &error);
    part.part.size_bytes = 0;
    assert_error(send_task_up(&part), INVALID, &error, "TaskPart.size_bytes is 0");
    part.part.size_bytes = LIMIT_MANIFEST_BYTES + 1;
    assert_error(send_task_up(&part), INVALID, &error, "TaskPart.size_bytes is 16777217");
    struct task_up report = {.type = TASK_UP_REPORT,
        .report = {.generation = {1, 1}, .reason = (enum report_reason)0, .text = ""}};
    assert_error(send_task_up(&report), INVALID, &error, "TaskReport.reason is 0");
    report.report.reason = REPORT_FAILED;
    assert_error(send_task_up(&report), INVALID, &error, "TaskReport.code is 0; it must be from 1");
    report.report.reason = REPORT_DIVERGED;
    report.report.divergence = (struct divergence){.position = 3, .verified = 4};
    assert_error(send_task_up(&report), INVALID, &error, "Divergence.verified is 4");
    report.report.divergence.verified = 3;
    report.report.divergence.culprit_count = 1;
    report.report.divergence.culprits[0] = LIMIT_TASKS_PER_JOB;
    assert_error(send_task_up(&report), INVALID, &error, "Divergence.culprits is 16384");
    report.report.reason = REPORT_PEER_ERROR;
    report.report.begun = true;
    report.report.stream = STREAM_ANY;
    assert_error(send_task_up(&report), INVALID, &error, "TaskReport.stream is 4294967295");
}

static void task_up_joins_streams_and_stalls(void **state)
{
    (void)state;
    char *name = long_text(LIMIT_NAME_BYTES);
    struct task_up join = {.type = TASK_UP_JOIN, .join = {.stream = STREAM_ANY}};
    assert_error(send_task_up(&join), INVALID, &error, "TaskJoin.stream is 4294967295");
    const struct task_up stream = {.type = TASK_UP_STREAM, .stream = {.stream = 1, .name = "a"}};
    BEND_UP(stream, stream.stream, 0, INVALID, "TaskStream.stream is 0; it must be from 1");
    BEND_UP(stream, stream.stream, STREAM_ANY, INVALID, "TaskStream.stream is 4294967295");
    BEND_UP(stream, stream.name, name, TOO_LARGE, "TaskStream.name");
    BEND_UP(stream, stream.samples, LIMIT_POSITION + 1, INVALID, "TaskStream.samples");
    const struct task_up preempt = {.type = TASK_UP_PREEMPT};
    BEND_UP(preempt, preempt.grace_us, UINT64_MAX, INVALID, "TaskPreempt.grace_us");
    const struct task_up backed = {.type = TASK_UP_BACKED, .backed = {.number = 1}};
    BEND_UP(backed, backed.number, 0, INVALID, "TaskBacked.number is 0");
    const struct task_up stall = {.type = TASK_UP_STALL, .stall = {.generation = {1, 1}}};
    BEND_UP(stall, stall.generation.number, 0, INVALID, "Generation.number is 0");
    BEND_UP(stall, stall.position, LIMIT_POSITION + 1, INVALID, "TaskStall.position");
    BEND_UP(stall, stall.slot, LIMIT_TASKS_PER_JOB, INVALID, "TaskStall.slot is 16384");
    BEND_UP(stall, stall.waited_us, UINT64_MAX, INVALID, "TaskStall.waited_us");
    const struct task_up hangs = {.type = TASK_UP_STALL,
        .stall = {.generation = {1, 1}, .hang = {.at = HANG_COLLECTIVE, .collective = 1}}};
    BEND_UP(hangs, stall.hang.at, (enum hang_at)5, INVALID, "TaskHang.at is 5");
    BEND_UP(hangs, stall.hang.at, HANG_RETURN, INVALID, "TaskHang.collective is 1");
    BEND_UP(hangs, stall.hang.collective, 0, INVALID, "TaskHang.collective is 0");
    BEND_UP(hangs, stall.hang.replica, 4194304, INVALID, "TaskHang.replica is 4194304");
    BEND_UP(hangs, stall.hang.others, 256, INVALID, "TaskHang.others is 256");
    free(name);
}

static void task_down_fields(void **state)
{
    (void)state;
    struct task_down down = sample_release;
    down.release.halt_kind = HALT_NONE;
    assert_error(send_task_down(&down), INVALID, &error, "TaskRelease.halt_kind is 0");
    down = sample_release;
    down.release.checkpoint_at = UINT64_MAX - 1;
    assert_error(send_task_down(&down), INVALID, &error, "TaskRelease.checkpoint_at");
    down = sample_release;
    down.release.published = LIMIT_POSITION + 1;
    assert_error(send_task_down(&down), INVALID, &error, "TaskRelease.published");
    down = (struct task_down){.type = TASK_DOWN_REFUSED, .refused = {.code = CADRE_OK}};
    assert_error(send_task_down(&down), INVALID, &error, "Refused.code is 0");
    down = (struct task_down){.type = TASK_DOWN_GOODBYE};
    assert_error(send_task_down(&down), INVALID, &error, "Generation.number is 0");
    down = (struct task_down){.type = TASK_DOWN_ABORT};
    assert_error(send_task_down(&down), INVALID, &error, "Generation.number is 0");
}

static void task_down_warm(void **state)
{
    (void)state;
    struct stream_position streams[LIMIT_STREAMS + 1];
    for (uint32_t i = 0; i <= LIMIT_STREAMS; i++) {
        streams[i] = (struct stream_position){.stream = i};
    }
    struct task_down down = {
        .type = TASK_DOWN_WARM, .warm = {.streams = streams, .stream_count = LIMIT_STREAMS + 1}};
    assert_error(send_task_down(&down), TOO_LARGE, &error, "TaskWarm.streams has 65 entries");
    down.warm.stream_count = LIMIT_STREAMS;
    assert_ok(send_task_down(&down), &error);
    streams[7].steps = LIMIT_POSITION + 1;
    assert_error(send_task_down(&down), INVALID, &error, "(in TaskWarm.streams[7])");
    streams[7] = (struct stream_position){.stream = 7, .applied = UINT64_MAX};
    assert_error(send_task_down(&down), INVALID, &error, "StreamPosition.applied");
    streams[7] = (struct stream_position){.stream = STREAM_ANY};
    assert_error(send_task_down(&down), INVALID, &error, "StreamPosition.stream");
    streams[7] = (struct stream_position){.stream = 3};
    assert_error(send_task_down(&down), INVALID, &error, "StreamPosition.stream 3 is there twice");
    down.warm = (struct task_warm){.tasks = LIMIT_TASKS_PER_JOB + 1};
    assert_error(send_task_down(&down), INVALID, &error, "TaskWarm.tasks is 16385");
}

static void task_down_members(void **state)
{
    (void)state;
    struct task_member members[3] = {{.slot = 0, .address = ""}, {.slot = 2, .address = ""}};
    struct task_down down = {.type = TASK_DOWN_MEMBERS,
        .members = {.generation = {1, 2}, .members = members, .member_count = 2}};
    assert_ok(send_task_down(&down), &error);
    members[0].here = true;
    assert_error(send_task_down(&down), INVALID, &error,
        "TaskMember.here is true of slot 0, which was not started (in TaskMembers.members[0])");
    members[0] = (struct task_member){
        .slot = 0, .incarnation = 1, .attempts = 1, .here = true, .address = "127.0.0.1:1"};
    assert_ok(send_task_down(&down), &error);
    members[1].slot = 0;
    assert_error(send_task_down(&down), INVALID, &error, "TaskMember.slot is 0; it must be from 1");
    members[1].slot = LIMIT_TASKS_PER_JOB;
    assert_error(send_task_down(&down), INVALID, &error, "TaskMember.slot is 16384");
    members[1].slot = 1;
    down.members.changes = true;
    assert_error(send_task_down(&down), INVALID, &error,
        "TaskMembers.changes are of a list without a number");
    down.members.number = 1;
    assert_ok(send_task_down(&down), &error);
    down.members.member_count = 0;
    assert_error(send_task_down(&down), INVALID, &error, "TaskMembers.members is empty");
    down = (struct task_down){
        .type = TASK_DOWN_MEMBERS, .members = {.members = members, .member_count = 1}};
    assert_error(send_task_down(&down), INVALID, &error, "Generation.number is 0");
}

#define BEND_AGENT(sample, field, value, code, text)                                               \
    do {                                                                                           \
        struct agent_up up = sample;                                                               \
        up.field = value;                                                                          \
        assert_error(send_agent_up(&up), code, &error, text);                                      \
    } while (0)

static void agent_up_fields(void **state)
{
    (void)state;
    char *long_name = long_text(LIMIT_NAME_BYTES);
    BEND_AGENT(sample_agent_hello, hello.protocol_newest, 1, INVALID,
        "AgentHello.protocol_newest is 1; it must be from 2 to 4294967295");
    BEND_AGENT(sample_agent_hello, hello.seen.cluster, 0, INVALID,
        "AgentHello.seen_index is 13; it must be from 0 to 0");
    BEND_AGENT(sample_agent_hello, hello.name, "", INVALID, "AgentHello.name is empty");
    BEND_AGENT(sample_agent_hello, hello.slots, 0, INVALID, "AgentHello.slots is 0");
    BEND_AGENT(sample_agent_hello, hello.slots, 1025, INVALID, "AgentHello.slots is 1025");
    BEND_AGENT(sample_agent_hello, hello.host, "\x01", INVALID, "AgentHello.host");
    BEND_AGENT(sample_agent_hello, hello.gpus.usable, 2, INVALID,
        "Gpus.usable is 2; it must be from 1 to 1");
    BEND_AGENT(sample_agent_hello, hello.gpus.omitted, 1, INVALID,
        "Gpus.omitted is 1; it must be from 0 to 0");
    BEND_AGENT(sample_agent_hello, hello.gpus.driver, long_name, TOO_LARGE, "Gpus.driver");
    BEND_AGENT(sample_agent_hello, hello.gpus.count, 0, INVALID, "Gpus.usable is 1");
    struct gpu gpus[LIMIT_GPUS_PER_WORKER + 1];
    for (size_t i = 0; i <= LIMIT_GPUS_PER_WORKER; i++) {
        gpus[i] = sample_agent_hello.hello.gpus.devices[0];
    }
    struct agent_up many = sample_agent_hello;
    many.hello.gpus.devices = gpus;
    many.hello.gpus.count = many.hello.gpus.usable = LIMIT_GPUS_PER_WORKER;
    assert_ok(send_agent_up(&many), &error);
    gpus[63].name = "";
    assert_error(send_agent_up(&many), INVALID, &error, "1 to 127 bytes (in Gpus.devices[63])");
    gpus[63].name = "a";
    gpus[63].uuid = "GPU\n";
    assert_error(send_agent_up(&many), INVALID, &error, "Gpu.uuid");
    many.hello.gpus.count = many.hello.gpus.usable = LIMIT_GPUS_PER_WORKER + 1;
    assert_error(send_agent_up(&many), TOO_LARGE, &error, "Gpus.devices has 65 entries");
    free(long_name);
    BEND_AGENT(sample_agent_arrived, arrived.job.n, 0, INVALID, "AgentArrived.job is 0");
    BEND_AGENT(sample_agent_arrived, arrived.tasks, LIMIT_SLOTS_PER_WORKER + 1, INVALID,
        "AgentArrived.tasks is 1025");
    BEND_AGENT(sample_agent_arrived, arrived.applied, 602, INVALID, "AgentArrived.applied is 602");
    struct task_ref tasks[2] = {{.job = {1}, .slot = 0, .incarnation = 1}, {.job = {1}}};
    struct agent_up up = sample_agent_hello;
    up.hello.tasks = tasks;
    assert_error(send_agent_up(&up), INVALID, &error,
        "TaskRef.incarnation is 0; it must be from 1 to 18446744073709551615 (in "
        "AgentHello.tasks[1])");
    up = (struct agent_up){
        .type = AGENT_UP_RELAY, .relay_up = {.task = tasks[0], .up = sample_arrive}};
    assert_error(send_agent_up(&up), INVALID, &error, "AgentRelayUp.up is a TaskArrive");
    up = (struct agent_up){.type = AGENT_UP_LOG, .log = {.task = tasks[0]}};
    assert_error(send_agent_up(&up), INVALID, &error, "AgentLog.data is empty");
    char *text = long_text(LIMIT_LOG_CHUNK_BYTES + 1);
    up.log.bytes = (const uint8_t *)text;
    up.log.size_bytes = LIMIT_LOG_CHUNK_BYTES + 1;
    assert_error(send_agent_up(&up), TOO_LARGE, &error, "AgentLog.data has 65537 bytes");
    free(text);
    up = (struct agent_up){.type = AGENT_UP_TASK_GONE, .gone = {tasks[0], .exit.code = 256}};
    assert_error(send_agent_up(&up), INVALID, &error, "TaskExit.code is 256");
    up.gone.exit = (struct task_exit){.signal = -1};
    assert_error(send_agent_up(&up), INVALID, &error, "TaskExit.signal is -1");
    up.gone = (struct agent_task_gone){.task = tasks[0], .cause = (cadre_status)17};
    assert_error(send_agent_up(&up), INVALID, &error, "AgentTaskGone.cause is 17");
    up = (struct agent_up){.type = AGENT_UP_TASK_STARTED, .started = {.task = tasks[0]}};
    assert_error(send_agent_up(&up), INVALID, &error, "AgentTaskStarted.pid is 0");
    up = (struct agent_up){
        .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = tasks[0], .code = (cadre_status)17}};
    assert_error(send_agent_up(&up), INVALID, &error, "AgentTaskCollected.code is 17");
}

static void agent_down_fields(void **state)
{
    (void)state;
    struct task_ref task = {.job = {1}, .slot = 3, .incarnation = 1};
    struct agent_down down = {
        .type = AGENT_DOWN_START, .start = {.task = task, .task_count = 3, .spec = sample_spec}};
    assert_error(send_agent_down(&down), INVALID, &error,
        "AgentStart.task_count is 3; it must be from 4 to 16384");
    down.start.task_count = 4;
    assert_ok(send_agent_down(&down), &error);
    down.start.spec.name = "";
    assert_error(send_agent_down(&down), INVALID, &error, "JobSpec.name is empty");
    down.start.spec = sample_spec;
    down.start.restores = true;
    down.start.checkpoint = (struct checkpoint_ref){.path = "c", .manifest_bytes = 1};
    assert_ok(send_agent_down(&down), &error);
    down.start.checkpoint.manifest_bytes = 0;
    assert_error(send_agent_down(&down), INVALID, &error, "CheckpointRef.manifest_bytes is 0");
    down.start.checkpoint.manifest_bytes = LIMIT_MANIFEST_BYTES + 1;
    assert_error(send_agent_down(&down), INVALID, &error, "CheckpointRef.manifest_bytes");
    down.start.checkpoint =
        (struct checkpoint_ref){.path = "c", .manifest_bytes = 1, .position = UINT64_MAX};
    assert_error(send_agent_down(&down), INVALID, &error, "CheckpointRef.position");
    down.start.checkpoint = (struct checkpoint_ref){.path = "/c", .manifest_bytes = 1};
    assert_error(send_agent_down(&down), INVALID, &error, "CheckpointRef.path");
    down.start.checkpoint.path = "s3://bucket";
    assert_error(send_agent_down(&down), INVALID, &error, "CheckpointRef.path");
    down.start.checkpoint.path = "s3://bucket/../c 1.json";
    assert_ok(send_agent_down(&down), &error);
    down = (struct agent_down){
        .type = AGENT_DOWN_STOP, .stop = {.job = {2}, .one = true, .task = task}};
    assert_error(send_agent_down(&down), INVALID, &error, "AgentStop.task is of another job");
    down = (struct agent_down){.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = {2}, .one = true, .task = task, .down = sample_release}};
    assert_error(send_agent_down(&down), INVALID, &error, "AgentRelayDown.task is of another job");
    down = (struct agent_down){.type = AGENT_DOWN_WELCOME, .welcome = {.lease_us = 1}};
    assert_error(send_agent_down(&down), INVALID, &error, "AgentWelcome.worker is 0");
    down = (struct agent_down){.type = AGENT_DOWN_WELCOME, .welcome = {.worker = {1}}};
    assert_error(send_agent_down(&down), INVALID, &error, "AgentWelcome.lease_us is 0");
    down = (struct agent_down){
        .type = AGENT_DOWN_LOG_ACK, .log_ack = {.task = task, .offset = UINT64_MAX}};
    assert_error(send_agent_down(&down), INVALID, &error, "AgentLogAck.offset");
}

static void client_fields(void **state)
{
    (void)state;
    assert_error(send_job_request(&(struct job_request){.id = {0}}), INVALID, &error,
        "JobRequest.id is 0; jobs are numbered from 1");
    assert_error(send_submit_response(&(struct submit_response){.id = {0}}), INVALID, &error,
        "SubmitResponse.id is 0");
    assert_error(
        send_logs_request(&(struct logs_request){.id = {1}, .one_slot = true, .slot = 16384}),
        INVALID, &error, "LogsRequest.slot is 16384");
    assert_error(send_log_chunk(&(struct log_chunk){.job = {0}}), INVALID, &error, "LogChunk.job");
    struct output_info output = {.path = "/x"};
    assert_error(send_list_outputs_response(
                     &(struct list_outputs_response){.outputs = &output, .count = 1, .store = ""}),
        INVALID, &error, "(in ListOutputsResponse.outputs[0])");
    struct output_chunk chunk = {
        .has_header = true, .task = {{1}, 0, 1}, .path = "a", .size_bytes = UINT64_MAX};
    assert_error(send_output_chunk(&chunk), INVALID, &error, "OutputHeader.size_bytes");
    chunk.path = "../a";
    assert_error(send_output_chunk(&chunk), INVALID, &error, "OutputHeader.path");
    struct worker_info worker = {.id = {1}, .name = ""};
    assert_error(
        send_list_workers_response(&(struct list_workers_response){.workers = &worker, .count = 1}),
        INVALID, &error, "WorkerInfo.name is empty");
    worker = (struct worker_info){.id = {1}, .name = "a", .gpus = {.omitted = 65}};
    assert_error(
        send_list_workers_response(&(struct list_workers_response){.workers = &worker, .count = 1}),
        INVALID, &error, "Gpus.omitted is 65; it must be from 0 to 64");
    assert_error(send_list_workers_request(&(struct list_workers_request){.worker = "a\n"}),
        INVALID, &error, "ListWorkersRequest.worker");
    struct job_info info = sample_info;
    info.state = (enum job_state)0;
    assert_error(send_job_info(&info), INVALID, &error, "JobInfo.state is 0");
    info.state = (enum job_state)9; /* of a later version */
    assert_ok(send_job_info(&info), &error);
    info = sample_info;
    info.exit_code = 256;
    assert_error(send_job_info(&info), INVALID, &error, "JobInfo.exit_code is 256");
    info = sample_info;
    info.checkpoint = "/x";
    assert_error(send_job_info(&info), INVALID, &error, "JobInfo.checkpoint");
    info = sample_info;
    info.workers_min = 4;
    assert_error(send_job_info(&info), INVALID, &error, "JobInfo.workers_min is 4");
    info = sample_info;
    info.roster = LIMIT_TASKS_PER_JOB + 1;
    assert_error(send_job_info(&info), INVALID, &error, "JobInfo.roster is 16385");
    assert_error(send_drain_request(&(struct drain_request){.worker = ""}), INVALID, &error,
        "DrainRequest.worker is empty");
    uint8_t(*hashes)[LIMIT_SHA256_BYTES] = calloc(LIMIT_BLOBS_LISTED + 1, sizeof *hashes);
    assert_non_null(hashes);
    struct blob_list blobs = {
        .sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes, .count = LIMIT_BLOBS_LISTED + 1};
    assert_error(send_blob_list(&blobs), TOO_LARGE, &error, "BlobList.sha256 has 16386 entries");
    blobs.count--;
    assert_ok(send_blob_list(&blobs), &error);
    free(hashes);
}

static void verify_fields(void **state)
{
    (void)state;
    struct verify_generation generations[2] = {{.generation = {1, 2}}, {.generation = {2, 3}}};
    struct verify_epoch epochs[2] = {{.name = ""}, {.name = "a", .stream = 1}};
    struct verify_response verify = sample_verify;
    verify.generations = generations;
    verify.epochs = epochs;
    assert_ok(send_verify_response(&verify), &error);
    verify.committed = LIMIT_POSITION + 1;
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyResponse.committed");
    verify.committed = 0;
    verify.job.name = "";
    assert_error(send_verify_response(&verify), INVALID, &error, "JobInfo.name is empty");
    verify.job = sample_verify.job;
    generations[1].generation.number = 0;
    assert_error(send_verify_response(&verify), INVALID, &error,
        "Generation.number is 0; it must be from 1 to 18446744073709551615 (in "
        "VerifyResponse.generations[1])");
    generations[1] = (struct verify_generation){.generation = {2, 3}, .resume = UINT64_MAX};
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyGeneration.resume");
    generations[1] = (struct verify_generation){.generation = {2, 3}, .members = 16385};
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyGeneration.members");
    verify.generation_count = 1;
    epochs[1].source_samples = UINT64_MAX;
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyEpoch.source_samples");
    assert_non_null(strstr(error.text, "(in VerifyResponse.epochs[1])"));
    epochs[1] = (struct verify_epoch){.name = "a\n"};
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyEpoch.name");
    epochs[1] = (struct verify_epoch){.name = "", .stream = STREAM_ANY};
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyEpoch.stream");
    verify.epoch_count = 0;
    verify.next.stream = STREAM_ANY;
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyFrom.stream");
    struct verify_request request = {.from = {.epoch = 1}};
    assert_error(send_verify_request(&request), INVALID, &error, "VerifyRequest.id");
    request.id.n = 1;
    assert_ok(send_verify_request(&request), &error);
    request.from.stream = STREAM_ANY;
    assert_error(send_verify_request(&request), INVALID, &error, "VerifyFrom.stream");
}

/* ---- what our own packing cannot produce ---- */

static void pack_raw(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    wire_buffer_clear(&packed);
    wire_arena_reset(arena);
    assert_true(wire_buffer_reserve(&packed, size + 1));
    packed.size = protobuf_c_message_pack(message, packed.bytes);
}

static void missing_parts(void **state)
{
    (void)state;
    struct task_up up;
    struct task_down down;
    struct agent_up agent;
    struct agent_down agent_down;
    assert_error(wire_unpack_task_up("", 0, arena, &up, &error), INVALID, &error,
        "TaskUp has no message of this version");
    assert_error(wire_unpack_task_down("", 0, arena, &down, &error), INVALID, &error, "TaskDown");
    assert_error(wire_unpack_agent_up("", 0, arena, &agent, &error), INVALID, &error, "AgentUp");
    assert_error(
        wire_unpack_agent_down("", 0, arena, &agent_down, &error), INVALID, &error, "AgentDown");
    /* Field 2 of TaskUp, an empty TaskArrive. */
    assert_error(wire_unpack_task_up("\x12\x00", 2, arena, &up, &error), INVALID, &error,
        "TaskArrive.generation is missing");
    assert_error(wire_unpack_task_down("\x0a\x00", 2, arena, &down, &error), INVALID, &error,
        "TaskPlan.generation is missing");
    /* Field 8 of AgentUp, an AgentRelayUp of a task without a message. */
    assert_error(
        wire_unpack_agent_up("\x42\x08\x0a\x06\x08\x01\x10\x02\x18\x03", 10, arena, &agent, &error),
        INVALID, &error, "AgentRelayUp.up is missing");
    assert_error(wire_unpack_agent_up("\x32\x00", 2, arena, &agent, &error), INVALID, &error,
        "AgentTaskGone.task is missing");
    assert_error(wire_unpack_agent_down("\x1a\x00", 2, arena, &agent_down, &error), INVALID, &error,
        "AgentStart.task is missing");
    struct verify_response verify;
    assert_error(wire_unpack_verify_response("", 0, arena, &verify, &error), INVALID, &error,
        "VerifyResponse.job is missing");
    struct job_spec spec;
    Cadre__V1__JobSpec wire = CADRE__V1__JOB_SPEC__INIT;
    wire.name = (char *)"n";
    wire.workers = 1;
    pack_raw(&wire.base);
    assert_error(wire_unpack_job_spec(packed.bytes, packed.size, arena, &spec, &error), INVALID,
        &error, "JobSpec.program is missing");
}

/* A stream belongs to a halt that waits for a step of it. */
static void a_halt_of_another_kind_has_no_stream(void **state)
{
    (void)state;
    struct task_down down;
    Cadre__V1__TaskDown wire = CADRE__V1__TASK_DOWN__INIT;
    Cadre__V1__TaskRelease release = CADRE__V1__TASK_RELEASE__INIT;
    Cadre__V1__Generation generation = CADRE__V1__GENERATION__INIT;
    generation.number = 1;
    release.generation = &generation;
    release._halt_stream_case = CADRE__V1__TASK_RELEASE___HALT_STREAM_HALT_STREAM;
    wire.message_case = CADRE__V1__TASK_DOWN__MESSAGE_RELEASE;
    wire.release = &release;
    pack_raw(&wire.base);
    assert_error(wire_unpack_task_down(packed.bytes, packed.size, arena, &down, &error), INVALID,
        &error, "TaskRelease.halt_stream is given");
    release._halt_at_case = CADRE__V1__TASK_RELEASE___HALT_AT_HALT_AT;
    release.halt_kind = CADRE__V1__HALT_KIND__HALT_KIND_REGROUP;
    pack_raw(&wire.base);
    assert_ok(wire_unpack_task_down(packed.bytes, packed.size, arena, &down, &error), &error);
    release.halt_stream = STREAM_ANY;
    pack_raw(&wire.base);
    assert_error(wire_unpack_task_down(packed.bytes, packed.size, arena, &down, &error), INVALID,
        &error, "TaskRelease.halt_stream is 4294967295");
}

static void hashes_of_other_lengths(void **state)
{
    (void)state;
    static uint8_t bytes[LIMIT_SHA256_BYTES + 1];
    for (size_t size = 0; size <= LIMIT_SHA256_BYTES + 1; size++) {
        struct get_blob_request request;
        Cadre__V1__GetBlobRequest wire = CADRE__V1__GET_BLOB_REQUEST__INIT;
        wire.sha256 = (ProtobufCBinaryData){.len = size, .data = bytes};
        pack_raw(&wire.base);
        cadre_status status =
            wire_unpack_get_blob_request(packed.bytes, packed.size, arena, &request, &error);
        assert_int_equal(status, size == LIMIT_SHA256_BYTES ? CADRE_OK : INVALID);
        assert_true(status == CADRE_OK || strstr(error.text, "GetBlobRequest.sha256 has ") != NULL);
    }
}

static void nul_bytes_in_strings(void **state)
{
    (void)state;
    struct get_output_request request;
    /* Field 1, number 1; field 2, "a\0b" and "\0". */
    assert_error(
        wire_unpack_get_output_request("\x08\x01\x12\x03\x61\x00\x62", 7, arena, &request, &error),
        INVALID, &error, "GetOutputRequest.path \"a\" has a NUL byte");
    assert_error(wire_unpack_get_output_request("\x08\x01\x12\x01\x00", 5, arena, &request, &error),
        INVALID, &error, "GetOutputRequest.path \"\" has a NUL byte");
    assert_ok(
        wire_unpack_get_output_request("\x08\x01\x12\x01\x61", 5, arena, &request, &error), &error);
}

static void garbage_and_sizes(void **state)
{
    (void)state;
    struct job_spec spec;
    struct log_chunk chunk;
    assert_error(wire_unpack_job_spec("\xff\xff\xff", 3, arena, &spec, &error), INVALID, &error,
        "JobSpec cannot be read: these 3 bytes are no message of that type");
    uint8_t *bytes = calloc(LIMIT_SPEC_BYTES + 1, 1);
    assert_non_null(bytes);
    assert_error(wire_unpack_job_spec(bytes, LIMIT_SPEC_BYTES + 1, arena, &spec, &error), TOO_LARGE,
        &error, "JobSpec is 1048577 bytes; at most 1048576 are accepted");
    assert_error(wire_unpack_log_chunk(bytes, LIMIT_LOG_CHUNK_BYTES + 36865, arena, &chunk, &error),
        TOO_LARGE, &error, "LogChunk is 102401 bytes");
    free(bytes);
}

/* ---- texts for people pass in any case: packing makes them fit ---- */

static void texts_are_made_fit(void **state)
{
    (void)state;
    struct agent_up up = {
        .type = AGENT_UP_TASK_GONE,
        .gone = {.task = {{1}, 0, 1}, .exit = {.text = "a\x1b[0m\xff\xc3\xa4\tb"}},
    };
    struct agent_up received;
    wire_buffer_clear(&packed);
    assert_ok(wire_pack_agent_up(&up, &packed, &error), &error);
    assert_ok(wire_unpack_agent_up(packed.bytes, packed.size, arena, &received, &error), &error);
    assert_string_equal(received.gone.exit.text, "a [0m?\xc3\xa4 b");
    /* 600 two-byte characters are cut to whole ones. */
    char text[1201];
    for (size_t i = 0; i < 600; i++) {
        memcpy(text + 2 * i, "\xc3\xa4", 2);
    }
    text[1200] = '\0';
    struct task_down down = {.type = TASK_DOWN_ABORT, .generation = {1, 1}, .reason = text};
    struct task_down unpacked;
    wire_buffer_clear(&packed);
    wire_arena_reset(arena);
    assert_ok(wire_pack_task_down(&down, &packed, &error), &error);
    assert_ok(wire_unpack_task_down(packed.bytes, packed.size, arena, &unpacked, &error), &error);
    assert_int_equal(strlen(unpacked.reason), LIMIT_TEXT_BYTES - 2);
    down.reason = NULL;
    wire_buffer_clear(&packed);
    assert_ok(wire_pack_task_down(&down, &packed, &error), &error);
    assert_ok(wire_unpack_task_down(packed.bytes, packed.size, arena, &unpacked, &error), &error);
    assert_string_equal(unpacked.reason, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_up_fields),
        cmocka_unit_test(task_up_joins_streams_and_stalls),
        cmocka_unit_test(task_down_fields),
        cmocka_unit_test(task_down_warm),
        cmocka_unit_test(task_down_members),
        cmocka_unit_test(agent_up_fields),
        cmocka_unit_test(agent_down_fields),
        cmocka_unit_test(client_fields),
        cmocka_unit_test(verify_fields),
        cmocka_unit_test(missing_parts),
        cmocka_unit_test(a_halt_of_another_kind_has_no_stream),
        cmocka_unit_test(hashes_of_other_lengths),
        cmocka_unit_test(nul_bytes_in_strings),
        cmocka_unit_test(garbage_and_sizes),
        cmocka_unit_test(texts_are_made_fit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
