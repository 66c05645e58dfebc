/* SPDX-License-Identifier: Apache-2.0
 * Where data and state lie: files, and objects of an object store. One interface for both.
 *
 *   "s3://bucket/key"      an object store, by S3's API: Amazon's, Ceph's, Swift's, MinIO's, ...
 *   "https://host/path"    an object that is read alone; "http://" too, for tests
 *   all else               a file
 *
 * Calls wait, and may come from any thread; each holds one of the client's connections while it
 * lasts, and one that is large up to four, if they are free. What may pass (a connection that
 * breaks, a body that ends early, 429, 500, 503) is repeated as long as `deadline_us` of the client
 * says, after pauses that grow, with jitter; all else fails at once. A call that takes several
 * requests (8 MiB of a read, a page of a list, a part) has that time for each.
 *
 * Errors name the path, what was asked for, and what to do:
 *   NOT_FOUND            no such object, or no such bucket
 *   PERMISSION_DENIED    names the permission that is missing (s3:GetObject, s3:PutObject, ...)
 *   UNAUTHENTICATED      no credentials, wrong ones, or ones that ended and were not renewed
 *   INVALID_ARGUMENT     the path, or the store does not have what was asked for
 *   FAILED_PRECONDITION  the settings: a wrong region, a certificate of an unknown authority
 *   DATA_LOSS            an object that is not what it was when it was opened; a wrong checksum
 *   OUT_OF_RANGE         a place behind the end of the object
 *   UNAVAILABLE          the store did not answer, or not usefully, until the deadline
 *   CANCELLED            storage_client_stop()
 *   RESOURCE_EXHAUSTED   no memory, no room on the disk, a quota
 *
 * Source: the API reference of Amazon S3 (2006-03-01), and what Ceph 16 and Swift 2.30 have of it.
 */
#ifndef CADRE_COMMON_STORAGE_STORAGE_H
#define CADRE_COMMON_STORAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/storage/s3/variables.h"

#define STORAGE_PATH_BYTES    (1024 + 64 + 8)   /* the longest key, the longest bucket, "s3://" */
#define STORAGE_VERSION_BYTES 128               /* of an ETag */
#define STORAGE_UPLOAD_BYTES  1024              /* of the name of an upload */
#define STORAGE_PART_BYTES    ((size_t)8 << 20) /* of a part; all but the last have 5 MiB or more */
#define STORAGE_PARTS_MAX     10000

/* --- a client: settings, credentials, connections --- */

struct storage_client;

/* Zeroed: the defaults. */
struct storage_options {
    /* NULL: the process's environment. AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION,
     * AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_CA_BUNDLE,
     * AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE, AWS_CONTAINER_CREDENTIALS_FULL_URI (and
     * _RELATIVE_URI), AWS_EC2_METADATA_DISABLED, HOME: as Amazon's tools read them. */
    const struct storage_variables *variables;
    uint64_t deadline_us; /* of one request, with what it repeats; 0: 60 s */
    unsigned connections; /* at a time; more calls wait for one; 0: 32 */
    bool objects_only;    /* a path of a file is INVALID_ARGUMENT */
    /* Of settings and paths that another chose: a store at an address of a host's metadata services
     * is PERMISSION_DENIED. (Credentials are still looked for there, as `variables` say.) */
    bool no_metadata;
    /* How the file that AWS_CA_BUNDLE names is read, where another chose it: in the thread of the
     * first call for an object. *ret_bytes is the caller's to free(). NULL: as all files. */
    cadre_status (*read_bundle)(void *user, const char *path, char **ret_bytes, size_t *ret_size,
        struct cadre_error *error);
    void *user;
    /* Where there are no credentials: why, and what to do, instead of a program's own environment
     * and files; static. NULL: these. */
    const char *without_credentials;
};

/* The settings are read and the credentials looked for with the first call for an object, and these
 * renewed before they end. No network. On success the client is the caller's to close. */
cadre_status storage_client_open(const struct storage_options *options,
    struct storage_client **ret_client, struct cadre_error *error);
/* Calls that wait fail soon with CANCELLED, and so do those that follow. Any thread; not from a
 * signal handler. */
void storage_client_stop(struct storage_client *client);
/* Bytes of bodies that came from stores and went there, also of requests that failed: for a line
 * that says how far a long call is. Any thread. */
uint64_t storage_client_moved_bytes(struct storage_client *client);
/* NULL is allowed. No call may be in progress, and nothing of it open. Credentials are wiped. */
void storage_client_close(struct storage_client *client);

/* The one of this process, of its environment; made by the first call, never closed. Every function
 * below takes NULL for it. */
struct storage_client *storage_client_of_process(void);

/* --- paths --- */

/* Whether it names an object; else it names a file. */
bool storage_is_object(const char *path);
/* A path that can be: a bucket's name as S3 has them, a key of 1 to 1,024 bytes of UTF-8.
 * INVALID_ARGUMENT names the rule. A file's path is always OK. */
cadre_status storage_check(const char *path, struct cadre_error *error);
/* The same of what is to be written: INVALID_ARGUMENT of a URL, too, which can be read only. */
cadre_status storage_check_written(const char *path, struct cadre_error *error);
/* FOLDER/NAME, with one slash between; the caller's to free. NULL: no memory. */
char *storage_join(const char *folder, const char *name);

/* --- one object that is read --- */

struct storage_object;

struct storage_info {
    uint64_t bytes;
    int64_t modified_us;                 /* since 1970; 0: not known */
    char version[STORAGE_VERSION_BYTES]; /* the ETag; of a file its inode, size and time */
};

/* Looks the object up (HEAD). On success it is the caller's to close. A folder is INVALID_ARGUMENT.
 */
cadre_status storage_open(struct storage_client *client, const char *path,
    struct storage_object **ret_object, struct cadre_error *error);
/* Valid until the close. */
const struct storage_info *storage_info_of(const struct storage_object *object);
const char *storage_path_of(const struct storage_object *object);
/* Reads exactly `bytes` bytes at `offset` (GET with a range, and If-Match). DATA_LOSS: it is
 * another object now, or a file was cut short. Any number of threads at a time. */
cadre_status storage_read(const struct storage_object *object, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error);
/* The same to several places: `piece_bytes` to each of `pieces` in turn, which is a power of two of
 * 8 MiB at most; the last one may get fewer. */
cadre_status storage_read_pieces(const struct storage_object *object, uint64_t offset,
    void *const pieces[], size_t piece_bytes, size_t bytes, struct cadre_error *error);
/* NULL is allowed. */
void storage_close(struct storage_object *object);

/* Reads all of an object of at most `limit` bytes; a larger one is OUT_OF_RANGE. *ret_bytes is the
 * caller's to free(); a zero byte that is not counted follows. */
cadre_status storage_get(struct storage_client *client, const char *path, size_t limit,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error);

/* --- many --- */

struct storage_entry {
    const char *path; /* the whole of it, valid during the call */
    bool is_folder;   /* what several keys begin with, up to the next "/"; ends with "/" */
    struct storage_info info;
};

/* Calls `each` for what is beneath `folder` ("s3://bucket/", "s3://bucket/a/", "/data"), in order
 * of the bytes of the key where it lies in a store, in no order where it is files: page by page as
 * the store gives it, so nothing is held. `deep`: all of it, without folders; else one level.
 * `each` returns false to end the list, which is no error. A store that gives the same page again
 * is DATA_LOSS. `starts` (NULL: all): only names that begin so; there is no "/" in it. A folder
 * that does not exist has nothing beneath it. */
cadre_status storage_list(struct storage_client *client, const char *folder, const char *starts,
    bool deep, bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error);

/* --- writing --- */

/* Writes all of an object, whole or not at all, over one that is there; of files with fsync, and
 * the folders above it are made. */
cadre_status storage_put(struct storage_client *client, const char *path, const void *bytes,
    size_t size, struct cadre_error *error);
/* The same, unless it is there: *ret_was_there, and nothing is written. Of two that do this at the
 * same moment both may write where the store has no conditional writes: for contents that are named
 * after their bytes, and tokens that one process writes. */
cadre_status storage_put_if_absent(struct storage_client *client, const char *path,
    const void *bytes, size_t size, bool *ret_was_there, struct cadre_error *error);
/* OK too when there is none. */
cadre_status storage_remove(
    struct storage_client *client, const char *path, struct cadre_error *error);

/* --- a large one, in parts ---
 *
 * Parts have numbers from 1, and may be written at the same time, by several threads and by several
 * processes: one begins the upload and sends its name to the others, which join it. Nothing is seen
 * of it before it is finished. */

struct storage_upload;

/* On success the upload is the caller's to finish or abort. */
cadre_status storage_upload_begin(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error);
/* For others: text without spaces, up to STORAGE_UPLOAD_BYTES. Valid until the end of the upload.
 */
const char *storage_upload_name(const struct storage_upload *upload);
/* Takes part in one that another began: it writes parts, and then leaves. */
cadre_status storage_upload_join(struct storage_client *client, const char *path, const char *name,
    struct storage_upload **ret_upload, struct cadre_error *error);
/* Writes part `number`; again over itself. All parts but the last have `part_bytes` of the upload,
 * STORAGE_PART_BYTES or more. Any thread. */
cadre_status storage_upload_part(struct storage_upload *upload, uint32_t number, const void *bytes,
    size_t size, struct cadre_error *error);
/* All parts 1 to `count` are there, by whomever: the object is the parts in order. DATA_LOSS: one
 * is missing. Frees the upload, also on failure, after which it is aborted. */
cadre_status storage_upload_finish(
    struct storage_upload *upload, uint32_t count, struct cadre_error *error);
/* Frees it without ending it: of one that was joined. NULL is allowed. */
void storage_upload_leave(struct storage_upload *upload);
/* Ends it, as far as possible, and frees it: nothing is left of it. NULL is allowed. */
void storage_upload_abort(struct storage_upload *upload);
/* Ends all uploads to paths that begin with `start` and began before `before_us` (since 1970): of
 * writers that are dead. *ret_count of them. */
cadre_status storage_uploads_clear(struct storage_client *client, const char *start,
    int64_t before_us, uint32_t *ret_count, struct cadre_error *error);

#endif
