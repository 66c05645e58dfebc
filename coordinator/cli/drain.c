/* SPDX-License-Identifier: Apache-2.0
 * `cadre drain`: a worker is emptied. `cadre undrain`: it takes tasks again. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"

struct drain_values {
    struct cli_common common; /* first, as in every verb */
    char *reason;
};

/* Tasks that are still on it; false: the coordinator has no such worker any more. */
static bool tasks_left(cadre_client *client, const char *worker, uint32_t *ret_tasks)
{
    cadre_worker_list *list = NULL;
    bool found = false;
    if (cadre_client_workers(client, NULL, &list, NULL) == CADRE_OK) {
        for (size_t i = 0; i < list->count && !found; i++) {
            found = strcmp(list->workers[i].name, worker) == 0;
            *ret_tasks = list->workers[i].slots_used;
        }
    }
    cadre_result_release(list);
    return found;
}

static int cli_drain_drain(const struct invocation *invocation, cadre_client *client)
{
    const char *worker = invocation_argument(invocation, 0);
    uint32_t tasks = 0;
    const struct drain_values *values = invocation->values;
    cadre_status status = cadre_client_drain(client, worker, values->reason, NULL);
    if (status != CADRE_OK) {
        return hint_fail_worker(invocation, client, status, worker);
    }
    bool known = tasks_left(client, worker, &tasks);
    if (values->common.json) {
        return json_print(json_of_drained(worker, known ? &tasks : NULL), stdout) ? CLI_DONE
                                                                                  : CLI_FAILED;
    }
    if (!known) {
        printf("worker %s gets no new tasks\n", worker);
    } else if (tasks == 0) {
        printf("worker %s gets no new tasks and has none left\n", worker);
    } else {
        printf("worker %s gets no new tasks; its %" PRIu32
               " go elsewhere as there is room: `cadre workers` shows how many are left\n",
            worker, tasks);
    }
    return CLI_DONE;
}

static int cli_drain_undrain(const struct invocation *invocation, cadre_client *client)
{
    const char *worker = invocation_argument(invocation, 0);
    cadre_status status = cadre_client_undrain(client, worker, NULL);
    if (status != CADRE_OK) {
        return hint_fail_worker(invocation, client, status, worker);
    }
    printf("worker %s takes tasks again\n", worker);
    return CLI_DONE;
}

/* Both verbs have one argument, the worker's name, and one call. */
static int run_verb(const struct cli *cli, const struct option_table *table, void *values, int argc,
    char **argv, int (*act)(const struct invocation *invocation, cadre_client *client))
{
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, table, values, argc, argv, &code)) {
        if (invocation_argument_count(&invocation) == 0) {
            code = invocation_usage(
                &invocation, "which worker? `%s NAME`; `cadre workers` lists them", table->program);
        } else if (invocation_connect(&invocation, NULL, &client, &code)) {
            code = invocation_end(&invocation, act(&invocation, client));
        }
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}

int verb_drain(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        {OPTION_ROW(TEXT, "reason", struct drain_values, reason, "TEXT", NULL),
            .help =
                "The reason; `cadre workers` shows it with the client that drained the worker."},
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
    };
    static const struct option_table table = {.program = "cadre drain",
        .usage = "WORKER",
        .summary = "Empties a worker, for maintenance (others say cordon): it gets no new tasks, "
                   "and those that it has "
                   "leave their jobs between two steps and go to other workers, as far as there is "
                   "room. A job that cannot go on without them saves at one step, waits in the "
                   "queue, and goes on from there. "
                   "No committed step is lost, and it does not count as a failure. It holds until "
                   "`cadre undrain`, also when the worker or the coordinator is started again.",
        .notes = "  cadre drain host-b --reason 'kernel update'\n"
                 "  cadre workers                    host-b is empty at 0 of its slots\n"
                 "  cadre undrain host-b\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct drain_values values = {0};
    return run_verb(cli, &table, &values, argc, argv, cli_drain_drain);
}

int verb_undrain(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {CLI_COORDINATOR_ROW};
    static const struct option_table table = {.program = "cadre undrain",
        .usage = "WORKER",
        .summary = "Ends `cadre drain` (others say uncordon): the worker takes tasks again. It may "
                   "be away meanwhile. A worker that drains because its daemon received SIGTERM "
                   "takes tasks when the daemon is started again.",
        .notes = "  cadre undrain host-b\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct cli_common options = {0};
    return run_verb(cli, &table, &options, argc, argv, cli_drain_undrain);
}
