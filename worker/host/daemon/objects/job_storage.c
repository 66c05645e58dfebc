/* SPDX-License-Identifier: Apache-2.0
 * A job's own credentials for object stores; restore.c checks with them what the job's tasks read.
 */
#include "worker/host/daemon/objects/job_storage.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/pure/assert.h"
#include "worker/host/isolate/user_file.h"

#define BUNDLE_BYTES      ((size_t)4 << 20) /* all of the system's authorities have 0.2 MiB */
#define METADATA_DISABLED "AWS_EC2_METADATA_DISABLED"

/* Those of a job that count. The others, AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, HOME and more,
 * lead to files of the host, and AWS_CONTAINER_CREDENTIALS_FULL_URI and its kin to whatever answers
 * this daemon. */
#define ENDPOINTS 2 /* the first ones: the store's URL */
#define ADDRESSES 5 /* and with the next ones: where the store is */
static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", METADATA_DISABLED};

/* Where this daemon's own environment says that the host's credentials are. */
static const char *const host_names[] = {"AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    METADATA_DISABLED};

#define WITHOUT_KEYS "the job's environment has no AWS_ACCESS_KEY_ID, "
#define GIVE_KEYS    "give the job its keys (--env AWS_ACCESS_KEY_ID --env AWS_SECRET_ACCESS_KEY)"

/* What is said where there are none, without the host's and with them. */
static const char no_keys[] = WITHOUT_KEYS "and its worker's daemon uses no others: " GIVE_KEYS
                                           ", or have the worker started with --host-credentials";
static const char no_keys_of_host[] = WITHOUT_KEYS "and its worker's host gives none: " GIVE_KEYS;

static bool host_credentials;

void job_storage_use_host_credentials(bool use)
{
    host_credentials = use;
}

/* The value, if `item` is that variable. */
static const char *value_of(const char *item, const char *name)
{
    size_t length = strlen(name);
    return strncmp(item, name, length) == 0 && item[length] == '=' ? item + length + 1 : NULL;
}

static bool counts(const char *item)
{
    bool found = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(names); i++) {
        found = found || value_of(item, names[i]) != NULL;
    }
    return found;
}

static const char *find_of_host(const char *name)
{
    bool is_of_host = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(host_names); i++) {
        is_of_host = is_of_host || strcmp(name, host_names[i]) == 0;
    }
    if (host_credentials) {
        return is_of_host ? getenv(name) : NULL;
    }
    return strcmp(name, METADATA_DISABLED) == 0 ? "true" : NULL;
}

/* The last one counts, as in a task's environment. */
static const char *find_of_job(const struct job_storage *storage, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < storage->count; i++) {
        const char *value = value_of(storage->variables[i], name);
        found = value != NULL ? value : found;
    }
    return found;
}

static bool is_set(const char *value)
{
    return value != NULL && value[0] != '\0';
}

/* It has no keys, and gets those of the host. */
static bool uses_host(const struct job_storage *storage)
{
    return host_credentials && !(is_set(find_of_job(storage, "AWS_ACCESS_KEY_ID")) &&
                                   is_set(find_of_job(storage, "AWS_SECRET_ACCESS_KEY")));
}

static bool is_endpoint(const char *name)
{
    return strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0;
}

/* Of what both may set, METADATA_DISABLED, either is enough. */
static const char *find(void *user, const char *name)
{
    if (is_endpoint(name) && uses_host(user)) {
        return getenv(name);
    }
    const char *of_host = find_of_host(name);
    const char *of_job = find_of_job(user, name);
    bool disabled = of_host != NULL && strcasecmp(of_host, "true") == 0;
    return of_job != NULL && !disabled ? of_job : of_host;
}

static cadre_status copy_variables(
    struct job_storage *storage, const struct job_spec *spec, struct cadre_error *error)
{
    storage->variables = calloc(spec->environment_count + 1, sizeof *storage->variables);
    bool whole = storage->variables != NULL;
    for (size_t i = 0; whole && i < spec->environment_count; i++) {
        if (counts(spec->environment[i])) {
            storage->variables[storage->count] = strdup(spec->environment[i]);
            whole = storage->variables[storage->count] != NULL;
            storage->count += whole ? 1 : 0;
        }
    }
    return whole ? CADRE_OK
                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                       "the worker has no memory for the job's settings of object stores");
}

/* What is signed with the host's keys, and their session token, is sent to no store that the job
 * names. */
static cadre_status check_endpoint(const struct job_storage *storage, struct cadre_error *error)
{
    const char *of_job = NULL;
    const char *of_host = NULL;
    for (size_t i = 0; i < ENDPOINTS; i++) {
        const char *job_value = find_of_job(storage, names[i]);
        const char *host_value = getenv(names[i]);
        of_job = of_job == NULL && is_set(job_value) ? job_value : of_job;
        of_host = of_host == NULL && is_set(host_value) ? host_value : of_host;
    }
    bool same = of_job == NULL || (of_host != NULL && strcmp(of_job, of_host) == 0);
    return same || !uses_host(storage)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_PERMISSION_DENIED,
                     "the job names the object store %.200s, and the host's credentials are sent "
                     "to the one of its worker alone (%.200s): " GIVE_KEYS
                     ", or have the worker started with AWS_ENDPOINT_URL=%.200s",
                     of_job, of_host != NULL ? of_host : "Amazon's", of_job);
}

static cadre_status read_bundle(
    void *user, const char *path, char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    const struct job_storage *storage = user;
    if (path[0] != '/') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "AWS_CA_BUNDLE is %.200s: for what a worker reads and writes it is to be an absolute "
            "path, of a file on the worker's host",
            path);
    }
    cadre_status status =
        user_file_read(&storage->user, path, BUNDLE_BYTES, ret_bytes, ret_size, error);
    return status == CADRE_OK || status == CADRE_RESOURCE_EXHAUSTED
               ? status
               : cadre_error_wrap(error, CADRE_FAILED_PRECONDITION,
                     "AWS_CA_BUNDLE is to name a file of certificates on the worker's host");
}

cadre_status job_storage_open(struct job_storage *storage, const struct job_spec *spec,
    const struct isolation_user *user, struct cadre_error *error)
{
    *storage = (struct job_storage){.source = {.find = find, .user = storage}, .user = *user};
    const struct storage_options options = {.variables = &storage->source,
        .objects_only = true,
        .no_metadata = true,
        .without_credentials = host_credentials ? no_keys_of_host : no_keys,
        .read_bundle = read_bundle,
        .user = storage};
    cadre_status status = copy_variables(storage, spec, error);
    if (status == CADRE_OK) {
        status = check_endpoint(storage, error);
    }
    if (status == CADRE_OK) {
        status = storage_client_open(&options, &storage->client, error);
    }
    if (status != CADRE_OK) {
        job_storage_close(storage);
    }
    return status;
}

/* The last one counts, as in a task's environment. */
static const char *value_in(const struct job_spec *spec, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < spec->environment_count; i++) {
        const char *value = value_of(spec->environment[i], name);
        found = value != NULL && value[0] != '\0' ? value : found;
    }
    return found;
}

cadre_status job_storage_identity(const struct job_spec *spec, const char *otherwise,
    struct sha256 *ret_hash, struct cadre_error *error)
{
    struct sha256_stream *stream = NULL;
    bool has_keys = value_in(spec, "AWS_ACCESS_KEY_ID") != NULL &&
                    value_in(spec, "AWS_SECRET_ACCESS_KEY") != NULL;
    CADRE_TRY(sha256_open(&stream, error));
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < CADRE_COUNT_OF(names) && status == CADRE_OK; i++) {
        const char *value = value_in(spec, names[i]);
        value = value != NULL ? value : ""; /* each with its zero byte */
        status = sha256_add(stream, value, strlen(value) + 1, error);
    }
    if (status == CADRE_OK && !has_keys) {
        status = sha256_add(stream, otherwise, strlen(otherwise) + 1, error);
    }
    status = status == CADRE_OK ? sha256_finish(stream, ret_hash, error) : status;
    sha256_close(stream);
    return status;
}

cadre_status job_storage_hash_address(
    const struct job_storage *storage, struct sha256_stream *hash, struct cadre_error *error)
{
    for (size_t i = 0; i < ADDRESSES; i++) {
        const char *value = storage->source.find(storage->source.user, names[i]);
        value = value != NULL ? value : "";
        CADRE_TRY(sha256_add(hash, value, strlen(value) + 1, error));
    }
    return CADRE_OK;
}

void job_storage_stop(struct job_storage *storage)
{
    if (storage->client != NULL) {
        storage_client_stop(storage->client);
    }
}

void job_storage_close(struct job_storage *storage)
{
    storage_client_close(storage->client);
    for (size_t i = 0; i < storage->count; i++) {
        explicit_bzero(storage->variables[i], strlen(storage->variables[i]));
        free(storage->variables[i]);
    }
    free(storage->variables);
    *storage = (struct job_storage){0};
}
