/* SPDX-License-Identifier: Apache-2.0
 * Worker daemons and a coordinator for the tasks of one ps job: a socket for each slot, the
 * coordinator's core for the chief, and for the others who is where and when it is over. */
#ifndef CADRE_TESTS_PS_JOB_PS_JOB_DAEMON_H
#define CADRE_TESTS_PS_JOB_PS_JOB_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/task_message.h"

#define PS_JOB_DAEMON_TASKS_MAX 8

struct ps_job_daemon;

/* Its sockets are "<folder>/<slot>". */
struct ps_job_daemon *ps_job_daemon_open(const struct ps_job *ps_job, const char *folder);
void ps_job_daemon_close(struct ps_job_daemon *daemon);

/* The incarnation to give the program of a slot. */
uint64_t ps_job_daemon_incarnation(const struct ps_job_daemon *daemon, uint32_t slot);

/* What the evaluator reported last: of its first number, and how often. */
double ps_job_daemon_metric(struct ps_job_daemon *daemon, unsigned *ret_count);

/* Why a task that is not the chief said that it failed; "" if none did. */
void ps_job_daemon_failure(struct ps_job_daemon *daemon, char ret_text[LIMIT_TEXT_BYTES]);

#endif
