/* SPDX-License-Identifier: Apache-2.0
 * The action list, and the two final states. */
#include "coordinator/leadership/state.h"

#include "common/pure/text.h"

struct leadership_action *leadership_append(
    struct leadership_actions *out, enum leadership_action_type type)
{
    CADRE_ASSERT(out->count < out->capacity);
    struct leadership_action *action = &out->items[out->count++];
    *action = (struct leadership_action){.type = type};
    return action;
}

bool leadership_has_ended(const struct leadership *leadership)
{
    return leadership->state == LEADERSHIP_STEPPING_DOWN || leadership->state == LEADERSHIP_REFUSED;
}

static void end_in(struct leadership *leadership, enum leadership_state state)
{
    CADRE_ASSERT(!leadership_has_ended(leadership));
    leadership->state = state;
    leadership->may_send_until_us = 0;
    leadership->read.in_flight = false;
    leadership->guarded.in_flight = false;
}

void leadership_step_down(
    struct leadership *leadership, const char *reason, struct leadership_actions *out)
{
    struct text text = text_begin(leadership->text, sizeof(leadership->text));
    text_add(&text, reason);
    end_in(leadership, LEADERSHIP_STEPPING_DOWN);
    leadership_append(out, LEADERSHIP_ACTION_STEP_DOWN)->text = leadership->text;
}

void leadership_refuse(struct leadership *leadership, struct leadership_actions *out)
{
    CADRE_ASSERT(leadership->text[0] != '\0');
    end_in(leadership, LEADERSHIP_REFUSED);
    leadership_append(out, LEADERSHIP_ACTION_REFUSE)->text = leadership->text;
}
