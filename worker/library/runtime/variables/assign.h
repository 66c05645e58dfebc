/* SPDX-License-Identifier: Apache-2.0
 * Assignments: values are combined over the replicas by the variable's aggregation, then written by
 * the rules of the context. */
#ifndef CADRE_RUNTIME_ASSIGN_H
#define CADRE_RUNTIME_ASSIGN_H

#include <stdbool.h>

#include "cadre/assign.h"
#include "worker/library/runtime/variables/variable.h"

struct assignment {
    const char *function; /* the public function, for messages */
    cadre_assignment how;
    cadre_variable *variable;
    const cadre_tensor *value;       /* of the variable's type and shape; NULL: `values` */
    const cadre_per_replica *values; /* one for each local replica */
    bool literal;                    /* a host number: the same everywhere */
};

/* Checks all, and assigns: `replica` NULL in cross-replica context, or inside an update. */
cadre_status assign_make(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);

/* The component's value := , +=, -= `from`, each in its own memory. */
cadre_status assign_write(const cadre_variable *variable, struct variable_component *component,
    const cadre_tensor *from, cadre_assignment how, struct cadre_error *error);

/* The key that must be equal on all replicas, and the value as text: "0.5", "a value of digest
 * 1c0ffee5"; where replicas have different values, how it is assigned. */
#define ASSIGN_VALUE_BYTES 60
/* Returns the key; fills ret_value. */
uint64_t assign_key(const struct assignment *assignment, char ret_value[ASSIGN_VALUE_BYTES]);

/* In a replica function. */
cadre_status assign_in_replica(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);
/* In a replica function, of a variable on servers that several replicas change in a step. */
cadre_status assign_together(
    cadre_replica *replica, const struct assignment *assignment, struct cadre_error *error);
/* In cross-replica context. */
cadre_status assign_cross_replica(const struct assignment *assignment, struct cadre_error *error);
/* In an update: one component. */
cadre_status assign_component(
    const struct assignment *assignment, uint32_t local, struct cadre_error *error);
/* Of regular variables. */
cadre_status assign_plain(const struct assignment *assignment, struct cadre_error *error);

#endif
