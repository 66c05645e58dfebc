/* SPDX-License-Identifier: Apache-2.0
 * Merges --env and --env-file into one list of variables; used by submit_options.c and
 * deploy/cadre/run.c. */
#include "coordinator/cli/job_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/model/limits.h"

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* Wipes and frees the item: it may be a secret. */
static void environment_options_forget(char *item)
{
    explicit_bzero(item, strlen(item));
    free(item);
}

void environment_list_free(struct environment_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        environment_options_forget(list->items[i]);
    }
    free(list->items);
    *list = (struct environment_list){0};
}

static bool no_memory(const struct invocation *invocation, int *ret_exit)
{
    fprintf(stderr, "%s: no memory\n", invocation->table->program);
    *ret_exit = CLI_FAILED;
    return false;
}

/* Where `name` is in the list, or its end. */
static size_t environment_options_find(
    const struct environment_list *list, const char *name, size_t length)
{
    size_t at = 0;
    while (at < list->count &&
           (strncmp(list->items[at], name, length) != 0 || list->items[at][length] != '=')) {
        at++;
    }
    return at;
}

/* Takes over `item`. */
static bool environment_options_put(struct environment_list *list, char *item)
{
    if (item == NULL) {
        return false;
    }
    size_t at = environment_options_find(list, item, strcspn(item, "="));
    if (at < list->count) {
        environment_options_forget(list->items[at]);
        list->items[at] = item;
        return true;
    }
    char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL) {
        environment_options_forget(item);
        return false;
    }
    list->items = items;
    list->items[list->count++] = item;
    return true;
}

/* "NAME=value", or "NAME" with the value of our own. `where` is what an error calls it. */
static bool environment_options_take(const struct invocation *invocation, const char *entry,
    const char *where, struct environment_list *list, int *ret_exit)
{
    char *item = NULL;
    if (entry[0] == '\0') {
        *ret_exit = invocation_usage(invocation, "%s: \"\" names nothing: write NAME=VALUE", where);
        return false;
    }
    if (strchr(entry, '=') != NULL) {
        item = strdup(entry);
    } else {
        const char *value = getenv(entry);
        if (value == NULL) {
            /* Of a file: maybe a secret's second line. Behind a name: maybe its value. */
            int shown = strcmp(where, "--env") == 0 ? (int)strspn(entry, NAME_CHARACTERS) : 0;
            *ret_exit = invocation_usage(invocation,
                "%s: %.*s is not in this command's environment: set it, or write %.*s=VALUE", where,
                shown > 0 ? shown : 100, shown > 0 ? entry : "what it names",
                shown > 0 ? shown : 100, shown > 0 ? entry : "NAME");
            return false;
        }
        item = asprintf(&item, "%s=%s", entry, value) < 0 ? NULL : item;
    }
    return environment_options_put(list, item) || no_memory(invocation, ret_exit);
}

static bool take_file(const struct invocation *invocation, const char *path,
    struct environment_list *list, int *ret_exit)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    unsigned number = 1;
    char where[512];
    if (file_read(path, LIMIT_SPEC_BYTES, &bytes, &size, &error) != CADRE_OK) {
        *ret_exit = invocation_usage(invocation, "--env-file: %s", error.text);
        return false;
    }
    if (strlen(bytes) != size) {
        *ret_exit = invocation_usage(
            invocation, "--env-file %s has a zero byte in it: it is no text file", path);
        return false;
    }
    bool done = true;
    for (char *at = bytes; done && at != NULL && *at != '\0'; number++) {
        char *end = strchr(at, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        at[strcspn(at, "\r")] = '\0';
        snprintf(where, sizeof where, "--env-file %.400s, line %u", path, number);
        if (at[0] != '\0' && at[0] != '#') {
            done = environment_options_take(invocation, at, where, list, ret_exit);
        }
        at = end != NULL ? end + 1 : NULL;
    }
    explicit_bzero(bytes, size);
    return done;
}

bool environment_options_make(const struct invocation *invocation,
    const struct option_list *entries, const struct option_list *files,
    struct environment_list *ret_list, int *ret_exit)
{
    bool done = true;
    for (size_t i = 0; i < files->count && done; i++) {
        done = take_file(invocation, files->items[i], ret_list, ret_exit);
    }
    for (size_t i = 0; i < entries->count && done; i++) {
        done = environment_options_take(invocation, entries->items[i], "--env", ret_list, ret_exit);
    }
    return done;
}

bool environment_options_verify(const struct invocation *invocation, const char *verify_state,
    bool verify_losses, struct environment_list *list, int *ret_exit)
{
    if (verify_losses && !environment_options_put(list, strdup("CADRE_VERIFY_LOSSES=on"))) {
        return no_memory(invocation, ret_exit);
    }
    if (verify_state == NULL) {
        return true;
    }
    errno = 0;
    char *end = NULL;
    unsigned long long steps = strtoull(verify_state, &end, 10);
    bool digits = verify_state[0] >= '0' && verify_state[0] <= '9' && *end == '\0' && errno == 0;
    if (strcmp(verify_state, "off") != 0 && (!digits || steps < 1 || steps > LIMIT_VERIFY_STEPS)) {
        *ret_exit = invocation_usage(invocation,
            "--verify-state: \"%.100s\" is neither \"off\" nor a number of steps from 1 to %d",
            verify_state, LIMIT_VERIFY_STEPS);
        return false;
    }
    char *item = NULL;
    item = asprintf(&item, "CADRE_VERIFY_STATE=%s", verify_state) < 0 ? NULL : item;
    return environment_options_put(list, item) || no_memory(invocation, ret_exit);
}
