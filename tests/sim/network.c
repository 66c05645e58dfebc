/* SPDX-License-Identifier: Apache-2.0
 * Links between daemons and the coordinator: FIFO within a direction of a link, any order across
 * links. What is in flight when a link breaks is lost, and each side notices in its own time. One
 * direction may become silent: its messages arrive late, or never when the link breaks first. */
#include <stdlib.h>

#include "replicas/replicas.h"
#include "sim.h"

static uint64_t arrival_us(struct sim *sim, const struct link *link, bool mute, uint64_t *last_us)
{
    uint64_t at_us = sim->now_us + sim->scenario.delay_us + draw(sim, 0, sim->scenario.jitter_us);
    if (mute && at_us < link->mute_until_us) {
        at_us = link->mute_until_us;
    }
    *last_us = at_us > *last_us ? at_us : *last_us;
    return *last_us;
}

void link_open(struct sim *sim, uint32_t agent, uint32_t replica)
{
    sim->links = grown(sim->links, &sim->link_capacity, sim->link_count + 1, sizeof(*sim->links));
    struct agent *a = &sim->agents[agent];
    a->link = sim->link_count++;
    sim->links[a->link] = (struct link){.agent = agent,
        .incarnation = a->incarnation,
        .second = sim->second.runs && one_in(sim, 2),
        .replica = replica,
        .leadership =
            sim->scenario.replicas > 0 ? replica_of(sim, replica)->coordinator.incarnation : 0,
        .agent_open = true,
        .coordinator_open = true};
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
    schedule(sim, draw(sim, 0, notice_us), ON_AGENT_LINK_DOWN, link, 0, 0);
    schedule(sim, draw(sim, 0, notice_us), ON_COORDINATOR_LINK_DOWN, link, 0, 0);
}

void link_mute(struct sim *sim, uint32_t link, enum mute ways, uint64_t until_us, bool breaks)
{
    struct link *l = &sim->links[link];
    if (l->cut || l->mute_up || l->mute_down) {
        return;
    }
    static const char *const names[] = {"", "upwards", "downwards", "both ways"};
    trace(
        sim, "link %u is mute %s until %llu", link + 1, names[ways], (unsigned long long)until_us);
    sim->links_broke = true;
    l->mute_up = ways != MUTE_DOWN;
    l->mute_down = ways != MUTE_UP;
    l->mute_until_us = until_us;
    schedule_message(
        sim, breaks ? until_us - 1 : until_us, ON_UNMUTE, link, breaks ? 1 : 0, 0, NULL);
}

void link_lose(struct sim *sim, uint32_t link, enum mute way)
{
    struct link *l = &sim->links[link];
    if (l->cut || l->mute_up || l->mute_down || l->lost_up || l->lost_down) {
        return;
    }
    trace(sim, "link %u loses messages %s", link + 1, way == MUTE_UP ? "upwards" : "downwards");
    sim->links_broke = true;
    l->lost_up = way == MUTE_UP;
    l->lost_down = way == MUTE_DOWN;
    if (!l->lost_down || !mutant_goes_on(sim, MUTANT_SILENCE_UNNOTICED)) {
        schedule(sim, draw(sim, 1000000, SCENARIO_LEASE_US), ON_AGENT_LINK_DOWN, link, 0, 0);
    }
    schedule(sim, SCENARIO_HALF_OPEN_US, ON_COORDINATOR_LINK_DOWN, link, 0, 0);
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
    if (!l->cut && !l->lost_down) {
        uint64_t at_us = arrival_us(sim, l, l->mute_down, &l->down_last_us);
        schedule_message(sim, at_us, ON_AGENT_LINK_DOWN, link, 0, 0, NULL);
        schedule(sim, draw(sim, 0, 1000), ON_COORDINATOR_LINK_DOWN, link, 0, 0);
    }
}

/* Watermarks and what a new link sends again: the receiver may get them twice. */
static bool may_repeat(const struct agent_up *up)
{
    return up->type != AGENT_UP_HELLO && up->type != AGENT_UP_LOG;
}

void send_up(struct sim *sim, uint32_t link, const struct agent_up *up)
{
    struct link *l = &sim->links[link];
    if (l->cut || l->lost_up || !l->agent_open) {
        return;
    }
    struct message *message = message_of_up(&sim->pool, up);
    schedule_message(sim, arrival_us(sim, l, l->mute_up, &l->up_last_us), ON_COORDINATOR_UP, link,
        0, 0, message);
    if (may_repeat(up) && one_in(sim, sim->scenario.duplicate_in)) {
        message->references++;
        schedule_message(sim, arrival_us(sim, l, l->mute_up, &l->up_last_us), ON_COORDINATOR_UP,
            link, 0, 0, message);
    }
}

void send_down(struct sim *sim, uint32_t link, struct message *message)
{
    struct link *l = &sim->links[link];
    if (l->cut || l->lost_down || !l->coordinator_open) {
        return;
    }
    bool twice = message->down.type != AGENT_DOWN_WELCOME &&
                 message->down.type != AGENT_DOWN_REFUSED &&
                 one_in(sim, sim->scenario.duplicate_in);
    for (int i = 0; i < (twice ? 2 : 1); i++) {
        message->references++;
        schedule_message(sim, arrival_us(sim, l, l->mute_down, &l->down_last_us), ON_AGENT_DOWN,
            link, 0, 0, message);
    }
}
