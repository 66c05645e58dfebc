/* SPDX-License-Identifier: Apache-2.0
 * `cadre coordinators`: those of the cluster, and which one leads. */
#include "cadre/client_coordinators.h"
#include "common/base/clock.h"
#include "common/json/json.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render_coordinators.h"

static int cli_coordinators_list(const struct invocation *invocation, cadre_client *client)
{
    const struct cli_common *common = invocation->values;
    const struct text_style text_style = terminal_style_of(stdout);
    cadre_coordinator_list *list = NULL;
    cadre_status status = cadre_client_coordinators(client, &list, NULL);
    if (status != CADRE_OK) {
        return invocation_fail(invocation, status);
    }
    bool good = common->json ? json_print(json_of_coordinators(list), stdout)
                             : render_coordinators(list, clock_wall_us(), &text_style, stdout);
    cadre_result_release(list);
    return invocation_print_status(invocation, good);
}

int verb_coordinators(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
    };
    static const struct option_table table = {.program = "cadre coordinators",
        .usage = "",
        .summary = "Lists the coordinators of the cluster, with the one that leads. A "
                   "coordinator that shares its ledger with no other is the only one.",
        .notes =
            "FOR is how long the one that leads has led. BEHIND is how many entries of the\n"
            "shared log are missing in a coordinator's copy of the ledger. UPDATED is how old a\n"
            "line is: the coordinator that answers reads those of the others in etcd.\n"
            "STATE is \"away\" of one that has written nothing to etcd for a while; \"unknown\" "
            "of\n"
            "the others while the one that answers cannot read etcd; \"refused\" of one that "
            "takes\n"
            "no part until an operator has looked; \"suspended\" of one that led when etcd "
            "stopped\n"
            "answering.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0]};
    struct cli_common options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = invocation_end(&invocation, cli_coordinators_list(&invocation, client));
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
