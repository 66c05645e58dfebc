/* SPDX-License-Identifier: Apache-2.0
 * JobSpec: what a client asks for. The strictest border of all, for it comes from people. And the
 * checkpoint that a job goes on from. */
#include <string.h>

#include "common/wire/check.h"
#include "common/wire/codec.h"

void encode_job_limits(Cadre__V1__JobLimits *wire, const struct job_limits *limits)
{
    cadre__v1__job_limits__init(wire);
    wire->memory_bytes = limits->memory_bytes;
    wire->cpu_thousandths = limits->cpu_thousandths;
    wire->pids = limits->pids;
    wire->time_limit_us = limits->time_limit_us;
}

/* 0 is no limit; one that nothing could run under is a mistake. */
static uint64_t decode_limit(
    struct decoder *decoder, const char *field, uint64_t value, uint64_t least, uint64_t most)
{
    return value == 0 ? 0 : decode_number(decoder, field, value, least, most);
}

struct job_limits decode_job_limits(struct decoder *decoder, const Cadre__V1__JobLimits *wire)
{
    if (wire == NULL) {
        return (struct job_limits){0};
    }
    return (struct job_limits){.memory_bytes = decode_limit(decoder, "JobLimits.memory_bytes",
                                   wire->memory_bytes, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX),
        .cpu_thousandths = (uint32_t)decode_limit(decoder, "JobLimits.cpu_thousandths",
            wire->cpu_thousandths, LIMIT_CPU_MIN, LIMIT_CPU_MAX),
        .pids = (uint32_t)decode_limit(
            decoder, "JobLimits.pids", wire->pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX),
        .time_limit_us = decode_number(
            decoder, "JobLimits.time_limit_us", wire->time_limit_us, 0, LIMIT_TIME_US)};
}

static void encode_file(Cadre__V1__JobFile *wire, const struct job_file *file)
{
    cadre__v1__job_file__init(wire);
    wire->name = (char *)file->name;
    wire->sha256 =
        (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)file->sha256};
    wire->size_bytes = file->size_bytes;
    wire->executable = file->executable;
}

static void encode_files(
    struct encoder *encoder, Cadre__V1__JobSpec *wire, const struct job_spec *spec)
{
    Cadre__V1__JobFile **list = encoder_array(encoder, spec->file_count, sizeof *list);
    Cadre__V1__JobFile *files = encoder_array(encoder, spec->file_count, sizeof *files);
    if (list == NULL || files == NULL) {
        return;
    }
    for (size_t i = 0; i < spec->file_count; i++) {
        encode_file(&files[i], &spec->files[i]);
        list[i] = &files[i];
    }
    wire->files = list;
    wire->n_files = spec->file_count;
}

void encode_job_spec(
    struct encoder *encoder, struct wire_job_spec *storage, const struct job_spec *spec)
{
    Cadre__V1__JobSpec *wire = &storage->spec;
    cadre__v1__job_spec__init(wire);
    wire->name = (char *)spec->name;
    encode_file(&storage->program, &spec->program);
    wire->program = &storage->program;
    wire->arguments = (char **)spec->arguments;
    wire->n_arguments = spec->argument_count;
    wire->environment = (char **)spec->environment;
    wire->n_environment = spec->environment_count;
    encode_files(encoder, wire, spec);
    wire->workers = spec->workers;
    wire->replicas = spec->replicas;
    wire->strategy = (char *)spec->strategy;
    wire->priority = spec->priority;
    wire->workers_min = spec->workers_min;
    wire->max_restarts = spec->max_restarts;
    wire->wait_us = spec->wait_us;
    wire->stall_us = spec->stall_us;
    wire->checkpoint_every = spec->checkpoint_every;
    wire->checkpoints_kept = spec->checkpoints_kept;
    wire->checkpoint_folder = (char *)spec->checkpoint_folder;
    wire->restore_from = spec->restore_from.n;
    wire->restore_step = spec->restore_step;
    wire->gpus = spec->gpus;
    if (ps_job_is_set(&spec->ps_job)) {
        encode_ps_job(&storage->ps_job, &spec->ps_job);
        wire->ps_job = &storage->ps_job;
    }
    if (job_limits_any(&spec->limits)) {
        encode_job_limits(&storage->limits, &spec->limits);
        wire->limits = &storage->limits;
    }
}

static void decode_file(
    struct decoder *decoder, const Cadre__V1__JobFile *wire, struct job_file *ret_file)
{
    *ret_file = (struct job_file){
        .name = decode_path(decoder, "JobFile.name", wire->name),
        .size_bytes =
            decode_number(decoder, "JobFile.size_bytes", wire->size_bytes, 0, LIMIT_BLOB_BYTES),
        .executable = wire->executable,
    };
    decode_fixed_bytes(
        decoder, "JobFile.sha256", wire->sha256, ret_file->sha256, LIMIT_SHA256_BYTES);
}

static const char *const *decode_strings(struct decoder *decoder, const char *field, char **strings,
    size_t count, const char *(*take)(struct decoder *, const char *, char *))
{
    if (!decode_count(decoder, field, count, LIMIT_ARGUMENTS)) {
        return NULL;
    }
    const char **list = decode_array(decoder, count, sizeof *list);
    if (list == NULL) {
        return NULL;
    }
    decoder->list = field;
    for (size_t i = 0; i < count; i++) {
        decoder->entry = i;
        list[i] = take(decoder, field, strings[i]);
    }
    decoder->list = NULL;
    return list;
}

/* All names must find their place in one folder. */
static void check_files(struct decoder *decoder, const struct job_spec *spec)
{
    const char **names = decode_array(decoder, spec->file_count + 1, sizeof *names);
    if (names == NULL) {
        return;
    }
    names[0] = spec->program.name;
    for (size_t i = 0; i < spec->file_count; i++) {
        names[i + 1] = spec->files[i].name;
    }
    const char *first;
    const char *second;
    if (check_names_clash(names, spec->file_count + 1, &first, &second)) {
        if (strcmp(first, second) == 0) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "JobSpec.files",
                "has \"%.200s\" twice (the program counts too); give each file a name of its own",
                first);
        } else {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "JobSpec.files",
                "has \"%.150s\" both as a file and as the folder of \"%.150s\"; rename one", first,
                second);
        }
    }
}

static void decode_files(
    struct decoder *decoder, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec)
{
    if (!decode_count(decoder, "JobSpec.files", wire->n_files, LIMIT_FILES_PER_JOB)) {
        return;
    }
    struct job_file *files = decode_array(decoder, wire->n_files, sizeof *files);
    decoder->list = "JobSpec.files";
    for (size_t i = 0; i < wire->n_files && files != NULL; i++) {
        decoder->entry = i;
        decode_file(decoder, wire->files[i], &files[i]);
    }
    decoder->list = NULL;
    ret_spec->files = files;
    ret_spec->file_count = files != NULL ? wire->n_files : 0;
    check_files(decoder, ret_spec);
}

/* What the tasks are fits together, and their number is that of the tasks. */
static void check_ps_job(struct decoder *decoder, const struct job_spec *spec)
{
    const char *fault =
        decoder->status == CADRE_OK ? ps_job_fault(&spec->ps_job, spec->strategy) : NULL;
    if (fault != NULL) {
        decoder_fail(
            decoder, CADRE_INVALID_ARGUMENT, "JobSpec.crew", "is wrong: the job %s", fault);
        return;
    }
    bool all =
        spec->workers == ps_job_task_count(&spec->ps_job) && spec->workers_min == spec->workers;
    if (ps_job_is_set(&spec->ps_job) && !all) {
        decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "JobSpec.workers",
            "is %u, at least %u; a crew of these types has %llu tasks, no more and no fewer",
            spec->workers, spec->workers_min, (unsigned long long)ps_job_task_count(&spec->ps_job));
    }
}

void decode_job_spec(
    struct decoder *decoder, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec)
{
    *ret_spec = (struct job_spec){
        .name = decode_name(decoder, "JobSpec.name", wire->name),
        .arguments = decode_strings(
            decoder, "JobSpec.arguments", wire->arguments, wire->n_arguments, decode_argument),
        .argument_count = wire->n_arguments,
        .environment = decode_strings(decoder, "JobSpec.environment", wire->environment,
            wire->n_environment, decode_assignment),
        .environment_count = wire->n_environment,
        .workers = decode_u32(decoder, "JobSpec.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .replicas =
            decode_u32(decoder, "JobSpec.replicas", wire->replicas, 0, LIMIT_REPLICAS_PER_TASK),
        .strategy = decode_name_or_empty(decoder, "JobSpec.strategy", wire->strategy),
        .priority = wire->priority,
        .workers_min =
            decode_u32(decoder, "JobSpec.workers_min", wire->workers_min, 0, wire->workers),
        .max_restarts =
            decode_u32(decoder, "JobSpec.max_restarts", wire->max_restarts, 0, LIMIT_RESTARTS),
        .wait_us = decode_duration(decoder, "JobSpec.wait_us", wire->wait_us),
        .stall_us = decode_duration(decoder, "JobSpec.stall_us", wire->stall_us),
        .checkpoint_every =
            decode_position(decoder, "JobSpec.checkpoint_every", wire->checkpoint_every),
        .checkpoints_kept = decode_u32(
            decoder, "JobSpec.checkpoints_kept", wire->checkpoints_kept, 0, LIMIT_CHECKPOINTS_KEPT),
        .checkpoint_folder =
            decode_folder_or_empty(decoder, "JobSpec.checkpoint_folder", wire->checkpoint_folder),
        .restore_from = {wire->restore_from},
        .restore_step = decode_position(decoder, "JobSpec.restore_step", wire->restore_step),
        .gpus = decode_u32(decoder, "JobSpec.gpus", wire->gpus, 0, LIMIT_GPUS_PER_WORKER),
        .ps_job = decode_ps_job(decoder, wire->ps_job),
        .limits = decode_job_limits(decoder, wire->limits),
    };
    check_ps_job(decoder, ret_spec);
    if (decode_present(decoder, "JobSpec.program", wire->program)) {
        decode_file(decoder, wire->program, &ret_spec->program);
        decode_files(decoder, wire, ret_spec);
    }
}

void encode_checkpoint_ref(Cadre__V1__CheckpointRef *wire, const struct checkpoint_ref *checkpoint)
{
    cadre__v1__checkpoint_ref__init(wire);
    wire->position = checkpoint->position;
    wire->shared = checkpoint->shared;
    wire->path = (char *)checkpoint->path;
    wire->manifest_bytes = checkpoint->manifest_bytes;
    wire->manifest_sha256 = (ProtobufCBinaryData){
        .len = LIMIT_SHA256_BYTES, .data = (uint8_t *)checkpoint->manifest_sha256};
}

void decode_checkpoint_ref(struct decoder *decoder, const Cadre__V1__CheckpointRef *wire,
    struct checkpoint_ref *ret_checkpoint)
{
    *ret_checkpoint = (struct checkpoint_ref){
        .position = decode_position(decoder, "CheckpointRef.position", wire->position),
        .shared = wire->shared,
        .path = decode_path(decoder, "CheckpointRef.path", wire->path),
        .manifest_bytes = decode_number(
            decoder, "CheckpointRef.manifest_bytes", wire->manifest_bytes, 1, LIMIT_MANIFEST_BYTES),
    };
    decode_fixed_bytes(decoder, "CheckpointRef.manifest_sha256", wire->manifest_sha256,
        ret_checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
}

cadre_status wire_pack_job_spec(
    const struct job_spec *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct encoder encoder = {.buffer = buffer, .error = error};
    struct wire_job_spec storage;
    encode_job_spec(&encoder, &storage, message);
    return encoder_finish(&encoder, &storage.spec.base, LIMIT_SPEC_BYTES);
}

cadre_status wire_unpack_job_spec(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_spec *ret_message, struct cadre_error *error)
{
    struct decoder decoder = {.arena = arena, .error = error};
    const Cadre__V1__JobSpec *wire =
        decoder_open(&decoder, &cadre__v1__job_spec__descriptor, bytes, size, LIMIT_SPEC_BYTES);
    if (wire != NULL) {
        decode_job_spec(&decoder, wire, ret_message);
    }
    return decoder.status;
}
