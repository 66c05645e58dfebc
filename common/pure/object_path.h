/* SPDX-License-Identifier: Apache-2.0
 * The form of "s3://bucket/key": what can be the name of an object, for those that check a path
 * and do not open it (messages, options); and of URLs whose objects are read alone. */
#ifndef CADRE_PURE_OBJECT_PATH_H
#define CADRE_PURE_OBJECT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define OBJECT_PATH_START     "s3://"
#define OBJECT_KEY_BYTES      1024 /* of the longest key */
#define OBJECT_FOLDER_RESERVE 64   /* of a key: for the names in a folder */

/* Whether it names something in an object store: it begins with "s3://". */
bool object_path_is(const char *path);

/* What is wrong with `length` bytes as the name of a bucket, as the end of a sentence about a path;
 * NULL: nothing. */
const char *object_bucket_fault(const char *bucket, size_t length);

/* Of a path that begins so; bucket and key are to be there. NULL: it can be an object's, else what
 * is wrong with it, as the end of a sentence ("has no key ..."). UTF-8 is not looked at. */
const char *object_path_fault(const char *path);

/* Whether it names an object of a store or one at a URL: it begins with "s3://", "https://", or,
 * for tests, "http://". */
bool object_url_is(const char *path);

/* Of such a one, which is to be read. NULL: it can be; else what is wrong with it, as above. */
const char *object_url_fault(const char *path);

/* The length of what may be shown: all of it but what follows a "?" or "#" in a URL, which may be a
 * signature. */
size_t object_url_shown(const char *path);

/* As object_path_fault, of a folder that is written to: one of files, or what the names of objects
 * begin with, "s3://bucket/key". The key may be missing, and is OBJECT_FOLDER_RESERVE bytes shorter
 * than the longest. A URL, and another scheme ("gs://", "S3://", "s3:/"), is a fault: as a folder
 * of files it would lie in the working folder under that name. */
const char *object_folder_fault(const char *path);

#endif
