/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/create/variable_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"

struct requested_name {
    char name[LIMIT_NAME_BYTES];
    uint32_t nth; /* call for it in the step, from 0 on */
};

cadre_status variable_name_check(
    const cadre_strategy *strategy, const char *name, struct cadre_error *error)
{
    if (registered_has_name(strategy, name)) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a registered state is in checkpoints as '%s'; give the variable another name",
            name);
    }
    if (streamed_has_name(strategy, name)) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a variable on parameter servers, or a slot of its optimizer, is called '%s'; "
            "give the new one another name",
            name);
    }
    return CADRE_OK;
}

/* `name`, name_1, name_2, ... False: it is too long. */
static bool number_name(const char *name, uint32_t number, char ret_name[LIMIT_NAME_BYTES])
{
    int length = number == 0 ? snprintf(ret_name, LIMIT_NAME_BYTES, "%s", name)
                             : snprintf(ret_name, LIMIT_NAME_BYTES, "%s_%u", name, number);
    return length > 0 && length < LIMIT_NAME_BYTES;
}

static cadre_status too_long(const char *name, uint32_t number, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the name '%s' with the number %u that makes it unique has more than %d bytes; give the "
        "variable a shorter one",
        name, number, LIMIT_NAME_BYTES - 1);
}

static bool has_checkpoint_name(const cadre_strategy *strategy, const char *name)
{
    struct cadre_error ignored;
    return variable_name_check(strategy, name, &ignored) != CADRE_OK;
}

cadre_status variable_name_next(const cadre_strategy *strategy, const char *name,
    char ret_name[LIMIT_NAME_BYTES], cadre_variable **ret_existing, struct cadre_error *error)
{
    *ret_existing = NULL;
    CADRE_TRY(variable_name_check(strategy, name, error));
    for (uint32_t number = 0;; number++) {
        if (!number_name(name, number, ret_name)) {
            return too_long(name, number, error);
        }
        cadre_variable *there = variable_lookup(strategy, ret_name);
        if (there != NULL && !there->origin.in_function && !there->origin.handed) {
            *ret_existing = there;
            return CADRE_OK;
        }
        if (there == NULL && !has_checkpoint_name(strategy, ret_name)) {
            return CADRE_OK;
        }
    }
}

/* --- in a replica function --- */

static cadre_status room_for_one(struct requested_names *asked, struct cadre_error *error)
{
    if (asked->at < asked->capacity) {
        return CADRE_OK;
    }
    uint32_t capacity = asked->capacity == 0 ? 16 : asked->capacity * 2;
    struct requested_name *grown = realloc(asked->list, capacity * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the names of %u variables that a replica function creates", capacity);
    }
    asked->list = grown;
    asked->capacity = capacity;
    return CADRE_OK;
}

/* How often the replica has used the name in this step before. Most functions make the same calls
 * in each step: then the count of the last one holds. */
static cadre_status count_asked(
    const cadre_replica *replica, const char *name, uint32_t *ret_nth, struct cadre_error *error)
{
    struct requested_names *asked = &replica->strategy->state_part->asked[replica->local];
    uint64_t begun = atomic_load_explicit(&replica->strategy->step.begun, memory_order_relaxed);
    asked->at = asked->begun == begun ? asked->at : 0;
    asked->begun = begun;
    if (asked->at == asked->count || strcmp(asked->list[asked->at].name, name) != 0) {
        uint32_t nth = 0;
        CADRE_TRY(room_for_one(asked, error));
        for (uint32_t i = 0; i < asked->at; i++) {
            nth += strcmp(asked->list[i].name, name) == 0 ? 1 : 0;
        }
        asked->count = asked->at + 1;
        asked->list[asked->at].nth = nth;
        memcpy(asked->list[asked->at].name, name, strlen(name) + 1);
    }
    *ret_nth = asked->list[asked->at++].nth;
    return CADRE_OK;
}

cadre_status variable_name_in_function(const cadre_replica *replica, const char *name,
    char ret_name[LIMIT_NAME_BYTES], cadre_variable **ret_existing, struct cadre_error *error)
{
    const cadre_strategy *strategy = replica->strategy;
    uint32_t left = 0;
    *ret_existing = NULL;
    CADRE_TRY(variable_name_check(strategy, name, error));
    CADRE_TRY(count_asked(replica, name, &left, error));
    for (uint32_t number = 0;; number++) {
        if (!number_name(name, number, ret_name)) {
            return too_long(name, number, error);
        }
        cadre_variable *there = variable_lookup(strategy, ret_name);
        bool others =
            there != NULL ? !there->origin.in_function : has_checkpoint_name(strategy, ret_name);
        if (!others && left == 0) {
            *ret_existing = there;
            return CADRE_OK;
        }
        left -= others ? 0 : 1;
    }
}
