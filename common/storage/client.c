/* SPDX-License-Identifier: Apache-2.0
 * Clients of storage.h, that of the process among them. */
#include "common/storage/client.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/fault.h"

#define DEADLINE_US (60 * CADRE_US_PER_S)
#define CONNECTIONS 32

static struct storage_client process_client;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static void init_client(struct storage_client *client, const struct storage_options *options)
{
    client->has_variables = options->variables != NULL;
    if (client->has_variables) {
        client->variables = *options->variables;
    }
    client->deadline_us = options->deadline_us != 0 ? options->deadline_us : DEADLINE_US;
    client->connections = options->connections != 0 ? options->connections : CONNECTIONS;
    client->objects_only = options->objects_only;
    client->no_metadata = options->no_metadata;
    client->read_bundle = options->read_bundle;
    client->user = options->user;
    client->without_credentials = options->without_credentials;
    pthread_mutex_init(&client->mutex, NULL);
}

static void init_process_client(void)
{
    init_client(&process_client, &(struct storage_options){.variables = NULL});
}

struct storage_client *storage_client_of_process(void)
{
    pthread_once(&process_once, init_process_client);
    return &process_client;
}

cadre_status storage_client_open(const struct storage_options *options,
    struct storage_client **ret_client, struct cadre_error *error)
{
    struct storage_client *client =
        fault_point("storage.memory") ? NULL : calloc(1, sizeof *client);
    if (client == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot open a client of storage");
    }
    init_client(client, options);
    *ret_client = client;
    return CADRE_OK;
}

void storage_client_stop(struct storage_client *client)
{
    client = client != NULL ? client : storage_client_of_process();
    pthread_mutex_lock(&client->mutex);
    client->stopped = true;
    if (client->session != NULL) {
        s3_session_stop(client->session);
    }
    pthread_mutex_unlock(&client->mutex);
}

uint64_t storage_client_moved_bytes(struct storage_client *client)
{
    pthread_mutex_lock(&client->mutex);
    uint64_t bytes = client->session != NULL ? http_moved_bytes(client->session->http) : 0;
    pthread_mutex_unlock(&client->mutex);
    return bytes;
}

void storage_client_close(struct storage_client *client)
{
    if (client == NULL) {
        return;
    }
    s3_session_close(client->session);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

/* The mutex is held. */
static cadre_status open_session(struct storage_client *client, struct cadre_error *error)
{
    if (client->stopped) {
        return cadre_error_set(error, CADRE_CANCELLED, "the client of storage is being stopped");
    }
    if (client->session != NULL) {
        return CADRE_OK;
    }
    const struct s3_session_options options = {
        .variables = client->has_variables ? &client->variables : NULL,
        .connections = client->connections,
        .deadline_us = client->deadline_us,
        .no_metadata = client->no_metadata,
        .read_bundle = client->read_bundle,
        .user = client->user,
        .without_credentials = client->without_credentials};
    return s3_session_open(&options, &client->session, error);
}

cadre_status storage_client_locate(struct storage_client *client, const char *path,
    bool may_be_folder, struct storage_location *ret_location, struct s3_session **ret_session,
    struct cadre_error *error)
{
    client = client != NULL ? client : storage_client_of_process();
    *ret_session = NULL;
    CADRE_TRY(storage_locate(path, may_be_folder, ret_location, error));
    if (ret_location->kind == STORAGE_FILE && client->objects_only) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s is the path of a file; here it is to be an object, s3://BUCKET/KEY", path);
    }
    pthread_mutex_lock(&client->mutex);
    cadre_status status = CADRE_OK;
    if (ret_location->kind != STORAGE_FILE) {
        status = open_session(client, error);
    } else if (client->stopped) {
        status = cadre_error_set(error, CADRE_CANCELLED, "the client of storage is being stopped");
    }
    *ret_session = status == CADRE_OK ? client->session : NULL;
    pthread_mutex_unlock(&client->mutex);
    if (ret_location->kind == STORAGE_FILE) {
        *ret_session = NULL;
    }
    return status;
}
