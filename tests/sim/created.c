/* SPDX-License-Identifier: Apache-2.0 */
#include "created.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/state/create/variable_name.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable_list.h"

struct created {
    cadre_strategy strategy;
    struct variables_part variables;
    struct state_part state;
    struct requested_names asked;
    cadre_replica replica;
};

static const char *const names[LAYOUT_NAMES] = {"u", "v", "w"};

/* ---- functions that the production's files call ---- */

/* Here variables have no memory, and a program registers nothing and has no servers. */
void variable_clear(cadre_variable *variable)
{
    (void)variable;
}

void variable_free(cadre_variable *variable)
{
    free(variable);
}

bool registered_has_name(const cadre_strategy *strategy, const char *name)
{
    (void)strategy;
    (void)name;
    return false;
}

bool streamed_has_name(const struct cadre_strategy *strategy, const char *name)
{
    (void)strategy;
    (void)name;
    return false;
}

/* ---- creation and end ---- */

struct created *created_open(void)
{
    struct created *created = calloc(1, sizeof(*created));
    CADRE_ASSERT(created != NULL);
    created->strategy.variables = &created->variables;
    created->strategy.state_part = &created->state;
    created->state.asked = &created->asked;
    created->replica.strategy = &created->strategy;
    return created;
}

void created_close(struct created *created)
{
    if (created == NULL) {
        return;
    }
    variables_end_fresh(&created->strategy, true);
    variables_free_undone(&created->strategy);
    for (uint32_t i = 0; i < created->variables.count; i++) {
        free(created->variables.list[i]);
    }
    free(created->variables.list);
    free(created->variables.larger);
    free(created->asked.list);
    free(created);
}

static uint64_t bits_of(const cadre_variable *variable)
{
    uint32_t name = 0;
    while (strncmp(variable->name, names[name], strlen(names[name])) != 0) {
        name++;
        CADRE_ASSERT(name < LAYOUT_NAMES);
    }
    const char *rest = variable->name + strlen(names[name]);
    uint32_t number = rest[0] == '_' ? (uint32_t)(rest[1] - '0') : 0; /* a digit */
    CADRE_ASSERT(number < LAYOUT_NUMBERS);
    uint64_t is = variable->origin.in_function ? LAYOUT_IN_FUNCTION : LAYOUT_BETWEEN_STEPS;
    return is << 2 * (name * LAYOUT_NUMBERS + number);
}

uint64_t created_layout(const struct created *created)
{
    uint64_t layout = 0;
    for (uint32_t i = 0; i < created->variables.count; i++) {
        layout |= bits_of(created->variables.list[i]);
    }
    return layout;
}

static cadre_variable *make(struct created *created, const char *name, bool in_function)
{
    struct cadre_error error;
    const struct variable_plan plan = {.strategy = &created->strategy, .name = name};
    cadre_status room = variables_room(&created->strategy, &error);
    cadre_variable *variable = variables_revive(&plan, CADRE_VARIABLE_MIRRORED, 0);
    variable = variable != NULL ? variable : calloc(1, sizeof(*variable));
    CADRE_ASSERT(room == CADRE_OK);
    CADRE_ASSERT(variable != NULL);
    variable->strategy = &created->strategy;
    variable->kind = CADRE_VARIABLE_MIRRORED;
    snprintf(variable->name, sizeof(variable->name), "%s", name);
    variable_mark_fresh(&created->strategy, variable);
    variable->origin.late = true;
    variable->origin.in_function = in_function;
    return variable;
}

void created_step(struct created *created)
{
    CADRE_ASSERT(created->variables.fresh == NULL);
    created->strategy.step.begun++;
}

uint64_t created_ask(struct created *created, uint32_t name, bool between, bool wrong)
{
    char final[LIMIT_NAME_BYTES];
    cadre_variable *existing;
    struct cadre_error error;
    cadre_status status =
        between
            ? variable_name_next(&created->strategy, names[name], final, &existing, &error)
            : variable_name_in_function(&created->replica, names[name], final, &existing, &error);
    CADRE_ASSERT(status == CADRE_OK);
    if (existing == NULL && wrong) {
        snprintf(final, sizeof(final), "%s_%d", names[name], LAYOUT_NUMBERS - 1);
    }
    return existing == NULL ? bits_of(make(created, final, !between)) : 0;
}

void created_put(struct created *created)
{
    CADRE_ASSERT(created->variables.fresh != NULL);
    variables_put(&created->strategy, created->variables.fresh);
}

void created_take(struct created *created, uint64_t variable)
{
    char name[LIMIT_NAME_BYTES];
    uint32_t at = 0;
    while ((variable >> 2 * at & 3) == LAYOUT_ABSENT) {
        at++;
        CADRE_ASSERT(at < LAYOUT_NAMES * LAYOUT_NUMBERS);
    }
    uint32_t number = at % LAYOUT_NUMBERS;
    int length = snprintf(name, sizeof(name), "%s", names[at / LAYOUT_NUMBERS]);
    if (number > 0) {
        snprintf(name + length, sizeof(name) - (size_t)length, "_%u", number);
    }
    make(created, name, (variable >> 2 * at & 3) == LAYOUT_IN_FUNCTION);
    created_put(created);
}

void created_end(struct created *created, bool undone)
{
    variables_end_fresh(&created->strategy, undone);
}

void created_hand_over(struct created *created)
{
    for (uint32_t i = 0; i < created->variables.count; i++) {
        cadre_variable *variable = created->variables.list[i];
        variable->origin.handed |= !variable->origin.in_function;
    }
}
