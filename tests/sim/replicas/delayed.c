/* SPDX-License-Identifier: Apache-2.0
 * What leaves a coordinator that leads, and what waits until its ticket is in the log. */
#include "common/pure/assert.h"
#include "replicas.h"

/* A release may let tasks of its generation begin steps. */
static void note_release(struct sim *sim, const struct message *message)
{
    const struct agent_relay_down *relay = &message->down.relay_down;
    if (message->down.type != AGENT_DOWN_RELAY || relay->down.type != TASK_DOWN_RELEASE) {
        return;
    }
    const struct job *job = job_by_id(sim, relay->job);
    uint32_t mesh =
        job == NULL ? SIM_NONE
                    : mesh_find(sim, (uint32_t)(job - sim->jobs), relay->down.release.generation);
    if (mesh != SIM_NONE && sim->meshes[mesh].admitted < relay->down.release.up_to) {
        sim->meshes[mesh].admitted = relay->down.release.up_to;
    }
}

static void leaves(struct sim *sim, const struct delayed_send *sent)
{
    check_said(sim, sim->replicas->entered, sent);
    sim->replicas->sent++;
    switch (sent->kind) {
    case DELAYED_DOWN:
        note_release(sim, sent->message);
        if (sent->message->down.type == AGENT_DOWN_WELCOME) {
            agent_is_welcomed(sim, &sim->links[sent->link]);
        }
        send_down(sim, sent->link, sent->message);
        message_drop(&sim->pool, sent->message);
        break;
    case DELAYED_REFUSE:
        link_refuse(sim, sent->link, sent->code, sent->text);
        break;
    case DELAYED_ANSWER:
        sim->jobs[sent->job].answered |= sim->jobs[sent->job].call == sent->call;
        break;
    }
}

static void send_or_delay(struct sim *sim, struct delayed_send *sent)
{
    struct replica *replica = replica_entered(sim);
    sent->ticket = sim->replicas->awaited;
    bool early = sent->ticket > replica->logged && mutant_goes_on(sim, MUTANT_SAID_BEFORE_LOG);
    if (sent->ticket <= replica->logged || early) {
        leaves(sim, sent);
        return;
    }
    if (replica->delayed_first > 64 && 2 * replica->delayed_first > replica->delayed_count) {
        for (uint32_t i = replica->delayed_first; i < replica->delayed_count; i++) {
            replica->delayed[i - replica->delayed_first] = replica->delayed[i];
        }
        replica->delayed_count -= replica->delayed_first;
        replica->delayed_first = 0;
    }
    replica->delayed = grown(replica->delayed, &replica->delayed_capacity,
        replica->delayed_count + 1, sizeof(*replica->delayed));
    replica->delayed[replica->delayed_count++] = *sent;
}

void replica_sends_down(struct sim *sim, uint32_t link, struct message *message)
{
    message->references++;
    message->term = replica_entered(sim)->term;
    message->guarded = sim->replicas->awaited != 0;
    send_or_delay(
        sim, &(struct delayed_send){.kind = DELAYED_DOWN, .link = link, .message = message});
}

void replica_sends_refused(struct sim *sim, uint32_t link, cadre_status code, const char *text)
{
    (void)text;
    send_or_delay(sim,
        &(struct delayed_send){
            .kind = DELAYED_REFUSE, .link = link, .code = code, .text = "the coordinator refuses"});
}

void replica_sends_answer(struct sim *sim, uint32_t job, uint64_t call, cadre_status code)
{
    send_or_delay(sim,
        &(struct delayed_send){.kind = DELAYED_ANSWER, .job = job, .call = call, .code = code});
}

void replica_sends_logged(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    bool enters = sim->replicas->entered == SIM_NONE;
    if (enters) {
        replica_enters(sim, r);
    }
    while (replica->leads && replica->delayed_first < replica->delayed_count &&
           replica->delayed[replica->delayed_first].ticket <= replica->logged &&
           (replica->sends_late || replica_may_send(sim, replica)) && sim->broken == NULL) {
        const struct delayed_send sent = replica->delayed[replica->delayed_first++];
        leaves(sim, &sent);
    }
    if (enters) {
        replica_leaves(sim);
    }
}

void replica_logged(struct sim *sim, uint32_t r, uint64_t ticket)
{
    replica_of(sim, r)->logged = ticket;
    replica_sends_logged(sim, r);
}

void replica_forgets(struct sim *sim, struct replica *replica)
{
    while (replica->delayed_first < replica->delayed_count) {
        const struct delayed_send *sent = &replica->delayed[replica->delayed_first++];
        if (sent->kind == DELAYED_DOWN) {
            message_drop(&sim->pool, sent->message);
        }
    }
    replica->delayed_first = 0;
    replica->delayed_count = 0;
    lagging_clear(&replica->lagging);
}
