/* SPDX-License-Identifier: Apache-2.0
 * Assignments: what is assigned is combined over the replicas as the aggregation says, then written
 * as the context says. */
#ifndef CADRE_RUNTIME_ASSIGN_H
#define CADRE_RUNTIME_ASSIGN_H

#include <stdbool.h>

#include "cadre/assign.h"
#include "worker/library/runtime/variables/variable.h"

struct assignment {
    const char *function; /* that the program called */
    cadre_assignment how;
    cadre_variable *variable;
    const cadre_tensor *value;       /* of the variable's type and shape; NULL: `values` */
    const cadre_per_replica *values; /* one for each local replica */
    bool literal;                    /* a host number: the same everywhere */
};

/* Checks all, and assigns: `replica` NULL in cross-replica context, or inside an update. */
cadre_status assign_make(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);

/* The component's value := , +=, -= `from`, each wherever it is. */
cadre_status assign_write(const cadre_variable *variable, struct variable_component *component,
    const cadre_tensor *from, cadre_assignment how, struct cadre_error *error);

/* The key of all that must be equal on all replicas, and the value in words: "0.5", "a value of
 * digest 1c0ffee5"; where each replica has its own, how it is assigned. */
#define ASSIGN_VALUE_BYTES 60
uint64_t assign_key(const struct assignment *assignment, char ret_value[ASSIGN_VALUE_BYTES]);

/* In one context each: a replica function, cross-replica, an update (one component); and of regular
 * variables. */
cadre_status assign_in_replica(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);
/* Of one on servers, which several replicas change in a step. */
cadre_status assign_together(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);
cadre_status assign_cross_replica(const struct assignment *assignment, struct cadre_error *error);
cadre_status assign_component(
    const struct assignment *assignment, uint32_t local, struct cadre_error *error);
cadre_status assign_plain(const struct assignment *assignment, struct cadre_error *error);

#endif
