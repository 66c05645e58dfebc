/* SPDX-License-Identifier: Apache-2.0
 * To which of several coordinators a worker goes that receives nothing from its own (rule HA11). */
#ifndef CADRE_WORKER_DAEMON_LEADER_CHOICE_H
#define CADRE_WORKER_DAEMON_LEADER_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/model/term.h"

/* What a coordinator answered; zeroed: nothing, or in time nothing. */
struct leader_answer {
    bool leads; /* within its time to send */
    struct term term;
};

/* It leads in a later term than `seen`, of that cluster. */
bool leader_is_newer(const struct term *seen, const struct leader_answer *answer);

/* The one with the highest term of those that lead, in the cluster and in no older term than
 * `seen`, which is the newest that was accepted. `current` is the one that was joined: it is
 * returned when it is that one, and when none leads. */
size_t leader_choose(
    const struct term *seen, const struct leader_answer *answers, size_t count, size_t current);

#endif
