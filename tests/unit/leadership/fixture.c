/* SPDX-License-Identifier: Apache-2.0
 * The stage. */
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"

struct log_hash hash_at(uint64_t index)
{
    return (struct log_hash){{(uint8_t)index, (uint8_t)(index >> 8), 1}};
}

void fixture_begin(struct fixture *fixture, uint64_t entries)
{
    *fixture = (struct fixture){.now_us = 1000000,
        .has_cluster = true,
        .etcd_id = 9,
        .revision = 50,
        .cluster = {.id = {.high = 5, .low = 6}, .etcd_id = 9, .format = 1},
        .leader = {.term = 1, .nonce = {.high = 70, .low = 1}, .mod_revision = 20},
        .head = {.term = 1,
            .nonce = {.high = 70, .low = 1},
            .index = entries,
            .hash = hash_at(entries),
            .first = 1,
            .beat = 7,
            .mod_revision = 50},
        .options = {.format_max = 1,
            .nonce = {.high = 80, .low = 1},
            .new_cluster_id = {.high = 5, .low = 6},
            .new_hash = hash_at(0),
            .seed = 3,
            .lease_us = LEASE_US,
            .drift_ppm = 10000,
            .margin_us = 50000,
            .lag_us = 500000,
            .tickets_max = TICKETS}};
    for (uint64_t i = 1; i < FIXTURE_LOG; i++) {
        fixture->log[i] = (struct log_entry){
            .index = i, .term = 1, .format = 1, .hash = hash_at(i), .computed = hash_at(i)};
    }
}

void fixture_start(struct fixture *fixture)
{
    assert_true(leadership_bytes(TICKETS) <= sizeof(fixture->memory));
    fixture->core = leadership_init(fixture->memory, &fixture->options);
    pass(fixture, 0);
}

void fixture_lead(struct fixture *fixture)
{
    fixture_begin(fixture, 3);
    fixture->leader.left = true;
    fixture_start(fixture);
    follow(fixture);
    answer(fixture); /* TAKE_OVER */
    follow(fixture);
    answer(fixture); /* TERM */
    assert_int_equal(state_of(fixture), LEADERSHIP_LEADING);
    fixture->transcript[0] = '\0';
}

/* ---- the transcript ---- */

static void print(struct fixture *fixture, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void print(struct fixture *fixture, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(fixture->transcript);
    va_start(arguments, format);
    vsnprintf(fixture->transcript + used, sizeof(fixture->transcript) - used, format, arguments);
    va_end(arguments);
}

static void print_transaction(struct fixture *fixture, const struct log_transaction *transaction)
{
    switch (transaction->kind) {
    case LOG_CREATE:
        print(fixture, "create");
        break;
    case LOG_TAKE_OVER:
        print(fixture, "take over term %" PRIu64 " at %" PRIu64, transaction->leader.term,
            transaction->head.index);
        break;
    case LOG_APPEND:
        if (transaction->term_entry) {
            print(fixture, "append TERM as %" PRIu64, transaction->first_index);
            break;
        }
        print(fixture, "append tickets %" PRIu64 "-%" PRIu64 " as %" PRIu64 "-%" PRIu64,
            transaction->first_ticket, transaction->last_ticket, transaction->first_index,
            transaction->head.index);
        break;
    case LOG_BEAT:
        print(fixture, "beat");
        if (transaction->last_ticket >= transaction->first_ticket) {
            print(fixture, " for tickets %" PRIu64 "-%" PRIu64, transaction->first_ticket,
                transaction->last_ticket);
        }
        break;
    case LOG_TRIM:
        print(fixture, "trim %" PRIu64 "-%" PRIu64, transaction->trim_from, transaction->trim_to);
        break;
    case LOG_LEAVE:
        print(fixture, "leave term %" PRIu64, transaction->leader.term);
        break;
    case LOG_PIECES:
        print(fixture, "pieces %u-%u of %u of ticket %" PRIu64 " as %" PRIu64, transaction->piece,
            transaction->piece_end, transaction->piece_count, transaction->first_ticket,
            transaction->first_index);
        break;
    case LOG_SNAPSHOT:
        print(fixture, "snapshot at %" PRIu64, transaction->snapshot_index);
        break;
    }
}

static void note(struct fixture *fixture, const struct leadership_action *action)
{
    switch (action->type) {
    case LEADERSHIP_ACTION_READ:
        fixture->read_request = action->read.request;
        fixture->read_after = action->read.after;
        fixture->read_entries = action->read.entries_max;
        print(fixture, "read after %" PRIu64 "%s\n", action->read.after.index,
            action->read.entries_max > 0 ? "" : ", no entries");
        break;
    case LEADERSHIP_ACTION_TRANSACT:
        fixture->request = action->transact.request;
        fixture->transaction = action->transact.transaction;
        print_transaction(fixture, &fixture->transaction);
        print(fixture, action->transact.attempt > 1 ? ", again\n" : "\n");
        break;
    case LEADERSHIP_ACTION_APPLY:
        fixture->applying = action->apply.to;
        print(fixture, "apply %u to %" PRIu64 "\n", action->apply.count, action->apply.to.index);
        break;
    case LEADERSHIP_ACTION_FETCH_SNAPSHOT:
        print(fixture, "fetch a snapshot\n");
        break;
    case LEADERSHIP_ACTION_DISCARD:
        print(fixture, "discard\n");
        break;
    case LEADERSHIP_ACTION_STORE_KNOWN:
        print(fixture, "known term %" PRIu64 "\n", action->known.term);
        break;
    case LEADERSHIP_ACTION_LEAD:
        print(fixture, "lead in term %" PRIu64 " from %" PRIu64 "\n", action->lead.term,
            action->lead.logged.at.index);
        break;
    case LEADERSHIP_ACTION_LOGGED:
        print(fixture, "logged up to %" PRIu64 ": %u entries to %" PRIu64 "\n",
            action->logged.ticket, action->logged.entries, action->logged.at.index);
        break;
    case LEADERSHIP_ACTION_SNAPSHOT_STORED:
        print(fixture, "snapshot at %" PRIu64 " is stored\n", action->stored);
        break;
    case LEADERSHIP_ACTION_SUSPEND:
        print(fixture, "suspend\n");
        break;
    case LEADERSHIP_ACTION_RESUME:
        print(fixture, "resume\n");
        break;
    case LEADERSHIP_ACTION_STEP_DOWN:
    case LEADERSHIP_ACTION_REFUSE:
        fixture->text = action->text;
        print(fixture, action->type == LEADERSHIP_ACTION_REFUSE ? "refuse\n" : "step down\n");
        break;
    }
}

void step(struct fixture *fixture, struct leadership_event *event)
{
    struct leadership_action items[LEADERSHIP_ACTIONS_PER_STEP_MAX];
    struct leadership_actions out = {.items = items, .capacity = CADRE_COUNT_OF(items)};
    event->now_us = fixture->now_us;
    leadership_step(fixture->core, event, &out);
    const char *fault = leadership_invariant(fixture->core);
    if (fault != NULL) {
        fail_msg("%s", fault);
    }
    for (size_t i = 0; i < out.count; i++) {
        note(fixture, &items[i]);
    }
}

void expect(struct fixture *fixture, const char *transcript)
{
    assert_string_equal(fixture->transcript, transcript);
    fixture->transcript[0] = '\0';
}

enum leadership_state state_of(const struct fixture *fixture)
{
    struct leadership_view view;
    leadership_show(fixture->core, &view);
    return view.state;
}

/* ---- events ---- */

void pass(struct fixture *fixture, uint64_t us)
{
    fixture->now_us += us;
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
}

void answer_read(struct fixture *fixture)
{
    uint64_t first = fixture->read_after.index + 1;
    uint64_t end = fixture->head.index + 1;
    first = first < fixture->head.first ? fixture->head.first : first;
    uint64_t count = first < end ? end - first : 0;
    count = count < fixture->read_entries ? count : fixture->read_entries;
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_READ,
                      .read = {.request = fixture->read_request,
                          .etcd_id = fixture->etcd_id,
                          .has_cluster = fixture->has_cluster,
                          .cluster = fixture->cluster,
                          .cluster_hash = hash_at(0),
                          .has_leader = true,
                          .has_head = true,
                          .leader = fixture->leader,
                          .head = fixture->head,
                          .entries = &fixture->log[first],
                          .entry_count = (uint32_t)count}});
}

void follow(struct fixture *fixture)
{
    for (int i = 0; i < 10; i++) {
        uint64_t request = fixture->read_request;
        answer_read(fixture);
        if (fixture->applying.index != 0) {
            applied(fixture);
        }
        if (fixture->read_request == request) {
            return;
        }
    }
}

void apply(struct fixture *fixture)
{
    const struct log_transaction *transaction = &fixture->transaction;
    fixture->revision++;
    if (transaction->kind == LOG_CREATE) {
        fixture->has_cluster = true;
        fixture->cluster = transaction->cluster;
    }
    if (transaction->leader.term > 0 || transaction->kind == LOG_CREATE) {
        fixture->leader = transaction->leader;
        fixture->leader.mod_revision = fixture->revision;
    }
    if (transaction->kind != LOG_LEAVE) {
        fixture->head = transaction->head;
        fixture->head.hash = hash_at(transaction->head.index);
        fixture->head.mod_revision = fixture->revision;
    }
}

static struct leadership_answer begin_answer(const struct fixture *fixture)
{
    return (struct leadership_answer){
        .request = fixture->request, .hash = hash_at(fixture->transaction.head.index)};
}

void answer(struct fixture *fixture)
{
    struct leadership_answer answer = begin_answer(fixture);
    apply(fixture);
    answer.applied = true;
    answer.revision = fixture->revision;
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_ANSWERED, .answer = answer});
}

void answer_refused(struct fixture *fixture)
{
    struct leadership_answer answer = begin_answer(fixture);
    answer.found = fixture->has_cluster;
    answer.leader = fixture->leader;
    answer.head = fixture->head;
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_ANSWERED, .answer = answer});
}

void unanswered(struct fixture *fixture, uint64_t request, bool no_space)
{
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_UNANSWERED,
                      .unanswered = {.request = request, .no_space = no_space}});
}

void applied(struct fixture *fixture)
{
    struct leadership_position position = fixture->applying;
    fixture->applying = (struct leadership_position){0};
    step(fixture,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_APPLIED, .position = position});
}

void offer(
    struct fixture *fixture, uint64_t ticket, enum leadership_ticket_kind kind, uint32_t bytes)
{
    step(fixture, &(struct leadership_event){.type = LEADERSHIP_EVENT_OFFER,
                      .ticket = {.ticket = ticket, .kind = kind, .bytes = bytes}});
}

void other_beats(struct fixture *fixture)
{
    fixture->head.beat++;
    fixture->head.mod_revision = ++fixture->revision;
}
