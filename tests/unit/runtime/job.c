/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <string.h>

#include "cadre/cadre.h"
#include "tests/lib/test.h"

static void append(char *to, size_t size, const char *bytes, size_t count)
{
    size_t used = strlen(to);
    size_t room = size - 1 - used;
    count = count < room ? count : room;
    memcpy(to + used, bytes, count);
    to[used + count] = '\0';
}

static void receive(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    struct job_end *end = user;
    (void)slot;
    (void)stream;
    append(end->printed, sizeof end->printed, (const char *)bytes, size);
}

static void changed(void *user, const struct job_info *info)
{
    struct job_end *end = user;
    if (info->message[0] != '\0') {
        append(end->messages, sizeof end->messages, info->message, strlen(info->message));
        append(end->messages, sizeof end->messages, "\n", 1);
    }
}

void job_run(const struct local_options *options, struct job_end *ret_end)
{
    const struct local_watch watch = {.output = receive, .changed = changed};
    struct cadre_error error;
    memset(ret_end, 0, sizeof *ret_end);
    ret_end->exit_code = -1;
    assert_ok(
        local_run(options, &watch, ret_end, &ret_end->exit_code, ret_end->message, &error), &error);
}

bool job_reported(const struct job_end *end, const char *part)
{
    return strstr(end->message, part) != NULL || strstr(end->printed, part) != NULL;
}

void job_run_self(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, struct job_end *ret_end)
{
    const struct local_options options = {.program = self,
        .arguments = &what,
        .argument_count = 1,
        .tasks = tasks,
        .replicas = replicas,
        .output = test_temp_dir(),
        .grace_us = 1000000};
    job_run(&options, ret_end);
}

void job_must_succeed(const char *self, const char *what, uint32_t tasks, uint32_t replicas)
{
    struct job_end end;
    job_run_self(self, what, tasks, replicas, &end);
    if (end.exit_code != 0) {
        job_wrong(what, &end);
    }
}

void job_must_fail(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, const char *part)
{
    struct job_end end;
    job_run_self(self, what, tasks, replicas, &end);
    if (end.exit_code == 0 || !job_reported(&end, part)) {
        job_wrong(what, &end);
    }
}

cadre_strategy *job_strategy(void)
{
    cadre_strategy *strategy = NULL;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    return strategy;
}
