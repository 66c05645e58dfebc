/* SPDX-License-Identifier: Apache-2.0
 * A worker daemon of one task, made by a test: it greets as it is ordered to, and answers the task
 * by the session that holds the coordinator's core. */
#ifndef CADRE_TESTS_RUNTIME_FAKE_DAEMON_H
#define CADRE_TESTS_RUNTIME_FAKE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fake_manner {
    FAKE_PROPER,       /* answers all */
    FAKE_SILENT,       /* takes the connection, sends nothing but its preamble */
    FAKE_OTHER_FRAME,  /* a preamble of another version */
    FAKE_UNREGISTERED, /* no Cadre at all */
    FAKE_CLOSES,       /* closes before the preamble */
    FAKE_GARBAGE,      /* a proper preamble, then a frame of nonsense */
    FAKE_HUGE_FRAME,   /* a proper preamble, then a length over all limits */
    FAKE_DROPS_ONCE    /* closes its first connection after the first message, then is proper */
};

struct fake_daemon;

/* Listens at `path` and serves from a thread of its own. */
struct fake_daemon *fake_daemon_open(const char *path, enum fake_manner manner);

/* Connections it took so far. */
unsigned fake_daemon_connections(const struct fake_daemon *daemon);

/* The incarnation to give the program. */
uint64_t fake_daemon_incarnation(const struct fake_daemon *daemon);

/* Ends its thread and frees it. */
void fake_daemon_close(struct fake_daemon *daemon);

#endif
