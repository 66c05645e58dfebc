/* SPDX-License-Identifier: Apache-2.0
 * Which version of an object `--file s3://...` means: the one that is there when the job is
 * submitted, if that can be seen from here. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/object_path.h"
#include "common/storage/storage.h"
#include "coordinator/cli/submit.h"

#define LOOK_US (5 * CADRE_US_PER_S)

/* The value, if `item` is that variable. */
static const char *value_of(const char *item, const char *name)
{
    size_t length = strlen(name);
    return strncmp(item, name, length) == 0 && item[length] == '=' ? item + length + 1 : NULL;
}

static const char *find_own(const struct environment_list *environment, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < environment->count; i++) {
        const char *value = value_of(environment->items[i], name);
        found = value != NULL ? value : found;
    }
    return found;
}

static bool has_credentials(const struct environment_list *environment)
{
    return find_own(environment, "AWS_ACCESS_KEY_ID") != NULL;
}

/* Where workers look is in the job's environment alone; who asks may be this process. */
static const char *find(void *user, const char *name)
{
    static const char *const addresses[] = {
        "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"};
    const struct environment_list *environment = user;
    const char *found = find_own(environment, name);
    bool is_address = false;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        is_address = is_address || strcmp(name, addresses[i]) == 0;
    }
    return found != NULL || is_address || has_credentials(environment) ? found : getenv(name);
}

/* Whether workers will meet the same. */
static bool is_final(cadre_status status, const struct environment_list *environment)
{
    bool is_refused = status == CADRE_PERMISSION_DENIED || status == CADRE_UNAUTHENTICATED;
    return status == CADRE_NOT_FOUND || status == CADRE_INVALID_ARGUMENT ||
           (is_refused && has_credentials(environment));
}

/* An object of that very name comes first, as with files; there are no patterns behind it. */
static cadre_status explain(const char *path, struct cadre_error *error)
{
    struct cadre_error missing = *error;
    if (error->code != CADRE_NOT_FOUND || strcspn(path, "*?[") >= object_url_shown(path)) {
        return error->code;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s; a pattern stands for files of this machine only: give a --file for each object",
        missing.text);
}

static cadre_status look(struct storage_client *client, cadre_file *file, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    if (storage_open(client, file->path, &object, error) != CADRE_OK) {
        return explain(file->path, error);
    }
    const struct storage_info *info = storage_info_of(object);
    file->version = strdup(info->version);
    file->size_bytes = info->bytes;
    storage_close(object);
    return file->version != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a version");
}

static bool look_at_all(const struct invocation *invocation, struct storage_client *client,
    struct file_list *files, const struct environment_list *environment, int *ret_exit)
{
    struct cadre_error error = {0};
    for (size_t i = 0; i < files->count; i++) {
        cadre_file *file = &files->files[i];
        if (!object_url_is(file->path) || look(client, file, &error) == CADRE_OK) {
            continue;
        }
        if (is_final(error.code, environment)) {
            cadre_status status = cadre_error_wrap(&error, error.code, "--file");
            *ret_exit = invocation_fail_with(invocation, status, error.text);
            return false;
        }
        fprintf(stderr,
            "%s: what version %.*s has is not known here, so the bytes count that a worker fetches "
            "first: %s\n",
            invocation->table->program, (int)object_url_shown(file->path), file->path, error.text);
        if (error.code == CADRE_UNAVAILABLE || error.code == CADRE_UNAUTHENTICATED) {
            break; /* of others neither */
        }
    }
    return true;
}

bool object_versions_find(const struct invocation *invocation, struct file_list *files,
    const struct environment_list *environment, int *ret_exit)
{
    bool some = false;
    for (size_t i = 0; i < files->count; i++) {
        some = some || object_url_is(files->files[i].path);
    }
    if (!some) {
        return true;
    }
    const struct storage_variables variables = {
        .find = find, .user = (void *)(uintptr_t)environment};
    const struct storage_options options = {
        .variables = &variables, .deadline_us = LOOK_US, .objects_only = true};
    struct storage_client *client = NULL;
    struct cadre_error error = {0};
    if (storage_client_open(&options, &client, &error) != CADRE_OK) {
        *ret_exit = invocation_fail_with(invocation, error.code, error.text);
        return false;
    }
    bool good = look_at_all(invocation, client, files, environment, ret_exit);
    storage_client_close(client);
    return good;
}
