/* SPDX-License-Identifier: Apache-2.0
 * Replicas on one loop and one fake etcd: they elect a leader, apply the same entries in the same
 * order, and lose none that was reported as logged, whichever call of etcd fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "coordinator/replication/replica.h"
#include "fake_etcd.h"

/* So long that no replica takes over because this program was held up; a replica that is alone,
 * whose calls fail, repeats them sooner with a shorter one. */
#define LEASE_US       (60 * CADRE_US_PER_S)
#define SHORT_LEASE_US (600 * CADRE_US_PER_MS)

#define ENTRIES_MAX 256
#define REPLICAS    3

/* A replica and the copy of the ledger that its owner has: the first bytes of each entry. */
struct owner {
    struct replica *replica;
    struct rig *rig;
    char name[8];
    struct replica_entry entries[ENTRIES_MAX];
    char texts[ENTRIES_MAX][32];
    size_t entry_count;
    struct replica_known known;
    bool knows, leads, suspended, stepped_down, refused, apply_fails;
    uint64_t lease_us;
    unsigned appends_left; /* that it makes while it leads */
    unsigned appended;
    uint64_t logged;
    unsigned leaders_seen;
    struct leader_value leader;
    char text[600];
};

struct rig {
    struct rpc_loop *loop;
    struct etcd *etcd;
    struct owner owners[REPLICAS];
};

static void append_more(struct owner *owner)
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

static cadre_status on_apply(
    void *user, const struct replica_entry *entries, size_t count, struct cadre_error *error)
{
    struct owner *owner = user;
    if (owner->apply_fails) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the disk is full");
    }
    for (size_t i = 0; i < count; i++) {
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

static void on_fetch(void *user, const struct leadership_position *after)
{
    struct owner *owner = user;
    (void)after;
    replica_snapshot_installed(owner->replica, &(struct leadership_position){.index = 0});
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
    .lead = on_lead,
    .logged = on_logged,
    .suspend = on_suspend,
    .resume = on_resume,
    .step_down = on_step_down,
    .refuse = on_refuse,
    .leader_changed = on_leader};

static struct replica_options options_of(struct owner *owner)
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

static void owner_start(struct rig *rig, size_t i)
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

static void owner_stop(struct owner *owner)
{
    replica_close(owner->replica);
    owner->replica = NULL;
}

static int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    assert_int_equal(rpc_loop_open(&rig->loop, NULL), CADRE_OK);
    rig->etcd = fake_open(rig->loop);
    *state = rig;
    return 0;
}

static int rig_close(void **state)
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

static bool leads(void *user)
{
    const struct owner *owner = user;
    return owner->leads && !owner->suspended;
}

static bool has_ended(void *user)
{
    const struct owner *owner = user;
    return owner->stepped_down || owner->refused;
}

static bool is_done(void *user)
{
    const struct owner *owner = user;
    return (owner->leads && owner->appends_left == 0 && owner->logged == owner->appended) ||
           has_ended(user);
}

static bool all_have_the_same(void *user)
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

static void run_until(struct owner *owner, bool (*check)(void *user))
{
    fake_run_until(owner->rig->loop, check, owner);
}

static void check_same(const struct rig *rig)
{
    const struct owner *one = &rig->owners[0];
    for (size_t i = 1; i < REPLICAS; i++) {
        const struct owner *other = &rig->owners[i];
        for (size_t k = 0; other->replica != NULL && k < other->entry_count; k++) {
            assert_string_equal(one->texts[k], other->texts[k]);
            assert_true(log_hash_equal(&one->entries[k].at.hash, &other->entries[k].at.hash));
        }
    }
}

/* ---- tests ---- */

static void one_leads_and_the_others_follow(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->appends_left = 30;
    owner_start(rig, 0);
    run_until(first, is_done);
    assert_int_equal(first->entry_count, 31);
    assert_string_equal(first->texts[30], "c0-30");
    owner_start(rig, 1);
    owner_start(rig, 2);
    first->appends_left = 10;
    append_more(first);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    for (size_t i = 0; i < REPLICAS; i++) { /* that of who created the cluster */
        assert_int_equal(rig->owners[i].known.secret[REPLICA_SECRET_BYTES - 1], '0');
    }
    assert_string_equal(rig->owners[1].leader.name, "c0");
    assert_string_equal(rig->owners[2].leader.addresses, "10.0.0.1:7000");
    assert_true(replica_may_send_until_us(first->replica) > 0);
    assert_int_equal(replica_may_send_until_us(rig->owners[1].replica), 0);
    struct replica_view view;
    replica_show(rig->owners[1].replica, &view);
    assert_int_equal(view.core.state, LEADERSHIP_FOLLOWER);
    assert_string_equal(view.leader->name, "c0");
}

/* Who leaves has its tickets logged; the other does not wait for the lease. */
static void a_leader_that_leaves(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    struct owner *second = &rig->owners[1];
    owner_start(rig, 0);
    run_until(first, leads);
    owner_start(rig, 1);
    first->appends_left = 5;
    append_more(first);
    replica_leave(first->replica);
    run_until(first, has_ended);
    assert_int_equal(first->logged, 5);
    assert_string_equal(first->text, "it has left");
    uint64_t ticket = 0;
    assert_int_equal(replica_append(first->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_FAILED_PRECONDITION);
    run_until(second, leads);
    assert_int_equal(second->entry_count, first->entry_count + 1);
    assert_int_equal(second->entries[second->entry_count - 1].at.term, 2);
    assert_string_equal(second->leader.name, "c1");
}

static void a_long_entry_reaches_the_others(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    size_t size = 3 * 1024 * 1024;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'b', size);
    owner_start(rig, 0);
    owner_start(rig, 1);
    run_until(first, leads);
    uint64_t ticket = 0;
    struct cadre_error error;
    assert_ok(
        replica_append(first->replica, bytes, size, LEADERSHIP_SYNC, &ticket, &error), &error);
    first->appended++;
    free(bytes);
    run_until(first, is_done);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    assert_int_equal(rig->owners[1].entries[rig->owners[1].entry_count - 1].size, size);
}

static void what_is_no_entry(void **state)
{
    struct rig *rig = *state;
    struct owner *owner = &rig->owners[0];
    uint64_t ticket = 0;
    owner_start(rig, 0);
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_FAILED_PRECONDITION);
    run_until(owner, leads);
    assert_int_equal(replica_append(owner->replica, "", 0, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_INVALID_ARGUMENT);
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_CONFIRM, &ticket, NULL),
        CADRE_INVALID_ARGUMENT);
    for (unsigned i = 0; i < 8; i++) { /* tickets_max */
        assert_int_equal(
            replica_append(owner->replica, NULL, 0, LEADERSHIP_CONFIRM, &ticket, NULL), CADRE_OK);
        owner->appended++;
    }
    assert_int_equal(replica_append(owner->replica, "x", 1, LEADERSHIP_SYNC, &ticket, NULL),
        CADRE_RESOURCE_EXHAUSTED);
    run_until(owner, is_done);
    assert_int_equal(owner->entry_count, 1); /* confirmations have no entry */
}

static void an_etcd_that_was_put_back_is_refused(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    first->appends_left = 3;
    owner_start(rig, 0);
    run_until(first, is_done);
    owner_stop(first);
    fake_put(rig->etcd, "head", NULL, 0);
    fake_put(rig->etcd, "leader", NULL, 0);
    fake_put(rig->etcd, "cluster", NULL, 0);
    owner_start(rig, 0);
    run_until(first, has_ended);
    assert_true(first->refused);
    assert_non_null(strstr(first->text, "etcd holds no ledger beneath the prefix"));
}

/* As a version wrote it that kept no secret there. */
static void a_cluster_without_its_secret_is_refused(void **state)
{
    struct rig *rig = *state;
    owner_start(rig, 0);
    run_until(&rig->owners[0], leads);
    const struct fake_pair *cluster = fake_find(rig->etcd, "cluster");
    assert_non_null(cluster);
    fake_put(rig->etcd, "cluster", cluster->value, cluster->size - REPLICA_SECRET_BYTES - 2);
    owner_start(rig, 1);
    run_until(&rig->owners[1], has_ended);
    assert_true(rig->owners[1].refused);
    assert_non_null(strstr(rig->owners[1].text, "etcd's key cluster is damaged"));
    assert_false(rig->owners[1].knows);
}

static void a_copy_that_cannot_be_written(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    first->apply_fails = true;
    first->appends_left = 1;
    append_more(first);
    run_until(first, has_ended);
    assert_string_equal(first->text, "the disk is full");
    assert_int_equal(first->logged, 0);
    assert_int_equal(replica_may_send_until_us(first->replica), 0);
}

static void a_hello_that_is_ahead(void **state)
{
    struct rig *rig = *state;
    struct owner *first = &rig->owners[0];
    owner_start(rig, 0);
    run_until(first, leads);
    replica_hello_ahead(first->replica, 1, 0); /* its own */
    assert_true(replica_may_send_until_us(first->replica) > 0);
    replica_hello_ahead(first->replica, 9, 0);
    assert_int_equal(replica_may_send_until_us(first->replica), 0);
    run_until(first, has_ended);
    assert_true(first->refused);
    assert_non_null(strstr(first->text, "older ledger than a worker has seen"));
}

/* The nth call fails, in each way; what was logged is in the log once, in its order. */
static void fail_call(void **state, unsigned nth, enum fake_fault how)
{
    assert_int_equal(rig_open(state), 0);
    struct rig *rig = *state;
    struct owner *owner = &rig->owners[0];
    owner->appends_left = 6;
    owner->lease_us = SHORT_LEASE_US;
    rig->etcd->fail_at = nth;
    rig->etcd->fail_at_how = how;
    owner_start(rig, 0);
    run_until(owner, is_done);
    assert_false(has_ended(owner));
    size_t at = 0;
    for (size_t i = 0; i < owner->entry_count; i++) {
        char text[32];
        if (!owner->entries[i].is_term) {
            snprintf(text, sizeof text, "c0-%zu", ++at);
            assert_string_equal(owner->texts[i], text);
        }
    }
    assert_int_equal(at, 6);
    rig->etcd->fail_at = 0;
    owner_start(rig, 1);
    fake_run_until(rig->loop, all_have_the_same, rig);
    check_same(rig);
    rig_close(state);
}

static void each_call_fails_once(void **state)
{
    for (unsigned how = FAKE_REFUSED; how < FAKE_FAULTS; how++) {
        for (unsigned nth = 1; nth <= 10; nth++) {
            fail_call(state, nth, (enum fake_fault)how);
        }
    }
}

/* Memory that is refused once: it does not open, or does all the same. */
static void memory_that_is_refused(void **state)
{
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        assert_int_equal(rig_open(state), 0);
        struct rig *rig = *state;
        struct owner *owner = &rig->owners[0];
        owner->rig = rig;
        owner->appends_left = 2;
        owner->lease_us = SHORT_LEASE_US;
        snprintf(owner->name, sizeof owner->name, "c0");
        const struct replica_options options = options_of(owner);
        struct cadre_error error;
        fault_arm("replication.memory", nth);
        if (replica_open(rig->loop, &options, &owner->replica, &error) == CADRE_OK) {
            run_until(owner, leads);
            append_more(owner);
            run_until(owner, is_done);
            assert_false(has_ended(owner));
        } else {
            assert_int_equal(error.code, CADRE_RESOURCE_EXHAUSTED);
        }
        met = fault_disarm();
        rig_close(state);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_leads_and_the_others_follow),
        TEST(a_leader_that_leaves),
        TEST(a_long_entry_reaches_the_others),
        TEST(what_is_no_entry),
        TEST(an_etcd_that_was_put_back_is_refused),
        TEST(a_cluster_without_its_secret_is_refused),
        TEST(a_copy_that_cannot_be_written),
        TEST(a_hello_that_is_ahead),
        cmocka_unit_test(each_call_fails_once),
        cmocka_unit_test(memory_that_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
