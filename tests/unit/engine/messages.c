/* SPDX-License-Identifier: Apache-2.0
 * What agents and tasks say to the engine. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/engine/stage.h"

static void up(struct stage *stage, uint64_t link, const struct agent_up *message)
{
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){link}, message);
}

static struct task_ref ref(const struct stage *stage, uint64_t job, uint32_t slot)
{
    return (struct task_ref){
        .job = {job}, .slot = slot, .incarnation = stage->incarnations_before + slot + 1};
}

void join(struct stage *stage, uint64_t link, const char *name, uint32_t slots)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "1.2.3",
                .name = name,
                .host = "host",
                .boot_nonce = 1000 + link,
                .slots = slots,
                .cpus = 3,
                .memory_bytes = 4096,
                .gpus = {.devices = &(struct gpu){.name = name, .uuid = "GPU-1", .unused = ""},
                    .count = 1,
                    .usable = 1,
                    .driver = "580.1",
                    .nccl = 22809}}});
}

void rejoin(struct stage *stage, uint64_t link, const char *name, uint32_t slots, uint64_t job,
    uint32_t first, size_t count)
{
    struct task_ref tasks[8];
    assert_true(count <= 8);
    for (uint32_t i = 0; i < count; i++) {
        tasks[i] = ref(stage, job, first + i);
    }
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "1.2.3",
                .name = name,
                .host = "host",
                .boot_nonce = 1000 + link,
                .slots = slots,
                .cpus = 3,
                .memory_bytes = 4096,
                .tasks = tasks,
                .task_count = count}});
}

void heartbeat(struct stage *stage, uint64_t link)
{
    up(stage, link, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
}

void started(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_TASK_STARTED,
            .started = {.task = ref(stage, job, slot), .pid = 100 + slot}});
}

void gone(
    struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, int32_t code, const char *text)
{
    struct agent_up message = {
        .type = AGENT_UP_TASK_GONE, .gone = {.task = ref(stage, job, slot), .exit.code = code}};
    snprintf(message.gone.exit.text, sizeof message.gone.exit.text, "%s", text);
    up(stage, link, &message);
}

void collected(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_TASK_COLLECTED,
            .collected = {.task = ref(stage, job, slot), .text = ""}});
}

void task_hello(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {.task = ref(stage, job, slot),
                .up = {.type = TASK_UP_HELLO,
                    .hello = {.frame_version = TASK_FRAME_VERSION,
                        .library_version = "1.2.3",
                        .pid = 100 + slot,
                        .replicas = 1,
                        .mesh_address = "127.0.0.1:9",
                        .clean = true}}}});
}

static void send(
    struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, const struct task_up *message)
{
    up(stage, link,
        &(struct agent_up){
            .type = AGENT_UP_RELAY, .relay_up = {.task = ref(stage, job, slot), .up = *message}});
}

void task_hello_again(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot,
    uint64_t position, uint64_t released)
{
    send(stage, link, job, slot,
        &(struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = TASK_FRAME_VERSION,
                .library_version = "1.2.3",
                .pid = 100 + slot,
                .replicas = 1,
                .mesh_address = "127.0.0.1:9",
                .generation = stage->generation,
                .position = position,
                .clean = true,
                .released = released,
                .arrived = released}});
}

void distributed(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t samples)
{
    send(stage, link, job, slot,
        &(struct task_up){.type = TASK_UP_STREAM,
            .stream = {.stream = 1, .name = "train", .samples = samples, .shares = true}});
}

void part(struct stage *stage, uint64_t link, uint64_t job, uint64_t position)
{
    char path[64];
    snprintf(path, sizeof path, "checkpoints/checkpoint-%" PRIu64 ".json", position);
    send(stage, link, job, 0,
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = stage->generation,
                .position = position,
                .path = path,
                .size_bytes = 77,
                .sha256 = {(uint8_t)position}}});
}

void report(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    enum report_reason reason)
{
    send(stage, link, job, slot,
        &(struct task_up){.type = TASK_UP_REPORT,
            .report = {.generation = stage->generation,
                .position = position,
                .clean = true,
                .reason = reason,
                .text = ""}});
}

void stalled(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t other)
{
    send(stage, link, job, slot,
        &(struct task_up){.type = TASK_UP_STALL,
            .stall = {.generation = stage->generation,
                .position = position,
                .slot = other,
                .waited_us = SECOND}});
}

void consumed(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, const struct cursor *cursor, const struct consumption *consumption)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = stage->generation,
                .tasks = tasks,
                .up_to = up_to,
                .applied = applied,
                .cursor = *cursor,
                .consumption = *consumption}});
}

void progress(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t epoch)
{
    const struct metric metrics[2] = {{.name = "loss", .value = 0.5}, {.name = "", .value = 1}};
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {.task = ref(stage, job, slot),
                .up = {.type = TASK_UP_PROGRESS,
                    .progress = {.stream = "train",
                        .epoch = epoch,
                        .metrics = metrics,
                        .metric_count = 2}}}});
}

void shards(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot,
    const struct shards_report *report)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {
                .task = ref(stage, job, slot), .up = {.type = TASK_UP_SHARDS, .shards = *report}}});
}

void compared(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    struct verified verified)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = stage->generation,
                .tasks = tasks,
                .up_to = up_to,
                .applied = up_to - 1,
                .cursor = {.stream = 1, .first = 0, .steps = 0},
                .verified = verified}});
}

void arrived(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to)
{
    compared(stage, link, job, tasks, up_to, (struct verified){0});
}

void stage_form(struct stage *stage)
{
    join(stage, 1, "one", 2);
    join(stage, 2, "two", 2);
    submit(stage, 1, 3);
    flush(stage);
    for (uint32_t slot = 0; slot < 3; slot++) {
        uint64_t link = slot < 2 ? 1 : 2;
        started(stage, link, 1, slot);
        task_hello(stage, link, 1, slot);
    }
    flush(stage);
    assert_int_equal(stage->generation.number, 1);
    stage_skip(stage);
}

struct stage *stage_formed(void)
{
    struct stage *stage = stage_open();
    stage_form(stage);
    return stage;
}
