/* SPDX-License-Identifier: Apache-2.0
 * What the program has registered by name: functions for closures, datasets and resources of
 * workers. One for the process; entries stay, so that any thread may keep a pointer. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_REGISTRY_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_REGISTRY_H

#include "cadre/cluster_coordinator.h"
#include "common/base/error.h"
#include "common/model/limits.h"

#define REGISTRY_MAX 4096 /* entries of a program */

enum registration_kind { REGISTERED_FUNCTION = 0, REGISTERED_DATASET, REGISTERED_RESOURCE };

struct registration {
    enum registration_kind kind;
    char name[LIMIT_NAME_BYTES];
    cadre_closure_function function; /* the function of its kind */
    cadre_input_function dataset;
    cadre_resource_function resource;
    void (*release)(void *resource, void *user); /* of a resource; may be NULL */
    void *user;
};

/* "function", "dataset", "resource". */
const char *registration_kind_name(enum registration_kind kind);

/* NOT_FOUND names the entries of that kind. `name`: any bytes. */
cadre_status closure_registry_find(enum registration_kind kind, const char *name,
    const struct registration **ret_found, struct cadre_error *error);

#endif
