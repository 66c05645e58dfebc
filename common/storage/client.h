/* SPDX-License-Identifier: Apache-2.0
 * A client: its options, and the session with the store, which the first call for an object opens,
 * so that a program that has files alone reads no settings of stores. */
#ifndef CADRE_STORAGE_CLIENT_H
#define CADRE_STORAGE_CLIENT_H

#include <pthread.h>

#include "common/storage/path.h"
#include "common/storage/s3/session.h"
#include "common/storage/storage.h"

struct storage_client {
    struct storage_variables variables;
    bool has_variables; /* else the process's environment */
    uint64_t deadline_us;
    unsigned connections;
    bool objects_only;
    bool no_metadata;
    s3_read_bundle *read_bundle;
    void *user;
    const char *without_credentials;
    pthread_mutex_t mutex; /* of what follows */
    struct s3_session *session;
    bool stopped;
};

/* Where the path lies, and the session for it (NULL: it is a file). `client` NULL: the process's.
 * The rules of storage_locate(), and those of the client. */
cadre_status storage_client_locate(struct storage_client *client, const char *path,
    bool may_be_folder, struct storage_location *ret_location, struct s3_session **ret_session,
    struct cadre_error *error);

#endif
