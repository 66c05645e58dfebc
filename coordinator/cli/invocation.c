/* SPDX-License-Identifier: Apache-2.0
 * From argv to a connected client, and from failures to sentences and exit codes: what every verb
 * calls first and last. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/terminal.h"

/* Names the manual page: "cadre submit" has that of cadre-submit. */
static void invocation_print_page(const char *program)
{
    fputs("\nManual page: man ", stdout);
    for (const char *at = program; *at != '\0'; at++) {
        putchar(*at == ' ' ? '-' : *at);
    }
    putchar('\n');
}

bool invocation_open(struct invocation *invocation, const struct cli *cli,
    const struct option_table *table, void *values, int argc, char **argv, int *ret_exit)
{
    struct cadre_error error = {0};
    *invocation = (struct invocation){
        .cli = cli, .table = table, .values = values, .argc = argc, .argv = argv};
    if (cli->ret_shape != NULL) {
        cli->ret_shape->table = table;
        *ret_exit = CLI_DONE;
        return false;
    }
    if (options_parse(table, argc, argv, values, &invocation->result, &error) != CADRE_OK) {
        *ret_exit = invocation_usage(invocation, "%s", error.text);
        return false;
    }
    if (options_answer(table, values, &invocation->result, stdout)) {
        if (invocation->result.request == OPTIONS_HELP) {
            fputs(table->notes == NULL ? "\n" : "", stdout); /* notes end with an empty line */
            exit_codes_print(cli->exit_codes, stdout);
            invocation_print_page(table->program);
        }
        *ret_exit = invocation_end(invocation, CLI_DONE);
        return false;
    }
    return true;
}

void invocation_close(struct invocation *invocation)
{
    options_free(invocation->table, invocation->values);
}

int invocation_argument_count(const struct invocation *invocation)
{
    return invocation->argc - invocation->result.first;
}

const char *invocation_argument(const struct invocation *invocation, int i)
{
    return invocation->argv[invocation->result.first + i];
}

int invocation_usage(const struct invocation *invocation, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", invocation->table->program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return CLI_USAGE;
}

int invocation_fail(const struct invocation *invocation, cadre_status status)
{
    return invocation_fail_with(invocation, status, cadre_error_message());
}

int invocation_fail_with(
    const struct invocation *invocation, cadre_status status, const char *sentence)
{
    fprintf(stderr, "%s: ", invocation->table->program);
    terminal_print(stderr, sentence);
    fputc('\n', stderr);
    switch (status) {
    case CADRE_INVALID_ARGUMENT:
        return CLI_USAGE;
    case CADRE_UNAVAILABLE:
        return CLI_NO_COORDINATOR;
    default:
        return CLI_FAILED;
    }
}

/* The option behind the verb, else the one before it; NULL: the client looks into the environment.
 */
static const char *choose_named(
    const struct invocation *invocation, size_t row, const char *before, const char *value)
{
    return invocation->result.sources[row] == OPTION_ARGV ? value : before;
}

const char *invocation_address(const struct invocation *invocation)
{
    const struct cli_common *common = invocation->values;
    const char *named =
        choose_named(invocation, 0, invocation->cli->coordinator, common->coordinator);
    return named != NULL ? named : common->coordinator;
}

cadre_status invocation_try_connect(const struct invocation *invocation,
    const cadre_client_options *options, cadre_client **ret_client)
{
    struct cli_common *common = invocation->values;
    cadre_client_options own = options != NULL ? *options : (cadre_client_options){0};
    const struct cli *cli = invocation->cli;
    own.address = invocation_address(invocation);
    own.stale_age_us = common->stale ? &common->age_us : NULL;
    own.tls_dir = choose_named(invocation, 1, cli->tls.dir, common->tls.dir);
    own.tls_cert = choose_named(invocation, 2, cli->tls.cert, common->tls.cert);
    own.tls_key = choose_named(invocation, 3, cli->tls.key, common->tls.key);
    own.tls_ca = choose_named(invocation, 4, cli->tls.ca, common->tls.ca);
    return cadre_client_connect(&own, ret_client);
}

bool invocation_connect(const struct invocation *invocation, const cadre_client_options *options,
    cadre_client **ret_client, int *ret_exit)
{
    cadre_status status = invocation_try_connect(invocation, options, ret_client);
    if (status != CADRE_OK) {
        *ret_exit = invocation_fail(invocation, status);
        return false;
    }
    return true;
}

void invocation_print_age(const struct invocation *invocation, cadre_client *client)
{
    const struct cli_common *common = invocation->values;
    if (common->age_us == UINT64_MAX) {
        fprintf(stderr,
            "%s: as of an unknown time: the coordinator at %s does not lead, and has not read the "
            "log to its end since it was started\n",
            invocation->table->program, cadre_client_address(client));
    } else if (common->age_us > 0) {
        fprintf(stderr, "%s: as of %.1f s ago: the coordinator at %s does not lead\n",
            invocation->table->program, (double)common->age_us / CADRE_US_PER_S,
            cadre_client_address(client));
    }
}

int invocation_print_status(const struct invocation *invocation, bool good)
{
    if (!good && ferror(stdout) == 0) {
        fprintf(stderr, "%s: no memory to print the answer\n", invocation->table->program);
    }
    return good ? CLI_DONE : CLI_FAILED;
}

/* Whether the reader of standard output closed the pipe. */
static bool reader_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int invocation_end(const struct invocation *invocation, int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return code;
    }
    int number = errno; /* 0: an earlier write failed */
    if (number != EPIPE && !reader_left()) {
        fprintf(stderr, "%s: cannot write to standard output%s%s\n", invocation->table->program,
            number != 0 ? ": " : ": not all of it is there", number != 0 ? strerror(number) : "");
    }
    clearerr(stdout); /* reported; an overview ends with this function once more */
    return code != CLI_DONE ? code : CLI_FAILED;
}
