/* SPDX-License-Identifier: Apache-2.0
 * Actions of the two cores as lines of text, so that a test states what is decided as a transcript.
 */
#ifndef CADRE_TESTS_WORKER_CORE_TRANSCRIPT_H
#define CADRE_TESTS_WORKER_CORE_TRANSCRIPT_H

#include "worker/core/agent_core.h"
#include "worker/core/task_core.h"

#define TRANSCRIPT_BYTES 8192

struct transcript {
    char text[TRANSCRIPT_BYTES];
    size_t used;
};

/* One line for each action. */
void transcript_task(struct transcript *transcript, const struct task_actions *actions);
void transcript_agent(struct transcript *transcript, const struct agent_actions *actions);

#endif
