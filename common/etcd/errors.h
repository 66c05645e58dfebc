/* SPDX-License-Identifier: Apache-2.0
 * What a failed call to etcd means: its canonical status, one sentence, and what the client does.
 * Private to common/etcd. */
#ifndef CADRE_ETCD_ERRORS_H
#define CADRE_ETCD_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* The call that failed. */
struct etcd_failure {
    const char *endpoint;
    const char *operation; /* "transaction" */
    const char *prefix;
    const char *user;   /* NULL: without a login */
    uint64_t waited_us; /* since the call began */
    bool is_change;     /* a transaction that was sent: whether it was applied matters */
};

/* What is to be done. */
struct etcd_verdict {
    struct cadre_error error;
    bool outcome_unknown;
    bool elsewhere;     /* the next endpoint may serve it */
    bool token_is_void; /* log in again */
    bool login_is_off;  /* etcd has no users: go on without a token */
    bool no_space;      /* alarm NOSPACE */
};

/* From a status of gRPC, other than OK, and the text that came with it. */
void etcd_judge(const struct etcd_failure *failure, cadre_status status, const char *text,
    struct etcd_verdict *ret_verdict);

/* For a fault that the client found itself: "etcd at ENDPOINT, OPERATION: <text>". `code` is the
 * error's. */
void etcd_blame(const struct etcd_failure *failure, struct cadre_error *error);

/* Copies a text of another machine: characters that a terminal could act on become '?'. */
void etcd_printable(const char *text, char *ret_text, size_t size);

#endif
