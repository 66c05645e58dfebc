/* SPDX-License-Identifier: Apache-2.0
 * Finds the verb in a command line that is not complete yet; its words are completed by
 * coordinator/cli. */
#include "deploy/cadre/complete.h"

#include <stdio.h>
#include <string.h>

#include "common/base/completion.h"

struct verb_shape verb_shape_of(const struct verb *verb)
{
    struct verb_shape shape = {0};
    const struct cli asked = {.ret_shape = &shape};
    char name[32];
    char *argv[] = {name, NULL};
    snprintf(name, sizeof name, "%s", verb->name);
    (void)verb->run(&asked, 1, argv);
    return shape;
}

static const struct verb *find_named(const struct verb *verbs, const char *name)
{
    while (verbs->name != NULL && strcmp(verbs->name, name) != 0) {
        verbs++;
    }
    return verbs->name != NULL ? verbs : NULL;
}

static void offer_verbs(const struct verb *verbs, const struct completion *completion)
{
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        completion_offer(completion, verb->name, verb->summary, stdout);
    }
}

/* The words from a verb's name on. */
static void complete_verb(
    const struct cli *cli, const struct verb *verbs, int count, char *const *arguments)
{
    const struct verb *verb = count > 1 ? find_named(verbs, arguments[0]) : NULL;
    const struct verb_shape shape = verb != NULL ? verb_shape_of(verb) : (struct verb_shape){0};
    const struct completion typed = {.typed = arguments[count - 1]};
    if (count == 1) {
        offer_verbs(verbs, &typed);
    } else if (shape.verbs != NULL) {
        complete_verb(cli, shape.verbs, count - 1, arguments + 1);
        return;
    } else if (shape.table != NULL) {
        complete_arguments(cli, shape.table, count - 1, arguments + 1, stdout);
        return;
    }
    fputs(":none\n", stdout);
}

int complete(const struct verb *verbs, const struct option_table *table, int argc, char **argv)
{
    struct completion completion;
    char *const *arguments = argv + 2;
    int count = argc - 2;
    if (count < 1 || count > COMPLETION_ARGUMENTS_MAX || strcmp(argv[1], "--") != 0) {
        return CLI_DONE;
    }
    completion_find(table, count, arguments, &completion);
    int first = completion.positional_count > 0 ? completion.positionals[0] : count - 1;
    bool helped = completion.at == COMPLETION_FOREIGN && strcmp(arguments[first], "help") == 0;
    if (completion.at == COMPLETION_OPTION || completion.at == COMPLETION_VALUE) {
        completion_print(&completion, stdout);
        return CLI_DONE;
    }
    const struct cli cli = {.coordinator = completion.values[0],
        .tls = {.dir = (char *)completion.values[1],
            .cert = (char *)completion.values[2],
            .key = (char *)completion.values[3],
            .ca = (char *)completion.values[4]}};
    if (completion.at == COMPLETION_POSITIONAL) {
        completion_offer(&completion, "help", "show the help of a verb", stdout);
    }
    first += helped && count - first > 1 ? 1 : 0;
    complete_verb(&cli, verbs, helped && count - first > 1 ? 1 : count - first, arguments + first);
    return CLI_DONE;
}
