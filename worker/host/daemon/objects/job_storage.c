/* SPDX-License-Identifier: Apache-2.0
 * A job's own credentials for object stores; restore.c checks with them what the job's tasks read.
 */
#include "worker/host/daemon/objects/job_storage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/pure/assert.h"

/* Those that count. The others, AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, HOME and more, lead to
 * files of the host. */
#define ADDRESSES 5 /* the first ones: where the store is */
static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "AWS_EC2_METADATA_DISABLED", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};

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

/* Of a certificate authority; what is no regular file would not end. */
static bool is_regular(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The last one counts, as in a task's environment. */
static const char *find(void *user, const char *name)
{
    const struct job_storage *storage = user;
    const char *found = NULL;
    for (size_t i = 0; i < storage->count; i++) {
        const char *value = value_of(storage->variables[i], name);
        found = value != NULL ? value : found;
    }
    bool is_file = strcmp(name, "AWS_CA_BUNDLE") == 0;
    return found == NULL || (is_file && !is_regular(found)) ? NULL : found;
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

cadre_status job_storage_open(
    struct job_storage *storage, const struct job_spec *spec, struct cadre_error *error)
{
    *storage = (struct job_storage){.source = {.find = find, .user = storage}};
    const struct storage_options options = {.variables = &storage->source, .objects_only = true};
    cadre_status status = copy_variables(storage, spec, error);
    if (status == CADRE_OK) {
        status = storage_client_open(&options, &storage->client, error);
    }
    if (status != CADRE_OK) {
        job_storage_close(storage);
    }
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
