/* SPDX-License-Identifier: Apache-2.0
 * Links between daemons and the coordinator: FIFO within a direction of a link, anything across
 * links. What is in flight when a link breaks is lost, and each side notices in its own time. */
#include <stdlib.h>

#include "common/pure/assert.h"

#include "sim.h"

static uint64_t arrival_us(struct sim *sim, uint64_t *last_us)
{
    uint64_t at_us = sim->now_us + sim->scenario.delay_us + draw(sim, 0, sim->scenario.jitter_us);
    *last_us = at_us > *last_us ? at_us : *last_us;
    return *last_us;
}

void link_open(struct sim *sim, uint32_t agent)
{
    if (sim->link_count == sim->link_capacity) {
        sim->link_capacity = sim->link_capacity == 0 ? 512 : 2 * sim->link_capacity;
        sim->links = realloc(sim->links, sim->link_capacity * sizeof(*sim->links));
        CADRE_ASSERT(sim->links != NULL);
    }
    struct agent *a = &sim->agents[agent];
    a->link = sim->link_count++;
    sim->links[a->link] = (struct link){
        .agent = agent, .life = a->life, .agent_open = true, .coordinator_open = true};
}

void link_cut(struct sim *sim, uint32_t link, uint64_t notice_us)
{
    struct link *l = &sim->links[link];
    if (l->cut) {
        return;
    }
    l->cut = true;
    sim->links_broke = true;
    trace(sim, "link %u breaks", link + 1);
    later(sim, draw(sim, 0, notice_us), ON_AGENT_LINK_DOWN, link, 0, 0);
    later(sim, draw(sim, 0, notice_us), ON_COORDINATOR_LINK_DOWN, link, 0, 0);
}

void link_refuse(struct sim *sim, uint32_t link, cadre_status code, const char *text)
{
    struct link *l = &sim->links[link];
    if (!l->coordinator_open) {
        return;
    }
    struct agent_down down = {.type = AGENT_DOWN_REFUSED, .refused = {.code = code, .text = text}};
    struct message *message = message_of_down(&sim->pool, &down);
    send_down(sim, link, message);
    message_drop(&sim->pool, message);
    l->coordinator_open = false;
    if (!l->cut) {
        later_with(sim, arrival_us(sim, &l->down_last_us), ON_AGENT_LINK_DOWN, link, 0, 0, NULL);
        later(sim, draw(sim, 0, 1000), ON_COORDINATOR_LINK_DOWN, link, 0, 0);
    }
}

void send_up(struct sim *sim, uint32_t link, const struct agent_up *up)
{
    struct link *l = &sim->links[link];
    if (l->cut || !l->agent_open) {
        return;
    }
    later_with(sim, arrival_us(sim, &l->up_last_us), ON_COORDINATOR_UP, link, 0, 0,
        message_of_up(&sim->pool, up));
}

void send_down(struct sim *sim, uint32_t link, struct message *message)
{
    struct link *l = &sim->links[link];
    if (l->cut || !l->coordinator_open) {
        return;
    }
    message->references++;
    later_with(sim, arrival_us(sim, &l->down_last_us), ON_AGENT_DOWN, link, 0, 0, message);
}
