/* SPDX-License-Identifier: Apache-2.0
 * JobSpec: what a client asks for. The strictest border of all, for it comes from people. And the
 * checkpoint that a job goes on from. */
#include <string.h>

#include "common/wire/check.h"
#include "common/wire/codec.h"

void fill_job_limits(Cadre__V1__JobLimits *wire, const struct job_limits *limits)
{
    cadre__v1__job_limits__init(wire);
    wire->memory_bytes = limits->memory_bytes;
    wire->cpu_thousandths = limits->cpu_thousandths;
    wire->pids = limits->pids;
    wire->time_limit_us = limits->time_limit_us;
}

/* 0 is no limit; one that nothing could run under is a mistake. */
static uint64_t take_limit(
    struct taker *taker, const char *field, uint64_t value, uint64_t least, uint64_t most)
{
    return value == 0 ? 0 : take_number(taker, field, value, least, most);
}

struct job_limits take_job_limits(struct taker *taker, const Cadre__V1__JobLimits *wire)
{
    if (wire == NULL) {
        return (struct job_limits){0};
    }
    return (struct job_limits){.memory_bytes = take_limit(taker, "JobLimits.memory_bytes",
                                   wire->memory_bytes, LIMIT_MEMORY_LEAST, LIMIT_MEMORY_MOST),
        .cpu_thousandths = (uint32_t)take_limit(taker, "JobLimits.cpu_thousandths",
            wire->cpu_thousandths, LIMIT_CPU_LEAST, LIMIT_CPU_MOST),
        .pids = (uint32_t)take_limit(
            taker, "JobLimits.pids", wire->pids, LIMIT_PIDS_LEAST, LIMIT_PIDS_MOST),
        .time_limit_us =
            take_number(taker, "JobLimits.time_limit_us", wire->time_limit_us, 0, LIMIT_TIME_US)};
}

static void fill_file(Cadre__V1__JobFile *wire, const struct job_file *file)
{
    cadre__v1__job_file__init(wire);
    wire->name = (char *)file->name;
    wire->sha256 =
        (ProtobufCBinaryData){.len = LIMIT_SHA256_BYTES, .data = (uint8_t *)file->sha256};
    wire->size_bytes = file->size_bytes;
    wire->executable = file->executable;
}

static void fill_files(struct packer *packer, Cadre__V1__JobSpec *wire, const struct job_spec *spec)
{
    Cadre__V1__JobFile **list = packer_array(packer, spec->file_count, sizeof *list);
    Cadre__V1__JobFile *files = packer_array(packer, spec->file_count, sizeof *files);
    if (list == NULL || files == NULL) {
        return;
    }
    for (size_t i = 0; i < spec->file_count; i++) {
        fill_file(&files[i], &spec->files[i]);
        list[i] = &files[i];
    }
    wire->files = list;
    wire->n_files = spec->file_count;
}

void fill_job_spec(
    struct packer *packer, struct wire_job_spec *storage, const struct job_spec *spec)
{
    Cadre__V1__JobSpec *wire = &storage->spec;
    cadre__v1__job_spec__init(wire);
    wire->name = (char *)spec->name;
    fill_file(&storage->program, &spec->program);
    wire->program = &storage->program;
    wire->arguments = (char **)spec->arguments;
    wire->n_arguments = spec->argument_count;
    wire->environment = (char **)spec->environment;
    wire->n_environment = spec->environment_count;
    fill_files(packer, wire, spec);
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
    if (crew_is(&spec->crew)) {
        fill_crew(&storage->crew, &spec->crew);
        wire->crew = &storage->crew;
    }
    if (job_limits_any(&spec->limits)) {
        fill_job_limits(&storage->limits, &spec->limits);
        wire->limits = &storage->limits;
    }
}

static void take_file(
    struct taker *taker, const Cadre__V1__JobFile *wire, struct job_file *ret_file)
{
    *ret_file = (struct job_file){
        .name = take_path(taker, "JobFile.name", wire->name),
        .size_bytes =
            take_number(taker, "JobFile.size_bytes", wire->size_bytes, 0, LIMIT_BLOB_BYTES),
        .executable = wire->executable,
    };
    take_fixed_bytes(taker, "JobFile.sha256", wire->sha256, ret_file->sha256, LIMIT_SHA256_BYTES);
}

static const char *const *take_strings(struct taker *taker, const char *field, char **strings,
    size_t count, const char *(*take)(struct taker *, const char *, char *))
{
    if (!take_count(taker, field, count, LIMIT_ARGUMENTS)) {
        return NULL;
    }
    const char **list = take_array(taker, count, sizeof *list);
    if (list == NULL) {
        return NULL;
    }
    taker->list = field;
    for (size_t i = 0; i < count; i++) {
        taker->entry = i;
        list[i] = take(taker, field, strings[i]);
    }
    taker->list = NULL;
    return list;
}

/* All names must find their place in one folder. */
static void check_files(struct taker *taker, const struct job_spec *spec)
{
    const char **names = take_array(taker, spec->file_count + 1, sizeof *names);
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
            taker_fail(taker, CADRE_INVALID_ARGUMENT, "JobSpec.files",
                "has \"%.200s\" twice (the program counts too); give each file a name of its own",
                first);
        } else {
            taker_fail(taker, CADRE_INVALID_ARGUMENT, "JobSpec.files",
                "has \"%.150s\" both as a file and as the folder of \"%.150s\"; rename one", first,
                second);
        }
    }
}

static void take_files(
    struct taker *taker, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec)
{
    if (!take_count(taker, "JobSpec.files", wire->n_files, LIMIT_FILES_PER_JOB)) {
        return;
    }
    struct job_file *files = take_array(taker, wire->n_files, sizeof *files);
    taker->list = "JobSpec.files";
    for (size_t i = 0; i < wire->n_files && files != NULL; i++) {
        taker->entry = i;
        take_file(taker, wire->files[i], &files[i]);
    }
    taker->list = NULL;
    ret_spec->files = files;
    ret_spec->file_count = files != NULL ? wire->n_files : 0;
    check_files(taker, ret_spec);
}

/* What the tasks are fits together, and their number is that of the tasks. */
static void check_crew(struct taker *taker, const struct job_spec *spec)
{
    const char *fault = taker->status == CADRE_OK ? crew_fault(&spec->crew, spec->strategy) : NULL;
    if (fault != NULL) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "JobSpec.crew", "is wrong: the job %s", fault);
        return;
    }
    bool all = spec->workers == crew_tasks(&spec->crew) && spec->workers_min == spec->workers;
    if (crew_is(&spec->crew) && !all) {
        taker_fail(taker, CADRE_INVALID_ARGUMENT, "JobSpec.workers",
            "is %u, at least %u; a crew of these types has %llu tasks, no more and no fewer",
            spec->workers, spec->workers_min, (unsigned long long)crew_tasks(&spec->crew));
    }
}

void take_job_spec(struct taker *taker, const Cadre__V1__JobSpec *wire, struct job_spec *ret_spec)
{
    *ret_spec = (struct job_spec){
        .name = take_name(taker, "JobSpec.name", wire->name),
        .arguments = take_strings(
            taker, "JobSpec.arguments", wire->arguments, wire->n_arguments, take_argument),
        .argument_count = wire->n_arguments,
        .environment = take_strings(
            taker, "JobSpec.environment", wire->environment, wire->n_environment, take_assignment),
        .environment_count = wire->n_environment,
        .workers = take_u32(taker, "JobSpec.workers", wire->workers, 1, LIMIT_TASKS_PER_JOB),
        .replicas = take_u32(taker, "JobSpec.replicas", wire->replicas, 0, LIMIT_REPLICAS_PER_TASK),
        .strategy = take_name_or_empty(taker, "JobSpec.strategy", wire->strategy),
        .priority = wire->priority,
        .workers_min = take_u32(taker, "JobSpec.workers_min", wire->workers_min, 0, wire->workers),
        .max_restarts =
            take_u32(taker, "JobSpec.max_restarts", wire->max_restarts, 0, LIMIT_RESTARTS),
        .wait_us = take_span(taker, "JobSpec.wait_us", wire->wait_us),
        .stall_us = take_span(taker, "JobSpec.stall_us", wire->stall_us),
        .checkpoint_every =
            take_position(taker, "JobSpec.checkpoint_every", wire->checkpoint_every),
        .checkpoints_kept = take_u32(
            taker, "JobSpec.checkpoints_kept", wire->checkpoints_kept, 0, LIMIT_CHECKPOINTS_KEPT),
        .checkpoint_folder =
            take_folder_or_empty(taker, "JobSpec.checkpoint_folder", wire->checkpoint_folder),
        .restore_from = {wire->restore_from},
        .restore_step = take_position(taker, "JobSpec.restore_step", wire->restore_step),
        .gpus = take_u32(taker, "JobSpec.gpus", wire->gpus, 0, LIMIT_GPUS_PER_WORKER),
        .crew = take_crew(taker, wire->crew),
        .limits = take_job_limits(taker, wire->limits),
    };
    check_crew(taker, ret_spec);
    if (take_present(taker, "JobSpec.program", wire->program)) {
        take_file(taker, wire->program, &ret_spec->program);
        take_files(taker, wire, ret_spec);
    }
}

void fill_checkpoint_ref(Cadre__V1__CheckpointRef *wire, const struct checkpoint_ref *checkpoint)
{
    cadre__v1__checkpoint_ref__init(wire);
    wire->position = checkpoint->position;
    wire->shared = checkpoint->shared;
    wire->path = (char *)checkpoint->path;
    wire->manifest_bytes = checkpoint->manifest_bytes;
    wire->manifest_sha256 = (ProtobufCBinaryData){
        .len = LIMIT_SHA256_BYTES, .data = (uint8_t *)checkpoint->manifest_sha256};
}

void take_checkpoint_ref(struct taker *taker, const Cadre__V1__CheckpointRef *wire,
    struct checkpoint_ref *ret_checkpoint)
{
    *ret_checkpoint = (struct checkpoint_ref){
        .position = take_position(taker, "CheckpointRef.position", wire->position),
        .shared = wire->shared,
        .path = take_path(taker, "CheckpointRef.path", wire->path),
        .manifest_bytes = take_number(
            taker, "CheckpointRef.manifest_bytes", wire->manifest_bytes, 1, LIMIT_MANIFEST_BYTES),
    };
    take_fixed_bytes(taker, "CheckpointRef.manifest_sha256", wire->manifest_sha256,
        ret_checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
}

cadre_status wire_pack_job_spec(
    const struct job_spec *message, struct wire_buffer *buffer, struct cadre_error *error)
{
    struct packer packer = {.buffer = buffer, .error = error};
    struct wire_job_spec storage;
    fill_job_spec(&packer, &storage, message);
    return packer_finish(&packer, &storage.spec.base, LIMIT_SPEC_BYTES);
}

cadre_status wire_unpack_job_spec(const void *bytes, size_t size, struct wire_arena *arena,
    struct job_spec *ret_message, struct cadre_error *error)
{
    struct taker taker = {.arena = arena, .error = error};
    const Cadre__V1__JobSpec *wire =
        taker_open(&taker, &cadre__v1__job_spec__descriptor, bytes, size, LIMIT_SPEC_BYTES);
    if (wire != NULL) {
        take_job_spec(&taker, wire, ret_message);
    }
    return taker.status;
}
