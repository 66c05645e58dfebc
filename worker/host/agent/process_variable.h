/* SPDX-License-Identifier: Apache-2.0
 * Reads a variable of another process's environment, which shows to which task a stray belongs. */
#ifndef CADRE_WORKER_AGENT_PROCESS_VARIABLE_H
#define CADRE_WORKER_AGENT_PROCESS_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The value of `name` in the environment that the process was started with; a longer one is cut.
 * False when it is not there, the process has exited, or it may not be read. */
bool process_variable(pid_t pid, const char *name, char *ret_value, size_t size);

#endif
