/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pure/object_path.h"

#include <string.h>

#define START_BYTES      (sizeof OBJECT_PATH_START - 1)
#define BUCKET_BYTES_MIN 3
#define BUCKET_BYTES_MAX 63

bool object_path_is(const char *path)
{
    return strncmp(path, OBJECT_PATH_START, START_BYTES) == 0;
}

static bool is_outer(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

const char *object_bucket_fault(const char *bucket, size_t length)
{
    if (length == 0) {
        return "names no bucket: write s3://BUCKET/KEY";
    }
    if (length < BUCKET_BYTES_MIN || length > BUCKET_BYTES_MAX) {
        return "has a bucket whose name is not of 3 to 63 bytes";
    }
    for (size_t i = 0; i < length; i++) {
        bool two_dots = i > 0 && bucket[i] == '.' && bucket[i - 1] == '.';
        if ((!is_outer(bucket[i]) && bucket[i] != '-' && bucket[i] != '.') || two_dots) {
            return "has a bucket whose name is not of small letters, digits, \"-\" and single "
                   "\".\"";
        }
    }
    return is_outer(bucket[0]) && is_outer(bucket[length - 1])
               ? NULL
               : "has a bucket whose name does not begin and end with a small letter or a digit";
}

/* *ret_key: what follows the bucket and its slash; "": nothing. */
static const char *split(const char *path, const char **ret_key)
{
    const char *bucket = path + START_BYTES;
    size_t length = strcspn(bucket, "/");
    *ret_key = bucket[length] == '/' ? bucket + length + 1 : "";
    return object_bucket_fault(bucket, length);
}

const char *object_path_fault(const char *path)
{
    const char *key;
    const char *fault = split(path, &key);
    if (fault != NULL) {
        return fault;
    }
    if (key[0] == '\0') {
        return "has no key after its bucket: write s3://BUCKET/KEY";
    }
    return strlen(key) <= OBJECT_KEY_BYTES ? NULL : "has a key of over 1,024 bytes";
}

static bool is_web(const char *path)
{
    return strncmp(path, "https://", 8) == 0 || strncmp(path, "http://", 7) == 0;
}

bool object_url_is(const char *path)
{
    return object_path_is(path) || is_web(path);
}

size_t object_url_shown(const char *path)
{
    return is_web(path) ? strcspn(path, "?#") : strlen(path);
}

const char *object_url_fault(const char *path)
{
    if (object_path_is(path)) {
        const char *fault = object_path_fault(path);
        bool is_folder = path[strlen(path) - 1] == '/';
        return fault == NULL && is_folder ? "names a folder: an object is s3://BUCKET/KEY" : fault;
    }
    const char *host = strstr(path, "://") + 3;
    if (host[0] == '/' || host[strcspn(host, "/?#")] != '/') {
        return "names no host and path: write https://HOST/PATH";
    }
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f) {
            return "has spaces, control characters or letters beyond ASCII: encode them as %20";
        }
    }
    return NULL;
}

/* Whether it begins as "gs://", or "s3:/": with a name and ":/". */
static bool has_scheme(const char *path)
{
    bool begins = is_outer((char)(path[0] | ' ')) && (path[0] < '0' || path[0] > '9');
    size_t length = 0;
    while (is_outer((char)(path[length] | ' ')) || path[length] == '+' || path[length] == '-' ||
           path[length] == '.') {
        length++;
    }
    return begins && path[length] == ':' && path[length + 1] == '/';
}

const char *object_folder_fault(const char *path)
{
    if (is_web(path)) {
        return "is read only: an object store is s3://BUCKET/PREFIX";
    }
    if (!object_path_is(path)) {
        return has_scheme(path) ? "begins with a scheme that is not known: an object store is "
                                  "s3://BUCKET/PREFIX, a folder has no scheme"
                                : NULL;
    }
    const char *key;
    const char *fault = split(path, &key);
    if (fault != NULL) {
        return fault;
    }
    return strlen(key) <= OBJECT_KEY_BYTES - OBJECT_FOLDER_RESERVE
               ? NULL
               : "has a key of over 960 bytes, after which names of objects follow";
}
