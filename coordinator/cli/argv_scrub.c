/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/cli.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool argv_scrub_begins(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static void wipe_value(char *assignment)
{
    char *value = strchr(assignment, '=');
    if (value != NULL) {
        memset(value + 1, 0, strlen(value + 1));
    }
}

/* Arguments that may belong to the program are wiped as well: the copy has them. */
static void argv_scrub_wipe(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool next = strcmp(argv[i], "--env") == 0 || strcmp(argv[i], "-e") == 0;
        if (next && i + 1 < argc) {
            wipe_value(argv[++i]);
        } else if (argv_scrub_begins(argv[i], "--env=")) {
            wipe_value(argv[i] + strlen("--env="));
        } else if (argv_scrub_begins(argv[i], "-") && !argv_scrub_begins(argv[i], "--") &&
                   strchr(argv[i], 'e') != NULL) {
            wipe_value(argv[i]); /* -eNAME=VALUE, perhaps behind other letters */
        }
    }
}

char **argv_scrub(int argc, char **argv)
{
    char **argv_copy = calloc((size_t)argc + 1, sizeof *argv_copy);
    for (int i = 0; i < argc && argv_copy != NULL; i++) {
        argv_copy[i] = strdup(argv[i]);
        if (argv_copy[i] == NULL) {
            argv_scrub_free(argv_copy);
            argv_copy = NULL;
        }
    }
    argv_scrub_wipe(argc, argv);
    return argv_copy;
}

void argv_scrub_free(char **argv_copy)
{
    for (char **word = argv_copy; *word != NULL; word++) {
        explicit_bzero(*word, strlen(*word));
        free(*word);
    }
    free(argv_copy);
}
