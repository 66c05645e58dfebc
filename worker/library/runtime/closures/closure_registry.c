/* SPDX-License-Identifier: Apache-2.0
 * See closure_registry.h. The process has one; called by the program, schedule.c and the
 * workers. */
#include "worker/library/runtime/closures/closure_registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"

#define LISTED_BYTES 320 /* of the names in a message */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct registration *entries[REGISTRY_MAX];
static size_t entry_count;

const char *registration_kind_name(enum registration_kind kind)
{
    CADRE_ASSERT(kind <= REGISTERED_RESOURCE);
    static const char *const names[] = {"function", "dataset", "resource"};
    return names[kind];
}

static const struct registration *closure_registry_look(
    enum registration_kind kind, const char *name)
{
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i]->kind == kind && strcmp(entries[i]->name, name) == 0) {
            return entries[i];
        }
    }
    return NULL;
}

/* "`a`, `b`, ..."; "none" when there is none. */
static void closure_registry_list(enum registration_kind kind, char text[LISTED_BYTES])
{
    size_t used = 0;
    snprintf(text, LISTED_BYTES, "none");
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i]->kind != kind) {
            continue;
        }
        if (used + strlen(entries[i]->name) + sizeof ", ``, ..." > LISTED_BYTES) {
            snprintf(text + used, LISTED_BYTES - used, ", ...");
            return;
        }
        used += (size_t)snprintf(
            text + used, LISTED_BYTES - used, "%s`%s`", used > 0 ? ", " : "", entries[i]->name);
    }
}

cadre_status closure_registry_find(enum registration_kind kind, const char *name,
    const struct registration **ret_found, struct cadre_error *error)
{
    const char *what = registration_kind_name(kind);
    pthread_rwlock_rdlock(&lock);
    *ret_found = closure_registry_look(kind, name);
    cadre_status status = CADRE_OK;
    if (*ret_found == NULL) {
        char names[LISTED_BYTES];
        closure_registry_list(kind, names);
        status = cadre_error_set(error, CADRE_NOT_FOUND,
            "no %s `%.*s` is registered; call cadre_%s_register in every task before; registered "
            "here: %s",
            what, LIMIT_NAME_BYTES, name, what, names);
    }
    pthread_rwlock_unlock(&lock);
    return status;
}

static cadre_status closure_registry_add(
    const struct registration *wanted, struct cadre_error *error)
{
    CADRE_ASSERT(entry_count <= REGISTRY_MAX);
    const char *what = registration_kind_name(wanted->kind);
    if (closure_registry_look(wanted->kind, wanted->name) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a %s `%s` is registered already; give this one another name", what, wanted->name);
    }
    struct registration *entry = entry_count == REGISTRY_MAX ? NULL : malloc(sizeof *entry);
    if (entry == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the %s `%s` cannot be registered: %s", what, wanted->name,
            entry_count == REGISTRY_MAX ? "a program has at most 4096 entries" : "no memory");
    }
    *entry = *wanted;
    entries[entry_count++] = entry;
    return CADRE_OK;
}

static cadre_status closure_registry_enter(
    struct registration *wanted, const char *name, struct cadre_error *error)
{
    CADRE_TRY(name_check(registration_kind_name(wanted->kind), name, error));
    snprintf(wanted->name, sizeof wanted->name, "%s", name);
    pthread_rwlock_wrlock(&lock);
    cadre_status status = closure_registry_add(wanted, error);
    pthread_rwlock_unlock(&lock);
    return status;
}

cadre_status cadre_function_register(const char *name, cadre_closure_function function, void *user)
{
    struct cadre_error error = {0};
    struct registration wanted = {.kind = REGISTERED_FUNCTION, .function = function, .user = user};
    cadre_status status =
        function == NULL ? argument_require(NULL, "cadre_function_register", "function", &error)
                         : closure_registry_enter(&wanted, name, &error);
    return api_return(status, &error);
}

cadre_status cadre_dataset_register(const char *name, cadre_input_function function, void *user)
{
    struct cadre_error error = {0};
    struct registration wanted = {.kind = REGISTERED_DATASET, .dataset = function, .user = user};
    cadre_status status = function == NULL
                              ? argument_require(NULL, "cadre_dataset_register", "function", &error)
                              : closure_registry_enter(&wanted, name, &error);
    return api_return(status, &error);
}

cadre_status cadre_resource_register(const char *name, cadre_resource_function function,
    void (*release)(void *resource, void *user), void *user)
{
    struct cadre_error error = {0};
    struct registration wanted = {
        .kind = REGISTERED_RESOURCE, .resource = function, .release = release, .user = user};
    cadre_status status =
        function == NULL ? argument_require(NULL, "cadre_resource_register", "function", &error)
                         : closure_registry_enter(&wanted, name, &error);
    return api_return(status, &error);
}
