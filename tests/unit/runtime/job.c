/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <string.h>

#include "cadre/cadre.h"
#include "tests/lib/test.h"
#include "worker/local/local.h"

struct said {
    char text[16384];
    size_t used;
};

static void hear(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    struct said *said = user;
    (void)slot;
    (void)stream;
    size_t room = sizeof said->text - 1 - said->used;
    size = size < room ? size : room;
    memcpy(said->text + said->used, bytes, size);
    said->used += size;
}

static void changed(void *user, const struct job_info *info)
{
    (void)user;
    (void)info;
}

static int run_job(const char *self, const char *what, uint32_t tasks, uint32_t replicas,
    struct said *said, char message[LIMIT_TEXT_BYTES])
{
    const char *arguments[] = {what};
    const struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 1,
        .tasks = tasks,
        .replicas = replicas,
        .output = test_temp_dir(),
        .grace_us = 1000000};
    const struct local_watch watch = {.output = hear, .changed = changed};
    struct cadre_error error;
    int exit_code = -1;
    memset(said, 0, sizeof *said);
    assert_ok(local_run(&options, &watch, said, &exit_code, message, &error), &error);
    return exit_code;
}

void job_must_succeed(const char *self, const char *what, uint32_t tasks, uint32_t replicas)
{
    struct said said;
    char message[LIMIT_TEXT_BYTES];
    int exit_code = run_job(self, what, tasks, replicas, &said, message);
    if (exit_code != 0) {
        fail_msg("%s: exit code %d, message: %s\nthe tasks said:\n%s", what, exit_code, message,
            said.text);
    }
}

void job_must_fail(
    const char *self, const char *what, uint32_t tasks, uint32_t replicas, const char *part)
{
    struct said said;
    char message[LIMIT_TEXT_BYTES];
    int exit_code = run_job(self, what, tasks, replicas, &said, message);
    bool told = strstr(message, part) != NULL || strstr(said.text, part) != NULL;
    if (exit_code == 0 || !told) {
        fail_msg("%s: exit code %d, message: %s\nthe tasks said:\n%s", what, exit_code, message,
            said.text);
    }
}

cadre_strategy *job_strategy(void)
{
    cadre_strategy *strategy = NULL;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    return strategy;
}
