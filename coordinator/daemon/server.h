/* SPDX-License-Identifier: Apache-2.0
 * The server on every --listen address, with all methods. */
#ifndef CADRE_COORDINATOR_DAEMON_SERVER_H
#define CADRE_COORDINATOR_DAEMON_SERVER_H

#include "common/base/error.h"

struct daemon;

/* Ready when it returns OK. on_call_end(daemon, path, status) on the loop when a call ends: `path`
 * is one of server_method(), or an unknown one. */
cadre_status server_open(struct daemon *daemon,
    void (*on_call_end)(void *user, const char *path, cadre_status status),
    struct cadre_error *error);

/* The paths of the methods, i from 0 until NULL. */
const char *server_method(size_t i);

#endif
