/* SPDX-License-Identifier: Apache-2.0
 * Paths: which kind they are of, and the rules of names that S3 has. Source: "Bucket naming rules"
 * and "Naming Amazon S3 objects" of Amazon's user guide. */
#include "common/storage/path.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/utf8.h"
#include "common/pure/object_path.h"

#define SHOWN_BYTES_MAX 200

static enum storage_kind kind_of(const char *path)
{
    if (object_path_is(path)) {
        return STORAGE_S3;
    }
    return object_url_is(path) ? STORAGE_WEB : STORAGE_FILE;
}

bool storage_is_object(const char *path)
{
    return kind_of(path) != STORAGE_FILE;
}

static bool is_printable(const char *text, size_t size)
{
    for (size_t length = 0; size > 0; text += length, size -= length) {
        length = utf8_printable(text, size);
        if (length == 0) {
            return false;
        }
    }
    return true;
}

static cadre_status locate_s3(const char *path, bool may_be_folder,
    struct storage_location *ret_location, struct cadre_error *error)
{
    const char *bucket = path + strlen(OBJECT_PATH_START);
    size_t length = strcspn(bucket, "/");
    const char *key = bucket[length] == '/' ? bucket + length + 1 : "";
    size_t key_bytes = strlen(key);
    if (object_bucket_fault(bucket, length) != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s: the name of a bucket has 3 to 63 lower-case letters, digits, \"-\" and \".\", "
            "as in s3://my-bucket/key",
            path);
    }
    if (key_bytes > OBJECT_KEY_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s...: a key has 1 to 1,024 bytes, this one %zu", path, key_bytes);
    }
    if (!is_printable(key, key_bytes)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "s3://%.*s/...: the key is not UTF-8, or has control characters", (int)length, bucket);
    }
    if (!may_be_folder && (key_bytes == 0 || key[key_bytes - 1] == '/')) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s names a %s; an object is s3://BUCKET/KEY", path,
            key_bytes == 0 ? "bucket" : "folder");
    }
    memcpy(ret_location->bucket, bucket, length);
    ret_location->bucket[length] = '\0';
    ret_location->key = key;
    return CADRE_OK;
}

static cadre_status locate_web(const char *path, bool may_be_folder, struct cadre_error *error)
{
    const char *host = strstr(path, "://") + 3;
    if (may_be_folder) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.*s: what is at a URL can be read only; to list and write, give s3://BUCKET/KEY, "
            "and the store in AWS_ENDPOINT_URL_S3",
            storage_shown_bytes(path), path);
    }
    if (host[strcspn(host, "/?#")] != '/' || host[0] == '/') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%.*s: expected https://HOST/PATH",
            storage_shown_bytes(path), path);
    }
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a URL has no spaces, control characters or letters beyond ASCII: encode them as "
                "%%20");
        }
    }
    return CADRE_OK;
}

cadre_status storage_locate(const char *path, bool may_be_folder,
    struct storage_location *ret_location, struct cadre_error *error)
{
    *ret_location = (struct storage_location){.kind = kind_of(path), .key = ""};
    switch (ret_location->kind) {
    case STORAGE_S3:
        return locate_s3(path, may_be_folder, ret_location, error);
    case STORAGE_WEB:
        return locate_web(path, may_be_folder, error);
    case STORAGE_FILE:
        break;
    }
    return CADRE_OK;
}

cadre_status storage_check(const char *path, struct cadre_error *error)
{
    struct storage_location location;
    return storage_locate(path, false, &location, error);
}

cadre_status storage_check_written(const char *path, struct cadre_error *error)
{
    if (kind_of(path) == STORAGE_WEB) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.*s: what is at a URL can be read only; to write, give s3://BUCKET/KEY, and the "
            "store in AWS_ENDPOINT_URL_S3",
            storage_shown_bytes(path), path);
    }
    return storage_check(path, error);
}

char *storage_join(const char *folder, const char *name)
{
    size_t folder_bytes = strlen(folder);
    while (folder_bytes > 1 && folder[folder_bytes - 1] == '/') {
        folder_bytes--;
    }
    bool has_slash = folder_bytes > 0 && folder[folder_bytes - 1] == '/'; /* "/" alone */
    size_t name_bytes = strlen(name);
    char *path = fault_point("storage.memory") ? NULL : malloc(folder_bytes + name_bytes + 2);
    if (path != NULL) {
        memcpy(path, folder, folder_bytes);
        path[folder_bytes] = '/';
        memcpy(path + folder_bytes + (has_slash ? 0 : 1), name, name_bytes + 1);
    }
    return path;
}

int storage_shown_bytes(const char *path)
{
    size_t bytes = object_url_shown(path);
    return (int)(bytes < SHOWN_BYTES_MAX ? bytes : SHOWN_BYTES_MAX);
}

char *storage_shown_path(const char *path)
{
    return fault_point("storage.memory") ? NULL : strndup(path, object_url_shown(path));
}
