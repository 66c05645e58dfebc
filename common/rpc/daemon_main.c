/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/daemon_main.h"

#include <signal.h>
#include <stdio.h>

#include "common/base/completion.h"
#include "common/base/files.h"
#include "common/base/manual.h"
#include "common/rpc/io_hooks.h"
#include "common/rpc/loop.h"

static void log_of_grpc(enum rpc_log_level level, const char *message)
{
    (void)level;
    log_event(LOG_LEVEL_DEBUG, "grpc", message, LOG_END);
}

int daemon_main(const struct option_table *table, int argc, char **argv, void *values,
    const struct log_options *log, int (*run)(void *user), void *user)
{
    struct option_result result;
    struct cadre_error error = {0};
    int status = 0;
    standard_streams_reserve();
    if (completion_answer(table, argc, argv, stdout) || manual_answer(table, argc, argv, stdout)) {
        return 0;
    }
    if (options_parse(table, argc, argv, values, &result, &error) != CADRE_OK) {
        fprintf(stderr, "%s: %s\n", table->program, error.text);
        status = 2;
    } else if (!options_answer(table, values, &result, stdout)) {
        log_open(log);
        rpc_tune_malloc();
        rpc_tune_log(log_of_grpc);
        rpc_accept_reserve_fd();
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE fails like one on a full disk */
        status = run(user);
    }
    options_free(table, values);
    return status;
}
