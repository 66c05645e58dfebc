/* SPDX-License-Identifier: Apache-2.0 */
#include "replica_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void append_more(struct owner *owner)
{
    while (owner->appends_left > 0) {
        char text[32];
        uint64_t ticket = 0;
        struct cadre_error error;
        int length = snprintf(text, sizeof text, "%s-%u", owner->name, owner->appended + 1);
        enum leadership_ticket_kind kind =
            owner->appends_left % 3 == 0 ? LEADERSHIP_LAGGING : LEADERSHIP_SYNC;
        if (replica_append(owner->replica, text, (size_t)length, kind, &ticket, &error) !=
            CADRE_OK) {
            break;
        }
        owner->appended++;
        owner->appends_left--;
        assert_int_equal(ticket, owner->appended);
    }
}

static cadre_status on_apply(void *user, const struct replica_entry *entries, size_t count,
    size_t *ret_applied, struct cadre_error *error)
{
    struct owner *owner = user;
    if (owner->apply_fails) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "the disk is broken");
    }
    for (size_t i = 0; i < count; i++) {
        if (owner->entry_count == owner->room) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the disk is full");
        }
        *ret_applied = i + 1;
        size_t at = owner->entry_count++;
        assert_true(at < ENTRIES_MAX);
        assert_int_equal(entries[i].at.index, at + 1);
        owner->entries[at] = entries[i];
        if (!entries[i].is_term) {
            size_t size = entries[i].size < 31 ? entries[i].size : 31;
            memcpy(owner->texts[at], entries[i].bytes, size);
            owner->texts[at][size] = '\0';
        }
    }
    return CADRE_OK;
}

static void on_known(void *user, const struct replica_known *known)
{
    struct owner *owner = user;
    owner->known = *known;
    owner->knows = true;
}

static cadre_status on_discard(void *user, struct cadre_error *error)
{
    struct owner *owner = user;
    (void)error;
    owner->entry_count = 0;
    return CADRE_OK;
}

static void on_fetch(void *user, const struct replica_snapshot *snapshot)
{
    struct owner *owner = user;
    const struct file *file = &owner->rig->file;
    struct leadership_position at = {.index = 0};
    if (memcmp(file->snapshot.sha256, snapshot->sha256, sizeof snapshot->sha256) == 0) {
        at = snapshot->at;
        memcpy(owner->entries, file->entries, sizeof file->entries);
        memcpy(owner->texts, file->texts, sizeof file->texts);
        assert_true(at.index > owner->entry_count);
        owner->entry_count = at.index;
    }
    replica_snapshot_installed(owner->replica, &at);
}

static void on_make(void *user, const struct leadership_position *at)
{
    struct owner *owner = user;
    struct file *file = &owner->rig->file;
    struct replica_snapshot snapshot = {.at = *at, .size = 1};
    assert_true(owner->leads);
    assert_int_equal(at->index, owner->entry_count);
    assert_true(log_hash_equal(&at->hash, &owner->entries[at->index - 1].at.hash));
    owner->made++;
    if (owner->fails_to_make > 0) {
        owner->fails_to_make--;
        snapshot.at.index = 0;
    } else {
        snapshot.sha256[0] = (uint8_t)at->index;
        memcpy(file->entries, owner->entries, sizeof file->entries);
        memcpy(file->texts, owner->texts, sizeof file->texts);
        file->snapshot = snapshot;
    }
    replica_snapshot_held(owner->replica, &snapshot);
}

static void on_stored(void *user, uint64_t index, uint64_t before)
{
    struct owner *owner = user;
    assert_true(index > owner->stored && before >= owner->stored && before < index);
    owner->stored = index;
    owner->stored_before = before;
}

static void on_lead(void *user, uint64_t term)
{
    struct owner *owner = user;
    assert_true(owner->entry_count > 0 && owner->entries[owner->entry_count - 1].is_term);
    assert_int_equal(owner->entries[owner->entry_count - 1].at.term, term);
    assert_false(owner->leads);
    owner->leads = true;
    owner->logged = 0;
    append_more(owner);
}

static void on_logged(void *user, uint64_t ticket)
{
    struct owner *owner = user;
    assert_true(ticket > owner->logged && ticket <= owner->appended);
    owner->logged = ticket;
    append_more(owner);
}

static void on_no_room(void *user, bool leads, const struct cadre_error *why)
{
    struct owner *owner = user;
    assert_string_equal(why->text, "the disk is full");
    owner->no_room++;
    owner->left_for_room = leads;
}

static void on_suspend(void *user)
{
    struct owner *owner = user;
    owner->suspended = true;
}

static void on_resume(void *user)
{
    struct owner *owner = user;
    owner->suspended = false;
}

static void on_step_down(void *user, const char *text)
{
    struct owner *owner = user;
    owner->leads = false;
    owner->stepped_down = true;
    snprintf(owner->text, sizeof owner->text, "%s", text);
}

static void on_refuse(void *user, const char *text)
{
    struct owner *owner = user;
    owner->refused = true;
    snprintf(owner->text, sizeof owner->text, "%s", text);
}

static void on_leader(void *user, const struct leader_value *leader)
{
    struct owner *owner = user;
    owner->leaders_seen++;
    owner->leader = *leader;
}

static const struct replica_ops ops = {.apply = on_apply,
    .store_known = on_known,
    .discard = on_discard,
    .fetch_snapshot = on_fetch,
    .make_snapshot = on_make,
    .snapshot_stored = on_stored,
    .lead = on_lead,
    .logged = on_logged,
    .no_room = on_no_room,
    .suspend = on_suspend,
    .resume = on_resume,
    .step_down = on_step_down,
    .refuse = on_refuse,
    .leader_changed = on_leader};

struct replica_options options_of(struct owner *owner)
{
    struct replica_options options = {.etcd = owner->rig->etcd,
        .name = owner->name,
        .addresses = "10.0.0.1:7000",
        .version = "1.2",
        .format_max = 1,
        .lease_us = owner->lease_us != 0 ? owner->lease_us : LEASE_US,
        .drift_ppm = 10000,
        .margin_us = 10 * CADRE_US_PER_MS,
        .lag_us = 5 * CADRE_US_PER_MS,
        .tickets_max = 8,
        .snapshot_bytes = owner->snapshot_bytes != 0 ? owner->snapshot_bytes : UINT64_MAX,
        .snapshot_us = UINT64_MAX,
        .keep_us = owner->keep_us,
        .ops = &ops,
        .user = owner};
    memset(options.secret, owner->name[1], sizeof options.secret);
    if (owner->knows) {
        options.has_cluster = true;
        options.cluster_id = owner->known.cluster_id;
        options.etcd_id = owner->known.etcd_id;
        options.term_seen = owner->known.term;
        options.applied = owner->entry_count > 0
                              ? owner->entries[owner->entry_count - 1].at
                              : (struct leadership_position){.hash = owner->known.hash};
    }
    return options;
}

void owner_start(struct rig *rig, size_t i)
{
    struct owner *owner = &rig->owners[i];
    struct cadre_error error;
    owner->rig = rig;
    snprintf(owner->name, sizeof owner->name, "c%zu", i);
    owner->leads = owner->stepped_down = owner->suspended = false;
    owner->appended = 0;
    const struct replica_options options = options_of(owner);
    assert_ok(replica_open(rig->loop, &options, &owner->replica, &error), &error);
}

void owner_stop(struct owner *owner)
{
    replica_close(owner->replica);
    owner->replica = NULL;
}

int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    assert_int_equal(rpc_loop_open(&rig->loop, NULL), CADRE_OK);
    rig->etcd = fake_open(rig->loop);
    for (size_t i = 0; i < REPLICAS; i++) {
        rig->owners[i].room = ENTRIES_MAX;
    }
    *state = rig;
    return 0;
}

int rig_close(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < REPLICAS; i++) {
        owner_stop(&rig->owners[i]);
    }
    rpc_loop_close(rig->loop);
    fake_close(rig->etcd);
    free(rig);
    return 0;
}

/* ---- conditions ---- */

bool leads(void *user)
{
    const struct owner *owner = user;
    return owner->leads && !owner->suspended;
}

bool has_ended(void *user)
{
    const struct owner *owner = user;
    return owner->stepped_down || owner->refused;
}

bool is_done(void *user)
{
    const struct owner *owner = user;
    return (owner->leads && owner->appends_left == 0 && owner->logged == owner->appended) ||
           has_ended(user);
}

bool all_have_the_same(void *user)
{
    const struct rig *rig = user;
    size_t count = rig->owners[0].entry_count;
    for (size_t i = 1; i < REPLICAS; i++) {
        if (rig->owners[i].replica != NULL && rig->owners[i].entry_count != count) {
            return false;
        }
    }
    return true;
}

void run_until(struct owner *owner, bool (*check)(void *user))
{
    fake_run_until(owner->rig->loop, check, owner);
}

void check_same(const struct rig *rig)
{
    const struct owner *one = &rig->owners[0];
    for (size_t i = 1; i < REPLICAS; i++) {
        const struct owner *other = &rig->owners[i];
        for (size_t k = 0; other->replica != NULL && k < other->entry_count && k < one->entry_count;
             k++) {
            assert_string_equal(one->texts[k], other->texts[k]);
            assert_true(log_hash_equal(&one->entries[k].at.hash, &other->entries[k].at.hash));
        }
    }
}
