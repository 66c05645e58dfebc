/* SPDX-License-Identifier: Apache-2.0
 * Reads manifests and finds the files of published checkpoints; part_check.c, outputs.c,
 * transmit.c, receive.c and content_references.c call it. */
#include "coordinator/daemon/contents/artifacts.h"

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
#include "common/pure/object_path.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/objects/object_cache.h"

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

cadre_status artifacts_of(struct daemon *daemon, struct job_id job, struct artifacts *ret_artifacts,
    struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    struct core_checkpoint checkpoint;
    size_t capacity = 0;
    *ret_artifacts = (struct artifacts){.job = job,
        .blob_dir = daemon->blob_dir,
        .cache = daemon->object_cache,
        .shared_folder = strdup(spec != NULL ? spec->checkpoint_folder : "")};
    while (engine_checkpoint_at(daemon->engine, job, (uint32_t)capacity, &checkpoint)) {
        capacity++;
    }
    ret_artifacts->items = calloc(capacity + 1, sizeof *ret_artifacts->items);
    if (ret_artifacts->shared_folder == NULL || ret_artifacts->items == NULL) {
        artifacts_free(ret_artifacts);
        return no_memory(error);
    }
    while (ret_artifacts->count < capacity &&
           engine_checkpoint_at(daemon->engine, job, (uint32_t)ret_artifacts->count,
               &ret_artifacts->items[ret_artifacts->count])) {
        ret_artifacts->count++;
    }
    return CADRE_OK;
}

void artifacts_free(struct artifacts *artifacts)
{
    free(artifacts->shared_folder);
    free(artifacts->items);
    *artifacts = (struct artifacts){0};
}

/* The path of a manifest in a shared folder; the caller frees it. NULL: no memory. */
static char *path_of_manifest(
    const struct artifacts *artifacts, const struct core_checkpoint *checkpoint)
{
    char *path = NULL;
    int length = asprintf(&path, "%s/%s", artifacts->shared_folder, checkpoint->path);
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
static cadre_status read_manifest(const char *path, const struct core_checkpoint *checkpoint,
    char **ret_text, size_t *ret_size, struct cadre_error *error)
{
    if (path == NULL) {
        return no_memory(error);
    }
    cadre_status status = file_read(path, LIMIT_MANIFEST_BYTES, ret_text, ret_size, error);
    if (status == CADRE_DATA_LOSS) { /* an error of the disk, which may be temporary */
        error->code = CADRE_UNAVAILABLE;
        return error->code;
    }
    CADRE_TRY(status);
    return check_manifest(path, *ret_text, *ret_size, checkpoint, error);
}

/* The same of one that is a content. A copy that is damaged is fetched again. */
static cadre_status read_content_manifest(const char *blob_dir, struct object_cache *cache,
    const struct core_checkpoint *checkpoint, char **ret_text, size_t *ret_size,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = sha256_path(blob_dir, checkpoint->manifest_sha256);
    cadre_status status = CADRE_UNAVAILABLE;
    for (unsigned i = 0; status != CADRE_OK && i < (cache != NULL ? 2 : 1); i++) {
        CADRE_CLOSE_AT_EXIT int fd = -1;
        if (i > 0) {
            object_cache_drop(cache, checkpoint->manifest_sha256);
            free(*ret_text);
            *ret_text = NULL;
        }
        if (cache != NULL) {
            CADRE_TRY(
                object_cache_read(cache, blob_dir, checkpoint->manifest_sha256, &fd, NULL, error));
        }
        status = read_manifest(path, checkpoint, ret_text, ret_size, error);
    }
    return status;
}

bool artifacts_is_stored(
    const struct artifacts *artifacts, const struct core_checkpoint *checkpoint)
{
    return checkpoint->shared && object_path_is(artifacts->shared_folder);
}

static cadre_status lie_in_store(const struct artifacts *artifacts, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the checkpoints of job %" PRIu64 " lie in the object store, at %s, for which the "
        "coordinator has no credentials: `cadre get` reads them with yours; or copy them from "
        "there",
        artifacts->job.n, artifacts->shared_folder);
}

static cadre_status read_content(const struct artifacts *artifacts,
    const struct core_checkpoint *checkpoint, struct checkpoint_content *ret_content,
    struct cadre_error *error)
{
    if (artifacts_is_stored(artifacts, checkpoint)) {
        return lie_in_store(artifacts, error);
    }
    CADRE_FREE_AT_EXIT char *path =
        checkpoint->shared ? path_of_manifest(artifacts, checkpoint) : NULL;
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    CADRE_TRY(checkpoint->shared ? read_manifest(path, checkpoint, &text, &size, error)
                                 : read_content_manifest(artifacts->blob_dir, artifacts->cache,
                                       checkpoint, &text, &size, error));
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

static cadre_status find_hashes(
    char *text, size_t size, struct artifact_references *ret, struct cadre_error *error)
{
    ret->hashes = calloc(size / SHA256_HEX_BYTES + 1, sizeof *ret->hashes);
    if (ret->hashes == NULL) {
        return no_memory(error);
    }
    char *end = text + size;
    for (char *at = memchr(text, '"', size); at != NULL && end - at > SHA256_HEX_BYTES;
         at = memchr(at, '"', (size_t)(end - at))) {
        at++;
        if (take_quoted(at, &ret->hashes[ret->count])) {
            ret->count++;
            at += SHA256_HEX_BYTES;
        }
    }
    return CADRE_OK;
}

cadre_status artifacts_read_references(const struct daemon *daemon,
    const struct core_checkpoint *checkpoint, bool with_bytes, struct artifact_references *ret,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    *ret = (struct artifact_references){0};
    CADRE_TRY(read_content_manifest(
        daemon->blob_dir, daemon->object_cache, checkpoint, &text, &size, error));
    struct checkpoint_content content = {0};
    if (with_bytes && checkpoint_content_read(text, size, &content, NULL) == CADRE_OK) {
        ret->bytes = checkpoint->manifest_bytes + content.file_bytes;
        checkpoint_content_free(&content);
    }
    return find_hashes(text, size, ret, error);
}

/* ---- a part that a task has written ---- */

/* With an object store the index says it, on the loop (part_check.c). */
static bool is_here(
    const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], uint64_t bytes)
{
    if (daemon->objects != NULL) {
        return true;
    }
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, sha256);
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && (uint64_t)status.st_size == bytes;
}

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
        if (!is_here(daemon, block->sha256, block->bytes)) {
            struct sha256 hash;
            char hex[SHA256_HEX_BYTES];
            memcpy(hash.bytes, block->sha256, SHA256_BYTES);
            sha256_hex(&hash, hex);
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "block %zu of %zu of the checkpoint of step %" PRIu64
                " is not here, or not with its %" PRIu64 " bytes: its content is %s",
                i + 1, content->block_count, part->position, block->bytes, hex);
        }
    }
    return CADRE_OK;
}

cadre_status artifacts_check_part(const struct daemon *daemon, const struct task_part *part,
    struct artifact_references *ret, struct checkpoint_content *ret_content,
    struct cadre_error *error)
{
    struct core_checkpoint checkpoint = {
        .position = part->position, .manifest_bytes = part->size_bytes};
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    memcpy(checkpoint.manifest_sha256, part->sha256, LIMIT_SHA256_BYTES);
    *ret = (struct artifact_references){0};
    *ret_content = (struct checkpoint_content){0};
    if (!is_here(daemon, part->sha256, part->size_bytes)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the manifest %s of the checkpoint of step %" PRIu64 " is not here", part->path,
            part->position);
    }
    CADRE_TRY(read_content_manifest(
        daemon->blob_dir, daemon->object_cache, &checkpoint, &text, &size, error));
    CADRE_TRY(checkpoint_content_read(text, size, ret_content, error));
    CADRE_TRY(check_blocks(daemon, part, ret_content, error));
    ret->bytes = part->size_bytes + ret_content->file_bytes;
    CADRE_TRY(daemon->objects != NULL ? CADRE_OK : contents_sync(daemon->blob_dir, error));
    return find_hashes(text, size, ret, error);
}

/* ---- as files ---- */

void artifacts_each(const struct artifacts *artifacts,
    void (*visit)(void *user, const char *name, uint64_t bytes), void *user)
{
    for (size_t i = 0; i < artifacts->count; i++) {
        const struct core_checkpoint *checkpoint = &artifacts->items[i];
        struct checkpoint_content content = {0};
        struct cadre_error error = {0};
        if (artifacts_is_stored(artifacts, checkpoint)) {
            continue;
        }
        if (read_content(artifacts, checkpoint, &content, &error) == CADRE_OK) {
            visit(user, name_of(checkpoint->path), checkpoint->manifest_bytes);
            visit(user, content.file_name, content.file_bytes);
        } else {
            log_event(LOG_LEVEL_DEBUG, "files", "a checkpoint is not listed",
                LOG_U64("job", artifacts->job.n), LOG_U64("step", checkpoint->position),
                LOG_STR("reason", error.text));
        }
        checkpoint_content_free(&content);
    }
}

/* The file of tensors: its blocks, or beside the manifest. */
static cadre_status find_tensors(const struct artifacts *artifacts,
    const struct core_checkpoint *checkpoint, struct checkpoint_content *content,
    struct artifact_file *ret_file, struct cadre_error *error)
{
    if (!content->has_file_hash) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the manifest of the checkpoint at step %" PRIu64 " has no hash of %s",
            checkpoint->position, content->file_name);
    }
    ret_file->bytes = content->file_bytes;
    memcpy(ret_file->sha256, content->file_sha256, LIMIT_SHA256_BYTES);
    if (!checkpoint->shared) {
        ret_file->content = *content;
        *content = (struct checkpoint_content){0};
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *manifest = path_of_manifest(artifacts, checkpoint);
    if (manifest == NULL ||
        asprintf(&ret_file->path, "%s/%s", dirname(manifest), content->file_name) < 0) {
        ret_file->path = NULL;
        return no_memory(error);
    }
    return CADRE_OK;
}

static cadre_status find_manifest(const struct artifacts *artifacts,
    const struct core_checkpoint *checkpoint, struct artifact_file *ret_file,
    struct cadre_error *error)
{
    ret_file->bytes = checkpoint->manifest_bytes;
    memcpy(ret_file->sha256, checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
    ret_file->is_content = !checkpoint->shared;
    ret_file->path = checkpoint->shared
                         ? path_of_manifest(artifacts, checkpoint)
                         : sha256_path(artifacts->blob_dir, checkpoint->manifest_sha256);
    return ret_file->path != NULL ? CADRE_OK : no_memory(error);
}

static cadre_status lies_elsewhere(const struct artifacts *artifacts, const char *name,
    const struct cadre_error *why, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s of job %" PRIu64
        " lies in the shared folder %s, which the coordinator cannot read (%s): copy it from there",
        name, artifacts->job.n, artifacts->shared_folder, why->text);
}

/* ---- references: symbolic links to "checkpoints/<name>", which lead nowhere ---- */

cadre_status artifacts_put_link(
    const char *name, const char *temporary, const char *path, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *target = NULL;
    if (asprintf(&target, "%s%s", ARTIFACTS_FOLDER, name) < 0) {
        target = NULL;
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

cadre_status artifacts_check_link(const struct artifacts *artifacts,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *path,
    struct cadre_error *error)
{
    for (size_t i = 0; i < artifacts->count; i++) {
        const struct core_checkpoint *checkpoint = &artifacts->items[i];
        struct checkpoint_content content = {0};
        if (checkpoint->shared ||
            memcmp(checkpoint->manifest_sha256, manifest_sha256, LIMIT_SHA256_BYTES) != 0) {
            continue;
        }
        CADRE_TRY(read_content(artifacts, checkpoint, &content, error));
        bool found = is_file_of(checkpoint, &content, name_of(path), bytes);
        checkpoint_content_free(&content);
        if (found) {
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " keeps no such checkpoint with a file %s: send the bytes", artifacts->job.n,
        name_of(path));
}

cadre_status artifacts_link(const struct artifacts *artifacts,
    const uint8_t manifest_sha256[LIMIT_SHA256_BYTES], uint64_t bytes, const char *temporary,
    const char *path, struct cadre_error *error)
{
    CADRE_TRY(artifacts_check_link(artifacts, manifest_sha256, bytes, path, error));
    return artifacts_put_link(name_of(path), temporary, path, error);
}

char *artifacts_link_target(const char *path)
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

cadre_status artifacts_none(
    const struct artifacts *artifacts, const char *name, struct cadre_error *error)
{
    size_t count = artifacts->count;
    if (count > 0 && artifacts_is_stored(artifacts, &artifacts->items[count - 1])) {
        return lie_in_store(artifacts, error);
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " keeps no checkpoint file %s: see `cadre get %" PRIu64 " --list`",
        artifacts->job.n, name, artifacts->job.n);
}

cadre_status artifacts_find(const struct artifacts *artifacts, const char *name,
    struct artifact_file *ret_file, struct cadre_error *error)
{
    *ret_file = (struct artifact_file){0};
    for (size_t i = 0; i < artifacts->count; i++) {
        const struct core_checkpoint *checkpoint = &artifacts->items[i];
        struct checkpoint_content content = {0};
        struct cadre_error why = {0};
        if (artifacts_is_stored(artifacts, checkpoint)) {
            continue;
        }
        bool readable = read_content(artifacts, checkpoint, &content, &why) == CADRE_OK;
        bool is_manifest = strcmp(name, name_of(checkpoint->path)) == 0;
        cadre_status status = CADRE_NOT_FOUND;
        if (!readable && checkpoint->shared && is_manifest) {
            return lies_elsewhere(artifacts, name, &why, error);
        }
        if (readable && is_manifest) {
            status = find_manifest(artifacts, checkpoint, ret_file, error);
        } else if (readable && strcmp(name, content.file_name) == 0) {
            status = find_tensors(artifacts, checkpoint, &content, ret_file, error);
        }
        checkpoint_content_free(&content);
        if (status != CADRE_NOT_FOUND) {
            return status;
        }
    }
    return artifacts_none(artifacts, name, error);
}
