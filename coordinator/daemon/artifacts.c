/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/artifacts.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/file_store.h"
#include "coordinator/daemon/storage.h"
#include "coordinator/daemon/worker_contents.h"

void artifact_file_free(struct artifact_file *file)
{
    free(file->path);
    checkpoint_content_free(&file->content);
    *file = (struct artifact_file){0};
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a checkpoint");
}

/* Where the manifest lies; the caller's to free. NULL: no memory. */
static char *path_of_manifest(
    const struct daemon *daemon, struct job_id job, const struct core_checkpoint *checkpoint)
{
    if (!checkpoint->shared) {
        return path_of_blob(daemon, checkpoint->manifest_sha256);
    }
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    char *path = NULL;
    int length =
        asprintf(&path, "%s/%s", spec != NULL ? spec->checkpoint_folder : "", checkpoint->path);
    return length >= 0 ? path : NULL;
}

static cadre_status check_manifest(const char *path, const char *text, size_t size,
    const struct core_checkpoint *checkpoint, struct cadre_error *error)
{
    struct sha256 hash;
    CADRE_TRY(sha256_of(text, size, &hash, error));
    if (size == checkpoint->manifest_bytes &&
        memcmp(hash.bytes, checkpoint->manifest_sha256, SHA256_BYTES) == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "the manifest %s is not the one that was published: it was changed since", path);
}

/* *ret_text is the caller's to free, also on an error. */
static cadre_status read_manifest(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, char **ret_text, size_t *ret_size,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_manifest(daemon, job, checkpoint);
    if (path == NULL) {
        return no_memory(error);
    }
    cadre_status status = file_read(path, LIMIT_MANIFEST_BYTES, ret_text, ret_size, error);
    if (status == CADRE_DATA_LOSS) { /* of the disk, which may work again */
        error->code = CADRE_UNAVAILABLE;
        return error->code;
    }
    CADRE_TRY(status);
    return check_manifest(path, *ret_text, *ret_size, checkpoint, error);
}

cadre_status artifacts_manifest(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct checkpoint_content *ret_content,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    CADRE_TRY(read_manifest(daemon, job, checkpoint, &text, &size, error));
    return checkpoint_content_read(text, size, ret_content, error);
}

/* The hash between two quotes, if that is what is between them. */
static bool take_quoted(char *text, struct sha256 *ret_hash)
{
    bool quoted = text[SHA256_HEX_BYTES - 1] == '"';
    if (quoted) {
        text[SHA256_HEX_BYTES - 1] = '\0';
        quoted = sha256_parse(text, ret_hash);
        text[SHA256_HEX_BYTES - 1] = '"';
    }
    return quoted;
}

cadre_status artifacts_mentioned(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct sha256 **ret_hashes, size_t *ret_count,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    CADRE_TRY(read_manifest(daemon, job, checkpoint, &text, &size, error));
    struct sha256 *hashes = calloc(size / SHA256_HEX_BYTES + 1, sizeof *hashes);
    if (hashes == NULL) {
        return no_memory(error);
    }
    size_t count = 0;
    char *end = text + size;
    for (char *at = memchr(text, '"', size); at != NULL && end - at > SHA256_HEX_BYTES;
         at = memchr(at, '"', (size_t)(end - at))) {
        at++;
        if (take_quoted(at, &hashes[count])) {
            count++;
            at += SHA256_HEX_BYTES;
        }
    }
    *ret_hashes = hashes;
    *ret_count = count;
    return CADRE_OK;
}

/* ---- a part that a task has written ---- */

static cadre_status check_blocks(const struct daemon *daemon, const struct task_part *part,
    const struct checkpoint_content *content, struct cadre_error *error)
{
    if (content->position != part->position) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the manifest of the checkpoint of step %" PRIu64 " is of step %" PRIu64,
            part->position, content->position);
    }
    for (size_t i = 0; i < content->block_count; i++) {
        const struct checkpoint_block *block = &content->blocks[i];
        struct sha256 hash;
        memcpy(hash.bytes, block->sha256, SHA256_BYTES);
        if (!file_store_has(daemon, &hash, block->bytes)) {
            char hex[SHA256_HEX_BYTES];
            sha256_hex(&hash, hex);
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "block %zu of %zu of the checkpoint of step %" PRIu64
                " is not here, or not with its %" PRIu64 " bytes: its content is %s",
                i + 1, content->block_count, part->position, block->bytes, hex);
        }
    }
    return CADRE_OK;
}

uint64_t artifacts_bytes(struct daemon *daemon, struct job_id job)
{
    struct core_checkpoint checkpoint;
    uint64_t bytes = 0;
    if (daemon->options.job_quota_bytes == 0) {
        return 0; /* nobody compares it */
    }
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct checkpoint_content content = {0};
        struct cadre_error error = {0};
        if (!checkpoint.shared &&
            artifacts_manifest(daemon, job, &checkpoint, &content, &error) == CADRE_OK) {
            bytes += checkpoint.manifest_bytes + content.file_bytes;
        }
        checkpoint_content_free(&content);
    }
    return bytes;
}

/* The oldest of as many as the job keeps gives its room to the new one. */
static cadre_status check_quota(
    struct daemon *daemon, struct job_id job, uint64_t bytes, struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    uint32_t kept = spec != NULL && spec->checkpoints_kept > 0 ? spec->checkpoints_kept
                                                               : LIMIT_CHECKPOINTS_KEPT_DEFAULT;
    struct core_checkpoint last;
    uint64_t there = artifacts_bytes(daemon, job);
    bool replaces = kept > 0 && engine_checkpoint_at(daemon->engine, job, kept - 1, &last);
    uint64_t stay = replaces && there > bytes ? there - bytes : replaces ? 0 : there;
    return storage_reserve_job(daemon, job, bytes, stay, "a checkpoint", error);
}

static cadre_status check_theirs(struct daemon *daemon, const char *worker,
    const struct checkpoint_content *content, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct sha256 *hashes = calloc(content->block_count + 1, sizeof *hashes);
    if (hashes == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory to look for contents");
    }
    for (size_t i = 0; i < content->block_count; i++) {
        memcpy(hashes[i].bytes, content->blocks[i].sha256, SHA256_BYTES);
    }
    return worker_contents_check(daemon, worker, hashes, content->block_count, error);
}

cadre_status artifacts_check_part(struct daemon *daemon, const char *worker, struct job_id job,
    const struct task_part *part, struct cadre_error *error)
{
    if (part->shared) {
        return CADRE_OK;
    }
    struct core_checkpoint checkpoint = {
        .position = part->position, .manifest_bytes = part->size_bytes};
    struct checkpoint_content content = {0};
    struct sha256 hash;
    memcpy(hash.bytes, part->sha256, SHA256_BYTES);
    memcpy(checkpoint.manifest_sha256, part->sha256, SHA256_BYTES);
    if (!file_store_has(daemon, &hash, part->size_bytes)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the manifest %s of the checkpoint of step %" PRIu64 " is not here", part->path,
            part->position);
    }
    if (worker != NULL) {
        CADRE_TRY(worker_contents_check(daemon, worker, &hash, 1, error));
    }
    CADRE_TRY(artifacts_manifest(daemon, job, &checkpoint, &content, error));
    cadre_status status = check_blocks(daemon, part, &content, error);
    if (status == CADRE_OK && worker != NULL) {
        status = check_theirs(daemon, worker, &content, error);
    }
    if (status == CADRE_OK && daemon->options.job_quota_bytes > 0) {
        status = check_quota(daemon, job, part->size_bytes + content.file_bytes, error);
    }
    checkpoint_content_free(&content);
    return status == CADRE_OK ? file_store_sync(daemon, error) : status;
}

/* ---- as files ---- */

void artifacts_each(struct daemon *daemon, struct job_id job,
    void (*visit)(void *user, const char *name, uint64_t bytes), void *user)
{
    struct core_checkpoint checkpoint;
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct checkpoint_content content = {0};
        struct cadre_error error = {0};
        if (artifacts_manifest(daemon, job, &checkpoint, &content, &error) == CADRE_OK) {
            visit(user, name_of(checkpoint.path), checkpoint.manifest_bytes);
            visit(user, content.file_name, content.file_bytes);
        } else {
            log_event(LOG_LEVEL_DEBUG, "files", "a checkpoint is not listed", LOG_U64("job", job.n),
                LOG_U64("step", checkpoint.position), LOG_STR("reason", error.text));
        }
        checkpoint_content_free(&content);
    }
}

/* The file of tensors: its blocks, or beside the manifest. */
static cadre_status find_tensors(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct checkpoint_content *content,
    struct artifact_file *ret_file, struct cadre_error *error)
{
    ret_file->bytes = content->file_bytes;
    memcpy(ret_file->sha256, content->file_sha256, LIMIT_SHA256_BYTES);
    if (!checkpoint->shared) {
        ret_file->content = *content;
        *content = (struct checkpoint_content){0};
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *manifest = path_of_manifest(daemon, job, checkpoint);
    if (manifest == NULL ||
        asprintf(&ret_file->path, "%s/%s", dirname(manifest), content->file_name) < 0) {
        ret_file->path = NULL;
        return no_memory(error);
    }
    return CADRE_OK;
}

static cadre_status find_manifest(const struct daemon *daemon, struct job_id job,
    const struct core_checkpoint *checkpoint, struct artifact_file *ret_file,
    struct cadre_error *error)
{
    ret_file->bytes = checkpoint->manifest_bytes;
    memcpy(ret_file->sha256, checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
    ret_file->path = path_of_manifest(daemon, job, checkpoint);
    return ret_file->path != NULL ? CADRE_OK : no_memory(error);
}

static cadre_status lies_elsewhere(const struct daemon *daemon, struct job_id job, const char *name,
    const struct cadre_error *why, struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s of job %" PRIu64
        " lies in the shared folder %s, which the coordinator cannot read (%s): copy it from there",
        name, job.n, spec->checkpoint_folder, why->text);
}

/* ---- references: symbolic links to "checkpoints/<name>", which lead nowhere ---- */

static cadre_status put_link(
    struct daemon *daemon, const char *name, const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *target = NULL;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    target = asprintf(&target, "%s%s", ARTIFACTS_FOLDER, name) >= 0 ? target : NULL;
    temporary =
        asprintf(&temporary, "%s/upload-%" PRIu64, daemon->blob_dir, ++daemon->upload_last) >= 0
            ? temporary
            : NULL;
    if (target == NULL || temporary == NULL) {
        return no_memory(error);
    }
    if (symlink(target, temporary) != 0) {
        return cadre_error_errno(error, errno, "the coordinator cannot make %s", temporary);
    }
    if (fault_point("artifacts.rename") || rename(temporary, path) != 0) {
        cadre_error_errno(error, errno, "the coordinator cannot make %s", path);
        unlink(temporary);
        return error->code;
    }
    return CADRE_OK;
}

static bool is_file_of(const struct core_checkpoint *checkpoint,
    const struct checkpoint_content *content, const char *name, uint64_t bytes)
{
    return (strcmp(name, name_of(checkpoint->path)) == 0 && bytes == checkpoint->manifest_bytes) ||
           (strcmp(name, content->file_name) == 0 && bytes == content->file_bytes);
}

cadre_status artifacts_refer(struct daemon *daemon, struct job_id job,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *path,
    struct cadre_error *error)
{
    struct core_checkpoint checkpoint;
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct checkpoint_content content = {0};
        if (checkpoint.shared ||
            memcmp(checkpoint.manifest_sha256, manifest_sha256, LIMIT_SHA256_BYTES) != 0) {
            continue;
        }
        CADRE_TRY(artifacts_manifest(daemon, job, &checkpoint, &content, error));
        bool found = is_file_of(&checkpoint, &content, name_of(path), bytes);
        checkpoint_content_free(&content);
        if (found) {
            return put_link(daemon, name_of(path), path, error);
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " keeps no such checkpoint with a file %s: send the bytes", job.n,
        name_of(path));
}

char *artifacts_reference(const char *path)
{
    char target[LIMIT_FILE_NAME_BYTES + sizeof ARTIFACTS_FOLDER];
    size_t folder = strlen(ARTIFACTS_FOLDER);
    ssize_t got = readlink(path, target, sizeof target);
    if (got <= (ssize_t)folder || got == (ssize_t)sizeof target ||
        memcmp(target, ARTIFACTS_FOLDER, folder) != 0) {
        return NULL;
    }
    return strndup(target + folder, (size_t)got - folder);
}

cadre_status artifacts_find(struct daemon *daemon, struct job_id job, const char *name,
    struct artifact_file *ret_file, struct cadre_error *error)
{
    struct core_checkpoint checkpoint;
    *ret_file = (struct artifact_file){0};
    for (uint32_t i = 0; engine_checkpoint_at(daemon->engine, job, i, &checkpoint); i++) {
        struct checkpoint_content content = {0};
        struct cadre_error why = {0};
        bool readable = artifacts_manifest(daemon, job, &checkpoint, &content, &why) == CADRE_OK;
        cadre_status status = CADRE_NOT_FOUND;
        if (!readable && checkpoint.shared && strcmp(name, name_of(checkpoint.path)) == 0) {
            return lies_elsewhere(daemon, job, name, &why, error);
        }
        if (readable && strcmp(name, name_of(checkpoint.path)) == 0) {
            status = find_manifest(daemon, job, &checkpoint, ret_file, error);
        } else if (readable && strcmp(name, content.file_name) == 0) {
            status = find_tensors(daemon, job, &checkpoint, &content, ret_file, error);
        }
        checkpoint_content_free(&content);
        if (status != CADRE_NOT_FOUND) {
            return status;
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " keeps no checkpoint file %s: see `cadre get %" PRIu64 " --list`", job.n,
        name, job.n);
}
