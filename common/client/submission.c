/* SPDX-License-Identifier: Apache-2.0
 * Checks the options of a submission, hashes its files and packs the JobSpec; used by submit.c. */
#include "common/client/submission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/pure/object_path.h"
#include "common/wire/check.h"

#define RESTARTS_DEFAULT 3

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to prepare a job");
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* How many bytes of a path a sentence shows: what follows a "?" in a URL may be a signature. */
static int shown_bytes(const char *path, size_t most)
{
    size_t length = object_url_shown(path);
    return (int)(length < most ? length : most);
}

/* ---- contents ---- */

static cadre_status add_content(struct submission *submission, const char *path,
    const struct sha256 *hash, uint64_t size_bytes, struct cadre_error *error)
{
    for (size_t i = 0; i < submission->content_count; i++) {
        if (sha256_equal(&submission->contents[i].hash, hash)) {
            return CADRE_OK;
        }
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return no_memory(error);
    }
    submission->contents[submission->content_count++] =
        (struct content){.path = copy, .hash = *hash, .size_bytes = size_bytes};
    return CADRE_OK;
}

/* Opens `path`, hashes it and describes it as the job's file `name`. */
static cadre_status hash_file(struct submission *submission, const char *what, const char *path,
    const char *name, struct job_file *ret_file, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    struct sha256 hash;
    struct stat status;
    uint64_t size_bytes = 0;
    if (path == NULL || path[0] == '\0') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s: its path is empty", what);
    }
    cadre_status code = file_open_regular(path, &fd, NULL, error);
    if (code != CADRE_OK) {
        return cadre_error_wrap(error, code, "%s", what);
    }
    if (fstat(fd, &status) != 0) {
        return cadre_error_errno(error, errno, "%s %s", what, path);
    }
    code = sha256_of_fd(fd, &hash, &size_bytes, error);
    if (code != CADRE_OK) {
        return cadre_error_wrap(error, code, "%s %s", what, path);
    }
    if (size_bytes > LIMIT_BLOB_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s %s has %" PRIu64 " bytes; a file of a job may have %llu", what, path, size_bytes,
            LIMIT_BLOB_BYTES);
    }
    *ret_file = (struct job_file){
        .name = name, .size_bytes = size_bytes, .executable = (status.st_mode & S_IXUSR) != 0};
    memcpy(ret_file->sha256, hash.bytes, sizeof ret_file->sha256);
    return add_content(submission, path, &hash, size_bytes, error);
}

/* An object, which workers fetch. */
static cadre_status describe_object(
    const cadre_file *file, const char *name, struct job_file *ret_file, struct cadre_error *error)
{
    struct sha256 hash;
    const char *fault = check_url(file->path);
    if (fault != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "file %.*s %s",
            shown_bytes(file->path, 200), file->path, fault);
    }
    CADRE_TRY(sha256_of(file->path, strlen(file->path), &hash, error));
    *ret_file = (struct job_file){.name = name, .url = file->path};
    if (file->version != NULL && file->version[0] != '\0') {
        ret_file->version = file->version;
        ret_file->size_bytes = file->size_bytes;
    }
    memcpy(ret_file->sha256, hash.bytes, sizeof ret_file->sha256);
    return CADRE_OK;
}

static cadre_status hash_program_file(struct submission *submission,
    const cadre_submit_options *options, struct job_spec *spec, struct cadre_error *error)
{
    const char *path = options->program != NULL ? options->program : "";
    CADRE_TRY(hash_file(submission, "program", path, last_part(path), &spec->program, error));
    if (!spec->program.executable) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "program %s is not executable: chmod +x it, or name the program instead of its data",
            path);
    }
    return CADRE_OK;
}

static cadre_status check_file_name(const char *path, const char *name, struct cadre_error *error)
{
    cadre_status status = file_name_check(name, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "file %.*s: its name in the working folder",
            shown_bytes(path, 200), path);
    }
    if (strlen(name) >= LIMIT_FILE_NAME_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %.*s: its name in the working folder has %zu bytes, over the limit of %d",
            shown_bytes(path, 200), path, strlen(name), LIMIT_FILE_NAME_BYTES - 1);
    }
    return CADRE_OK;
}

/* Where the job's file with this name, one of the spec's, is here. */
static const char *submission_path_of(
    const cadre_submit_options *options, const struct job_spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->file_count; i++) {
        if (spec->files[i].name == name) {
            return options->files[i].path;
        }
    }
    return options->program;
}

static cadre_status check_clashes(
    const cadre_submit_options *options, const struct job_spec *spec, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT const char **names = calloc(spec->file_count + 1, sizeof *names);
    const char *first;
    const char *second;
    if (names == NULL) {
        return no_memory(error);
    }
    names[0] = spec->program.name;
    for (size_t i = 0; i < spec->file_count; i++) {
        names[i + 1] = spec->files[i].name;
    }
    if (!check_names_clash(names, spec->file_count + 1, &first, &second)) {
        return CADRE_OK;
    }
    const char *one = submission_path_of(options, spec, first);
    const char *other = submission_path_of(options, spec, second);
    if (strcmp(first, second) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.*s and %.*s would both be %.100s in the working folder (the program counts "
            "too): give one another name",
            shown_bytes(one, 150), one, shown_bytes(other, 150), other, first);
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%.*s would be the file %.100s in the working folder, and that is also the folder of "
        "%.*s, as %.100s: give one another name",
        shown_bytes(one, 150), one, first, shown_bytes(other, 150), other, second);
}

/* Names are checked before any file is read: hashing may take long. */
static cadre_status hash_files(struct submission *submission, const cadre_submit_options *options,
    struct job_file *files, struct job_spec *spec, struct cadre_error *error)
{
    for (size_t i = 0; i < options->file_count; i++) {
        const cadre_file *file = &options->files[i];
        const char *path = file->path != NULL ? file->path : "";
        if (file->name == NULL && path[object_url_shown(path)] != '\0') {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "file %.*s: what follows the path of this URL is no name: give the file one",
                shown_bytes(path, 200), path);
        }
        files[i].name = file->name != NULL ? file->name : last_part(path);
        CADRE_TRY(check_file_name(path, files[i].name, error));
    }
    spec->files = files;
    spec->file_count = options->file_count;
    CADRE_TRY(check_clashes(options, spec, error));
    for (size_t i = 0; i < options->file_count; i++) {
        const cadre_file *file = &options->files[i];
        if (file->path != NULL && object_url_is(file->path)) {
            CADRE_TRY(describe_object(file, files[i].name, &files[i], error));
            submission->unknown = "no files that workers fetch from an object store";
        } else {
            CADRE_TRY(hash_file(submission, "file", file->path, files[i].name, &files[i], error));
        }
    }
    return CADRE_OK;
}

/* ---- the rest of the options ---- */

static uint32_t workers_of(const cadre_submit_options *options)
{
    return options->workers > 0 ? options->workers : 1;
}

/* `workers` are then the ps job's worker tasks; its chief comes on top. */
static struct ps_job ps_job_of(const cadre_submit_options *options)
{
    if (options->servers == 0) {
        return (struct ps_job){
            .evaluators = options->evaluators, .backups = options->server_backups};
    }
    return (struct ps_job){.workers = workers_of(options),
        .servers = options->servers,
        .evaluators = options->evaluators,
        .backups = options->server_backups};
}

static cadre_status check_ps_job(const cadre_submit_options *options, struct cadre_error *error)
{
    struct ps_job ps_job = ps_job_of(options);
    const char *fault = ps_job_fault(&ps_job, options->strategy != NULL ? options->strategy : "");
    if (fault != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the job %s", fault);
    }
    if (ps_job_is_set(&ps_job) && options->workers_min > 0 &&
        options->workers_min != ps_job.workers) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "at least %" PRIu32 " workers and at most %" PRIu32
            ": a job with parameter servers has a fixed number of them; one that is lost is started"
            " again",
            options->workers_min, ps_job.workers);
    }
    return CADRE_OK;
}

static uint32_t restarts_of(const cadre_submit_options *options)
{
    return options->max_restarts == 0  ? RESTARTS_DEFAULT
           : options->max_restarts < 0 ? 0
                                       : (uint32_t)options->max_restarts;
}

static cadre_status check_counts(const cadre_submit_options *options, struct cadre_error *error)
{
    if (options->workers > LIMIT_TASKS_PER_JOB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " workers: a job has at most %d", options->workers, LIMIT_TASKS_PER_JOB);
    }
    if (options->workers_min > workers_of(options)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "at least %" PRIu32 " workers and at most %" PRIu32
            ": the least must not be more than the most",
            options->workers_min, workers_of(options));
    }
    if (options->max_restarts > LIMIT_RESTARTS) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRId32 " restarts: a job has at most %d", options->max_restarts, LIMIT_RESTARTS);
    }
    if (options->checkpoints_kept > LIMIT_CHECKPOINTS_KEPT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " checkpoints to keep: at most %d are kept", options->checkpoints_kept,
            LIMIT_CHECKPOINTS_KEPT);
    }
    if (options->gpus > LIMIT_GPUS_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " GPUs of each task: a worker has at most %d", options->gpus,
            LIMIT_GPUS_PER_WORKER);
    }
    if (options->replicas > LIMIT_REPLICAS_PER_TASK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " replicas: a task has at most %d", options->replicas,
            LIMIT_REPLICAS_PER_TASK);
    }
    if (options->file_count > LIMIT_FILES_PER_JOB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%zu files: a job takes at most %d; pack them into one", options->file_count,
            LIMIT_FILES_PER_JOB);
    }
    return CADRE_OK;
}

static cadre_status check_limits(const cadre_submit_options *options, struct cadre_error *error)
{
    if (options->memory_bytes != 0 &&
        (options->memory_bytes < LIMIT_MEMORY_MIN || options->memory_bytes > LIMIT_MEMORY_MAX)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a limit of %" PRIu64 " bytes of memory: it is at least 1 MiB, and below 1 EiB",
            options->memory_bytes);
    }
    if (options->cpu_thousandths != 0 &&
        (options->cpu_thousandths < LIMIT_CPU_MIN || options->cpu_thousandths > LIMIT_CPU_MAX)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a limit of %" PRIu32 " thousandths of a CPU: it is from %d to %d",
            options->cpu_thousandths, LIMIT_CPU_MIN, LIMIT_CPU_MAX);
    }
    if (options->pids != 0 && (options->pids < LIMIT_PIDS_MIN || options->pids > LIMIT_PIDS_MAX)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a limit of %" PRIu32 " processes and threads: it is from %d to %d", options->pids,
            LIMIT_PIDS_MIN, LIMIT_PIDS_MAX);
    }
    if (options->time_limit_us > LIMIT_TIME_US) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a time limit of %" PRIu64 " us: at most %llu", options->time_limit_us, LIMIT_TIME_US);
    }
    return CADRE_OK;
}

static int name_length(const char *entry)
{
    size_t length = strcspn(entry, "=");
    return length < 100 ? (int)length : 100;
}

static cadre_status check_environment_entries(
    const cadre_submit_options *options, struct cadre_error *error)
{
    for (size_t i = 0; i < options->environment_count; i++) {
        const char *wrong = check_environment(options->environment[i]);
        if (wrong != NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "environment \"%.*s\" %s: write NAME=value", name_length(options->environment[i]),
                options->environment[i], wrong); /* the value may be a secret */
        }
    }
    return CADRE_OK;
}

static struct checkpoint_ref stored_ref(const cadre_stored_checkpoint *stored)
{
    struct checkpoint_ref ref = {.position = stored->step,
        .shared = true,
        .path = stored->path != NULL ? stored->path : "",
        .manifest_bytes = stored->manifest_bytes};
    memcpy(ref.manifest_sha256, stored->manifest_sha256, sizeof ref.manifest_sha256);
    return ref;
}

static cadre_status check_restore(const cadre_submit_options *options, struct cadre_error *error)
{
    if (options->restore_stored != NULL && options->restore_from != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "both restore_from and restore_stored are set: a job goes on from one checkpoint");
    }
    return CADRE_OK;
}

static cadre_status check_checkpoint_folder(
    const cadre_submit_options *options, struct cadre_error *error)
{
    const char *folder = options->checkpoint_folder;
    const char *wrong = folder != NULL && folder[0] != '\0' ? check_folder(folder) : NULL;
    if (wrong != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "checkpoint folder \"%.200s\" %s: give a path that begins with \"/\" and that every "
            "worker sees, or s3://BUCKET/KEY",
            folder, wrong);
    }
    return CADRE_OK;
}

/* Without slashes at its end, so that what is shown of it is the path of an object. */
static cadre_status copy_outputs_folder(
    const cadre_submit_options *options, char **ret_folder, struct cadre_error *error)
{
    const char *folder = options->outputs_folder != NULL ? options->outputs_folder : "";
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/') {
        length--;
    }
    *ret_folder = strndup(folder, length);
    return *ret_folder != NULL ? CADRE_OK : no_memory(error);
}

static cadre_status check_outputs(const cadre_submit_options *options, struct cadre_error *error)
{
    const char *folder = options->outputs_folder;
    const char *wrong = folder != NULL && folder[0] != '\0' ? check_outputs_folder(folder) : NULL;
    if (wrong != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "outputs folder \"%.200s\" %s: outputs go to s3://BUCKET/KEY, or to the coordinator, "
            "which is the default",
            folder, wrong);
    }
    return CADRE_OK;
}

/* The coordinator's own check of a JobSpec: what passes it here is not refused after a long
 * upload. */
static cadre_status check_packed(const struct submission *submission, struct cadre_error *error)
{
    struct job_spec spec;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (arena == NULL) {
        return no_memory(error);
    }
    cadre_status status =
        wire_unpack_job_spec(submission->spec.bytes, submission->spec.size, arena, &spec, error);
    wire_arena_free(arena);
    return status;
}

/* The program's name as a job's: a longer one is cut. */
static void choose_name(const cadre_submit_options *options, char name[LIMIT_NAME_BYTES])
{
    const char *from = options->program != NULL ? last_part(options->program) : "";
    size_t length = strlen(from);
    length = length < LIMIT_NAME_BYTES ? length : LIMIT_NAME_BYTES - 1;
    while (length > 0 && ((unsigned char)from[length] & 0xc0U) == 0x80U) {
        length--; /* not inside a character */
    }
    memcpy(name, from, length);
    name[length] = '\0';
}

/* But for files, which are looked at later. */
static const char *unknown_of(const struct job_spec *spec)
{
    if (spec->has_restore_checkpoint) {
        return "no start from a checkpoint in an object store that is not one of its jobs'";
    }
    if (object_path_is(spec->checkpoint_folder)) {
        return "no checkpoint folder in an object store";
    }
    return spec->outputs_folder[0] != '\0' ? "no outputs that workers write to an object store"
                                           : NULL;
}

cadre_status submission_open(const cadre_submit_options *options, struct submission *ret_submission,
    struct cadre_error *error)
{
    char default_name[LIMIT_NAME_BYTES];
    *ret_submission = (struct submission){0};
    CADRE_TRY(check_counts(options, error));
    CADRE_TRY(check_limits(options, error));
    CADRE_TRY(check_ps_job(options, error));
    CADRE_TRY(check_environment_entries(options, error));
    CADRE_TRY(check_checkpoint_folder(options, error));
    CADRE_TRY(check_restore(options, error));
    CADRE_TRY(check_outputs(options, error));
    CADRE_FREE_AT_EXIT char *outputs_folder = NULL;
    CADRE_TRY(copy_outputs_folder(options, &outputs_folder, error));
    choose_name(options, default_name);
    struct ps_job ps_job = ps_job_of(options);
    struct job_spec spec = {.has_request_id = true,
        .name = options->name != NULL ? options->name : default_name,
        .arguments = options->arguments,
        .argument_count = options->argument_count,
        .environment = options->environment,
        .environment_count = options->environment_count,
        .workers =
            ps_job_is_set(&ps_job) ? (uint32_t)ps_job_task_count(&ps_job) : workers_of(options),
        .workers_min =
            ps_job_is_set(&ps_job) ? (uint32_t)ps_job_task_count(&ps_job) : options->workers_min,
        .ps_job = ps_job,
        .max_restarts = restarts_of(options),
        .wait_us = options->wait_us,
        .stall_us = options->stall_us,
        .checkpoint_every = options->checkpoint_every,
        .checkpoints_kept = options->checkpoints_kept,
        .checkpoint_folder = options->checkpoint_folder != NULL ? options->checkpoint_folder : "",
        .outputs_folder = outputs_folder,
        .restore_from = {options->restore_from},
        .restore_step = options->restore_step,
        .replicas = options->replicas,
        .strategy = options->strategy != NULL ? options->strategy : "",
        .priority = options->priority,
        .gpus = options->gpus,
        .terminal = options->terminal,
        .limits = {.memory_bytes = options->memory_bytes,
            .cpu_thousandths = options->cpu_thousandths,
            .pids = options->pids,
            .time_limit_us = options->time_limit_us}};
    if (options->restore_stored != NULL) {
        spec.has_restore_checkpoint = true;
        spec.restore_checkpoint = stored_ref(options->restore_stored);
    }
    CADRE_FREE_AT_EXIT struct job_file *files = calloc(options->file_count + 1, sizeof *files);
    ret_submission->contents = calloc(options->file_count + 1, sizeof(struct content));
    if (files == NULL || ret_submission->contents == NULL) {
        return no_memory(error);
    }
    if (getrandom(spec.request_id, sizeof spec.request_id, 0) != sizeof spec.request_id) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the kernel gives no random bytes for a submission's id");
    }
    ret_submission->unknown = unknown_of(&spec);
    CADRE_TRY(hash_program_file(ret_submission, options, &spec, error));
    CADRE_TRY(hash_files(ret_submission, options, files, &spec, error));
    CADRE_TRY(wire_pack_job_spec(&spec, &ret_submission->spec, error));
    return check_packed(ret_submission, error);
}

void submission_close(struct submission *submission)
{
    for (size_t i = 0; i < submission->content_count; i++) {
        free(submission->contents[i].path);
    }
    free(submission->contents);
    wire_buffer_free(&submission->spec);
    *submission = (struct submission){0};
}
