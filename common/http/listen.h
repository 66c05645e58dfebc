/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: the listening socket. */
#ifndef CADRE_HTTP_LISTEN_H
#define CADRE_HTTP_LISTEN_H

#include <stdbool.h>

#include "common/base/error.h"

/* `anywhere`: also addresses off loopback. */
cadre_status http_listen(const char *address, bool anywhere, int *ret_fd, int *ret_port,
    bool *ret_loopback, struct cadre_error *error);

#endif
