/* SPDX-License-Identifier: Apache-2.0
 * The outputs that this coordinator put into the object store last, because a list of the store may
 * lack them for a while. Any thread; NULL is allowed for a coordinator without a store. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_RECENT_OUTPUTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_RECENT_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"

#define RECENT_OUTPUTS_MAX 4096 /* of all jobs; the one that was put first goes */

struct recent_outputs;

/* NULL: no memory. */
struct recent_outputs *recent_outputs_open(void);
void recent_outputs_close(struct recent_outputs *recent);

/* `name` is copied; without memory the list of the store has to do. */
void recent_outputs_note(struct recent_outputs *recent, struct job_id job, const char *name,
    uint64_t bytes, bool is_reference);

/* Calls `visit` for each of the job; it calls none of these functions. */
void recent_outputs_each(struct recent_outputs *recent, struct job_id job,
    void (*visit)(void *user, const char *name, uint64_t bytes, bool is_reference), void *user);

#endif
