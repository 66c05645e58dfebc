/* SPDX-License-Identifier: Apache-2.0
 * Which content of the cache an object of a store was when it was fetched here. Where the
 * store is counts, because another one may have an object of the same name and ETag. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/host/daemon/objects/object_index.h"

#define PREFIX "object-"

/* A weak one ("W/...") may be of other bytes, too. */
static bool is_strong(const char *version)
{
    return version[0] == '"';
}

static cadre_status hash_object(const struct job_storage *storage, const char *url,
    const struct storage_info *info, struct sha256_stream *stream, struct cadre_error *error)
{
    CADRE_TRY(job_storage_hash_address(storage, stream, error));
    CADRE_TRY(sha256_add(stream, url, strlen(url) + 1, error));
    CADRE_TRY(sha256_add(stream, info->version, strlen(info->version) + 1, error));
    return sha256_add(stream, &info->bytes, sizeof info->bytes, error);
}

cadre_status object_index_path(const char *blob_dir, const struct job_storage *storage,
    const char *url, const struct storage_info *info, char **ret_path, struct cadre_error *error)
{
    struct sha256_stream *stream = NULL;
    struct sha256 hash;
    char name[SHA256_HEX_BYTES];
    *ret_path = NULL;
    if (!is_strong(info->version)) {
        return CADRE_OK;
    }
    CADRE_TRY(sha256_open(&stream, error));
    cadre_status status = hash_object(storage, url, info, stream, error);
    status = status == CADRE_OK ? sha256_finish(stream, &hash, error) : status;
    sha256_close(stream);
    CADRE_TRY(status);
    sha256_hex(&hash, name);
    if (asprintf(ret_path, "%s/" PREFIX "%s", blob_dir, name) < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    return CADRE_OK;
}

/* The content that the entry names. */
static bool read_entry(const char *path, struct sha256 *ret_hash)
{
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    return file_read(path, SHA256_HEX_BYTES, &text, &size, NULL) == CADRE_OK &&
           sha256_parse(text, ret_hash);
}

bool object_index_find(
    const char *path, const char *blob_dir, uint64_t size_bytes, uint8_t ret_sha256[SHA256_BYTES])
{
    struct sha256 hash;
    struct stat status;
    if (!read_entry(path, &hash)) {
        return false;
    }
    CADRE_FREE_AT_EXIT char *content = sha256_path(blob_dir, hash.bytes);
    bool found =
        content != NULL && stat(content, &status) == 0 && (uint64_t)status.st_size == size_bytes;
    if (found) {
        memcpy(ret_sha256, hash.bytes, SHA256_BYTES);
    }
    return found;
}

void object_index_keep(const char *path, const uint8_t sha256[SHA256_BYTES])
{
    struct sha256 hash;
    char text[SHA256_HEX_BYTES];
    memcpy(hash.bytes, sha256, sizeof hash.bytes);
    sha256_hex(&hash, text);
    (void)file_write_atomic(path, text, strlen(text), 0600, NULL);
}

static bool is_of_content(const char *blob_dir, int folder, const char *name)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    struct sha256 hash;
    char content[SHA256_HEX_BYTES];
    if (asprintf(&path, "%s/%s", blob_dir, name) < 0) {
        path = NULL;
        return true; /* it is not known */
    }
    if (!read_entry(path, &hash)) {
        return false;
    }
    sha256_hex(&hash, content);
    return faccessat(folder, content, F_OK, 0) == 0;
}

void object_index_clear(const char *blob_dir)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(blob_dir);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
            !is_of_content(blob_dir, dirfd(folder), entry->d_name)) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
}
