/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/private_words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *word, const char *with)
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

/* Words that may belong to the program are wiped as well: the copy has them. */
static void wipe(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool next = strcmp(argv[i], "--env") == 0 || strcmp(argv[i], "-e") == 0;
        if (next && i + 1 < argc) {
            wipe_value(argv[++i]);
        } else if (begins(argv[i], "--env=")) {
            wipe_value(argv[i] + strlen("--env="));
        } else if (begins(argv[i], "-") && !begins(argv[i], "--") && strchr(argv[i], 'e') != NULL) {
            wipe_value(argv[i]); /* -eNAME=VALUE, perhaps behind other letters */
        }
    }
}

char **private_words(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    for (int i = 0; i < argc && words != NULL; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) {
            private_words_free(words);
            words = NULL;
        }
    }
    wipe(argc, argv);
    return words;
}

void private_words_free(char **words)
{
    for (char **word = words; *word != NULL; word++) {
        explicit_bzero(*word, strlen(*word));
        free(*word);
    }
    free(words);
}
