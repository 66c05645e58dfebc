/* SPDX-License-Identifier: Apache-2.0 */
#include "seeds.h"

#include <string.h>

#include "common/base/sha256.h"
#include "common/pure/assert.h"
#include "common/rpc/fields.h"
#include "tests/unit/wire/samples.h"

const char seed_program[] = "#!/bin/sh\nexit 0\n";

/* Not of the kinds of samples.h. */
#define KIND_HEALTH     "health"
#define KIND_REFLECTION "reflection"

#define REFLECTION(version) "/grpc.reflection." version ".ServerReflection/ServerReflectionInfo"

const struct seed_method seed_methods[] = {
    {METHOD_AGENTS_JOIN, METHOD_BOTH_STREAM, "agent_up"},
    {METHOD_AGENTS_GET_BLOB, METHOD_SERVER_STREAM, "get_blob_request"},
    {METHOD_AGENTS_MISSING_BLOBS, METHOD_UNARY, "blob_list"},
    {METHOD_AGENTS_PUT_BLOB, METHOD_CLIENT_STREAM, "blob_chunk"},
    {METHOD_AGENTS_PUT_OUTPUT, METHOD_CLIENT_STREAM, "output_chunk"},
    {METHOD_AGENTS_SETTLE_FILE, METHOD_UNARY, "settle_file_request"},
    {METHOD_JOBS_SUBMIT, METHOD_UNARY, "job_spec"},
    {METHOD_JOBS_GET, METHOD_UNARY, "job_request"},
    {METHOD_JOBS_LIST, METHOD_UNARY, NULL},
    {METHOD_JOBS_WATCH, METHOD_SERVER_STREAM, "job_request"},
    {METHOD_JOBS_LOGS, METHOD_SERVER_STREAM, "logs_request"},
    {METHOD_JOBS_CANCEL, METHOD_UNARY, "job_request"},
    {METHOD_JOBS_MISSING_BLOBS, METHOD_UNARY, "blob_list"},
    {METHOD_JOBS_PUT_BLOB, METHOD_CLIENT_STREAM, "blob_chunk"},
    {METHOD_JOBS_LIST_OUTPUTS, METHOD_UNARY, "job_request"},
    {METHOD_JOBS_GET_OUTPUT, METHOD_SERVER_STREAM, "get_output_request"},
    {METHOD_JOBS_VERIFY, METHOD_UNARY, "verify_request"},
    {METHOD_JOBS_METRICS, METHOD_UNARY, "metrics_request"},
    {METHOD_JOBS_HISTORY, METHOD_UNARY, "history_request"},
    {METHOD_JOBS_TRACE, METHOD_SERVER_STREAM, "trace_request"},
    {METHOD_JOBS_CHECKPOINT, METHOD_UNARY, "job_request"},
    {METHOD_JOBS_DRAIN, METHOD_UNARY, "drain_request"},
    {METHOD_JOBS_LIST_WORKERS, METHOD_UNARY, "list_workers_request"},
    {METHOD_JOBS_LOGIN, METHOD_UNARY, NULL},
    {METHOD_JOBS_VERSION, METHOD_UNARY, NULL},
    {METHOD_COORDINATORS_LEADER, METHOD_UNARY, NULL},
    {METHOD_COORDINATORS_LIST, METHOD_UNARY, NULL},
    {"/grpc.health.v1.Health/Check", METHOD_UNARY, KIND_HEALTH},
    {"/grpc.health.v1.Health/Watch", METHOD_SERVER_STREAM, KIND_HEALTH},
    {REFLECTION("v1"), METHOD_BOTH_STREAM, KIND_REFLECTION},
    {REFLECTION("v1alpha"), METHOD_BOTH_STREAM, KIND_REFLECTION},
    {"/cadre.v1.Jobs/Nothing", METHOD_UNARY, NULL},
};
const size_t seed_method_count = sizeof seed_methods / sizeof seed_methods[0];

static const struct sample *choose(struct prng *prng, const char *kind)
{
    const struct sample *chosen = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; i < sample_count; i++) {
        if (strcmp(samples[i].kind->name, kind) == 0 && prng_uniform(prng, ++seen) == 0) {
            chosen = &samples[i];
        }
    }
    CADRE_ASSERT(chosen != NULL);
    return chosen;
}

static void pack_sample(struct prng *prng, const char *kind, struct wire_buffer *buffer)
{
    struct cadre_error error;
    const struct sample *chosen = choose(prng, kind);
    cadre_status status = chosen->kind->pack(chosen->message, buffer, &error);
    CADRE_ASSERT(status == CADRE_OK);
}

static const void *sample_of(struct prng *prng, const char *kind)
{
    return choose(prng, kind)->message;
}

static struct task_ref some_task(struct prng *prng, const struct seed_world *world)
{
    if (world->task_count > 0 && !prng_chance(prng, 1, 8)) {
        size_t newest = world->task_count < 4 ? world->task_count : 4;
        return world->tasks[world->task_count - 1 - prng_uniform(prng, newest)];
    }
    return (struct task_ref){.job = {1 + prng_uniform(prng, world->jobs + 1)},
        .slot = (uint32_t)prng_uniform(prng, 3),
        .incarnation = 1 + prng_uniform(prng, 4)};
}

static uint64_t some_job(struct prng *prng, const struct seed_world *world)
{
    uint64_t behind = prng_uniform(prng, 8);
    return behind < world->jobs && world->jobs - behind > 0 ? world->jobs - behind
                                                            : 1 + prng_uniform(prng, 3);
}

static void hash_program(uint8_t ret_hash[LIMIT_SHA256_BYTES])
{
    struct sha256 hash;
    cadre_status status = sha256_of(seed_program, sizeof seed_program - 1, &hash, NULL);
    CADRE_ASSERT(status == CADRE_OK);
    memcpy(ret_hash, hash.bytes, LIMIT_SHA256_BYTES);
}

static void some_spec(struct prng *prng, struct wire_buffer *buffer)
{
    struct cadre_error error;
    struct job_spec spec = *(const struct job_spec *)sample_of(prng, "job_spec");
    if (!prng_chance(prng, 1, 4)) {
        spec = (struct job_spec){.name = "fuzz",
            .workers = 1 + (uint32_t)prng_uniform(prng, 3),
            .workers_min = 1,
            .strategy = "",
            .max_restarts = 3,
            .checkpoint_folder = "",
            .checkpoint_every = prng_uniform(prng, 3)};
    }
    spec.program = (struct job_file){
        .name = "program", .size_bytes = sizeof seed_program - 1, .executable = true};
    hash_program(spec.program.sha256);
    spec.files = NULL;
    spec.file_count = 0;
    cadre_status status = wire_pack_job_spec(&spec, buffer, &error);
    CADRE_ASSERT(status == CADRE_OK);
}

static void some_chunk(struct prng *prng, bool first, struct wire_buffer *buffer)
{
    struct cadre_error error;
    struct blob_chunk chunk = {.has_header = first, .size_bytes = sizeof seed_program - 1};
    hash_program(chunk.sha256);
    if (!first || prng_chance(prng, 1, 2)) {
        chunk.bytes = (const uint8_t *)seed_program;
        chunk.byte_count = sizeof seed_program - 1;
    }
    wire_pack_blob_chunk(&chunk, buffer, &error);
}

void seed_blob(struct wire_buffer *buffer)
{
    struct cadre_error error;
    struct blob_chunk chunk = {.has_header = true,
        .size_bytes = sizeof seed_program - 1,
        .bytes = (const uint8_t *)seed_program,
        .byte_count = sizeof seed_program - 1};
    wire_buffer_clear(buffer);
    hash_program(chunk.sha256);
    wire_pack_blob_chunk(&chunk, buffer, &error);
}

/* What an honest worker would say next of its tasks; false: nothing. */
static bool next_of_task(struct seed_world *world, struct agent_up *ret_up)
{
    for (size_t i = 0; i < world->task_count; i++) {
        if (world->stages[i] == 0) {
            *ret_up = (struct agent_up){
                .type = AGENT_UP_TASK_STARTED, .started = {.task = world->tasks[i], .pid = 7}};
        } else if (world->stages[i] == 1) {
            *ret_up = (struct agent_up){
                .type = AGENT_UP_RELAY, .relay_up = {.task = world->tasks[i], .up = sample_hello}};
            ret_up->relay_up.up.hello.frame_version = TASK_FRAME_VERSION;
        } else {
            continue;
        }
        world->stages[i]++;
        return true;
    }
    return false;
}

static void some_agent_up(
    struct prng *prng, struct seed_world *world, bool first, struct wire_buffer *buffer)
{
    struct cadre_error error;
    struct agent_up up = *(const struct agent_up *)sample_of(prng, "agent_up");
    static const char *const names[] = {"w0", "w1", "w2", "w3"};
    struct task_ref task = some_task(prng, world);
    if (first) {
        up = (struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "1",
                .name = names[prng_uniform(prng, 4)],
                .host = "fuzz",
                .boot_nonce = prng_next(prng),
                .slots = 1 + (uint32_t)prng_uniform(prng, 4),
                .cpus = 1}};
    } else if (prng_chance(prng, 7, 8) && next_of_task(world, &up)) {
        task = up.type == AGENT_UP_RELAY ? up.relay_up.task : up.started.task;
    } else if (world->generation.number != 0 && prng_chance(prng, 1, 3)) {
        up = sample_agent_arrived;
    } else if (prng_chance(prng, 1, 2)) {
        up = (struct agent_up){.type = AGENT_UP_RELAY,
            .relay_up = {.up = *(const struct task_up *)sample_of(prng, "task_up")}};
    }
    switch (up.type) {
    case AGENT_UP_TASK_STARTED:
        up.started.task = task;
        break;
    case AGENT_UP_TASK_GONE:
        up.gone.task = task;
        break;
    case AGENT_UP_TASK_COLLECTED:
        up.collected.task = task;
        break;
    case AGENT_UP_LOG:
        up.log.task = task;
        break;
    case AGENT_UP_RELAY:
        up.relay_up.task = task;
        if (up.relay_up.up.type == TASK_UP_ARRIVE) {
            up.relay_up.up.type = TASK_UP_STALL;
            up.relay_up.up.stall = (struct task_stall){0};
        } else if (up.relay_up.up.type == TASK_UP_HELLO) {
            up.relay_up.up.hello.frame_version = TASK_FRAME_VERSION;
        } else if (up.relay_up.up.type == TASK_UP_REPORT) {
            up.relay_up.up.report.generation = world->generation;
        } else if (up.relay_up.up.type == TASK_UP_VALUES) {
            up.relay_up.up.values.generation = world->generation;
        }
        break;
    case AGENT_UP_ARRIVED:
        up.arrived.job = world->planned.n != 0 ? world->planned : task.job;
        up.arrived.generation = world->generation;
        up.arrived.tasks = 1;
        up.arrived.up_to = prng_uniform(prng, 6);
        up.arrived.applied = prng_uniform(prng, 6);
        break;
    case AGENT_UP_HELLO:
    case AGENT_UP_HEARTBEAT:
    case AGENT_UP_DRAINING:
        break;
    }
    if (wire_pack_agent_up(&up, buffer, &error) != CADRE_OK) {
        wire_buffer_clear(buffer); /* an empty message, then */
    }
}

static void some_reflection(struct prng *prng, struct wire_buffer *buffer)
{
    static const char *const names[] = {
        "cadre.v1.Jobs", "cadre/v1/jobs.proto", "", "cadre.v1.JobSpec", "no.such"};
    const char *name = names[prng_uniform(prng, sizeof names / sizeof names[0])];
    uint8_t bytes[64];
    struct field_writer writer = {.at = bytes};
    field_put_bytes(&writer, 3 + (uint32_t)prng_uniform(prng, 5), name, strlen(name));
    wire_buffer_reserve(buffer, sizeof bytes);
    memcpy(buffer->bytes, bytes, writer.size);
    buffer->size = writer.size;
}

void seed_message(struct prng *prng, struct seed_world *world, const struct seed_method *method,
    bool first, struct wire_buffer *buffer)
{
    struct cadre_error error;
    const char *kind = method->kind;
    wire_buffer_clear(buffer);
    if (kind == NULL) {
        return;
    }
    if (strcmp(kind, "agent_up") == 0) {
        some_agent_up(prng, world, first, buffer);
    } else if (strcmp(kind, "job_spec") == 0) {
        some_spec(prng, buffer);
    } else if (strcmp(kind, "blob_chunk") == 0 && prng_chance(prng, 3, 4)) {
        some_chunk(prng, first, buffer);
    } else if (strcmp(kind, "job_request") == 0) {
        const struct job_request request = {.id = {some_job(prng, world)}};
        wire_pack_job_request(&request, buffer, &error);
    } else if (strcmp(kind, "verify_request") == 0) {
        struct verify_request request = *(const struct verify_request *)sample_of(prng, kind);
        request.id.n = some_job(prng, world);
        wire_pack_verify_request(&request, buffer, &error);
    } else if (strcmp(kind, "metrics_request") == 0) {
        struct metrics_request request = *(const struct metrics_request *)sample_of(prng, kind);
        request.id.n = some_job(prng, world);
        wire_pack_metrics_request(&request, buffer, &error);
    } else if (strcmp(kind, "history_request") == 0) {
        struct history_request request = *(const struct history_request *)sample_of(prng, kind);
        request.id.n = some_job(prng, world);
        wire_pack_history_request(&request, buffer, &error);
    } else if (strcmp(kind, "trace_request") == 0) {
        struct trace_request request = *(const struct trace_request *)sample_of(prng, kind);
        request.id.n = some_job(prng, world);
        wire_pack_trace_request(&request, buffer, &error);
    } else if (strcmp(kind, "logs_request") == 0) {
        struct logs_request request = *(const struct logs_request *)sample_of(prng, kind);
        request.id.n = some_job(prng, world);
        request.slot = (uint32_t)prng_uniform(prng, 2);
        wire_pack_logs_request(&request, buffer, &error);
    } else if (strcmp(kind, "get_output_request") == 0) {
        const struct get_output_request request = {
            .id = {some_job(prng, world)}, .path = prng_chance(prng, 1, 2) ? "0/x" : "0/a/b"};
        wire_pack_get_output_request(&request, buffer, &error);
    } else if (strcmp(kind, "output_chunk") == 0 && first) {
        struct output_chunk chunk = {.has_header = true,
            .task = some_task(prng, world),
            .path = prng_chance(prng, 1, 2) ? "x" : "a/b",
            .size_bytes = 3,
            .bytes = (const uint8_t *)"abc",
            .byte_count = 3};
        wire_pack_output_chunk(&chunk, buffer, &error);
    } else if (strcmp(kind, "settle_file_request") == 0) {
        struct settle_file_request request =
            *(const struct settle_file_request *)sample_of(prng, kind);
        request.task = some_task(prng, world);
        request.file = (uint32_t)prng_uniform(prng, 2);
        wire_pack_settle_file_request(&request, buffer, &error);
    } else if (strcmp(kind, KIND_HEALTH) == 0 || strcmp(kind, KIND_REFLECTION) == 0) {
        some_reflection(prng, buffer);
    } else {
        pack_sample(prng, kind, buffer);
    }
}

void seed_learn(struct seed_world *world, const void *bytes, size_t size)
{
    static struct wire_arena *arena;
    struct cadre_error error;
    struct agent_down down;
    if (arena == NULL) {
        arena = wire_arena_new(LIMIT_UNPACK_BYTES);
        CADRE_ASSERT(arena != NULL);
    }
    wire_arena_reset(arena);
    if (wire_unpack_agent_down(bytes, size, arena, &down, &error) != CADRE_OK) {
        return;
    }
    if (down.type == AGENT_DOWN_START) {
        if (world->task_count == SEED_TASKS_MAX) {
            memmove(world->tasks, world->tasks + 1, (SEED_TASKS_MAX - 1) * sizeof *world->tasks);
            memmove(world->stages, world->stages + 1, (SEED_TASKS_MAX - 1) * sizeof *world->stages);
            world->task_count--;
        }
        world->stages[world->task_count] = 0;
        world->tasks[world->task_count++] = down.start.task;
    } else if (down.type == AGENT_DOWN_RELAY && down.relay_down.down.type == TASK_DOWN_PLAN) {
        world->generation = down.relay_down.down.plan.generation;
        world->planned = down.relay_down.job;
        world->plans++;
    }
}
