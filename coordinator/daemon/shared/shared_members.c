/* SPDX-License-Identifier: Apache-2.0
 * A timer, and one transaction at a time: a read of the own key and of all, until the name is this
 * process's, then a put that is guarded by the own key's revision, and a read of all. */
#include "coordinator/daemon/shared/shared_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/etcd/etcd.h"
#include "common/pure/assert.h"
#include "coordinator/daemon/shared/contents_folder.h"
#include "coordinator/daemon/shared/member_name.h"
#include "coordinator/daemon/shared/members_seen.h"
#include "coordinator/daemon/shared/nonce_file.h"

#define FOLDER     "member/"
#define FOLDER_END "member0" /* the first key behind it */

/* The lease of leadership, within these bounds. */
#define PERIOD_MIN_US CADRE_US_PER_S
#define PERIOD_MAX_US (10 * CADRE_US_PER_S)
#define LOOK_PART     6 /* of a period: between looks at a name that is not its own yet */
#define PAUSE_PART    2 /* after a failure */
#define AWAY_PERIODS  3 /* in which it wrote nothing: it is not there */

struct shared_members {
    struct daemon *daemon;
    struct etcd *etcd;
    struct shared_members_owner owner;
    struct wire_buffer packed;
    uv_timer_t timer;
    uint64_t period_us;
    struct members_seen seen;
    struct member_name name;
    char waiting[CADRE_ERROR_TEXT_BYTES]; /* for its name, and why; "": it does not */
    bool may_write;                       /* the name is free, or its own */
    bool is_named;                        /* it was written: the name is its own */
    int64_t contents_revision;            /* of that key; 0: there is none */
    bool is_noted;                        /* the file has this process */
    bool writes;                          /* the transaction in flight does */
    bool in_flight;
    bool again; /* something changed while a transaction was in flight */
    bool is_refused;
    bool closed;
    bool timer_closed;
};

static void free_when_idle(struct shared_members *members)
{
    if (!members->closed || !members->timer_closed || members->in_flight) {
        return;
    }
    members_seen_free(&members->seen);
    wire_buffer_free(&members->packed);
    free(members);
}

/* ---- the own name ---- */

static void begin(struct shared_members *members);
static void on_timer(uv_timer_t *timer);

/* Keys have no text of people in them. */
static bool own_key(const char *name, char ret_key[ETCD_KEY_BYTES])
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    if (sha256_of(name, strlen(name), &hash, NULL) != CADRE_OK) {
        return false;
    }
    sha256_hex(&hash, hex);
    snprintf(ret_key, ETCD_KEY_BYTES, FOLDER "%.16s", hex);
    return true;
}

/* Before the first write, so that a process of this state directory that follows, however this one
 * ends, knows whichever of the two the key names. */
static void note_process(struct shared_members *members)
{
    const struct member_name *name = &members->name;
    const struct log_nonce processes = {.high = name->found, .low = name->process};
    struct cadre_error error = {0};
    members->is_noted = true;
    if (nonce_file_write(members->daemon->options.state_dir, NONCE_FILE_PROCESS, processes,
            &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "ledger",
            "when it is started again, this coordinator waits for its own name",
            LOG_STR("reason", error.text));
    }
}

static void say_that_it_waits(struct shared_members *members, const struct coordinator_info *other)
{
    if (members->waiting[0] != '\0') {
        return;
    }
    snprintf(members->waiting, sizeof members->waiting,
        "the name %s is that of a coordinator at %s: this one is no candidate until that has "
        "written nothing to etcd for %u s",
        other->name, other->addresses, (unsigned)(members->name.away_us / CADRE_US_PER_S));
    log_event(LOG_LEVEL_WARNING, "ledger", "this coordinator waits for its name",
        LOG_STR("reason", members->waiting));
}

static void refuse_name(struct shared_members *members, const struct coordinator_info *other)
{
    char text[CADRE_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text,
        "another coordinator has the name %s, the one at %s, and is alive, for it has written to "
        "etcd while this one waited: give each a --name of its own, or stop the other one",
        other->name, other->addresses);
    members->is_refused = true;
    members->waiting[0] = '\0';
    uv_timer_stop(&members->timer);
    members->owner.refused(members->daemon, text);
}

/* The own key as it is; none: `pair` is NULL. */
static void judge(struct shared_members *members, const struct etcd_pair *pair)
{
    struct leader_response other = {.self = {.name = "", .addresses = ""}};
    if (pair != NULL && !members_seen_read(&members->seen, pair, &other)) {
        other.self = (struct coordinator_info){.name = "", .addresses = ""};
    }
    switch (member_name_found(&members->name, pair != NULL ? pair->mod_revision : 0,
        other.self.process, clock_boot_us())) {
    case MEMBER_NAME_FREE:
        members->waiting[0] = '\0';
        members->may_write = true;
        members->again = true;
        break;
    case MEMBER_NAME_WAITS:
        members->may_write = false;
        say_that_it_waits(members, &other.self);
        break;
    case MEMBER_NAME_TAKEN:
        members->may_write = false;
        refuse_name(members, &other.self);
        break;
    }
}

/* ---- writing and reading ---- */

/* The first turn after so long, then as often as its state asks for. */
static void start_timer(struct shared_members *members, uint64_t first_us)
{
    uint64_t period_us = members->is_named ? members->period_us : members->period_us / LOOK_PART;
    uv_timer_start(
        &members->timer, on_timer, first_us / CADRE_US_PER_MS, period_us / CADRE_US_PER_MS);
}

/* What was written first makes the name its own. */
static void note_written(struct shared_members *members, int64_t revision)
{
    member_name_written(&members->name, revision);
    if (!members->is_named) {
        members->is_named = true;
        start_timer(members, members->period_us);
        members->owner.named(members->daemon);
    }
}

static void take_contents(struct shared_members *members, const struct etcd_result *result)
{
    const struct etcd_pair *pair = result->pair_count == 1 ? &result->pairs[0] : NULL;
    members->contents_revision = pair != NULL ? pair->mod_revision : 0;
    members->owner.contents_read(members->daemon, pair != NULL ? pair->value.data : NULL,
        pair != NULL ? pair->value.size : 0);
}

/* The last results are the folder of contents and all. Of what was written the first is the put,
 * else the own key. */
static void take_answer(struct shared_members *members, const struct etcd_answer *answer)
{
    const struct etcd_result *own = &answer->results[0];
    take_contents(members, &answer->results[answer->result_count - 2]);
    members_seen_take(&members->seen, &answer->results[answer->result_count - 1]);
    if (members->writes && answer->succeeded) {
        note_written(members, answer->revision);
    } else {
        judge(members, own->pair_count == 1 ? &own->pairs[0] : NULL);
    }
}

static void on_answer(const struct etcd_answer *answer, void *user)
{
    struct shared_members *members = user;
    members->in_flight = false;
    if (members->closed) {
        free_when_idle(members);
        return;
    }
    if (answer->status == CADRE_OK && answer->result_count > 2) {
        take_answer(members, answer);
    } else if (!members->is_named) {
        start_timer(members, members->period_us / PAUSE_PART);
        members->owner.unanswered(members->daemon);
    }
    if (members->again && !members->in_flight && !members->is_refused) {
        begin(members);
    }
}

/* Its own key; of the one that leads also what is not written any more, and which folder of
 * contents all are to have. Returns how many operations there are. */
static size_t write_own(struct shared_members *members, const struct coordinator_info *self,
    const char *key, struct etcd_operation *operations)
{
    const char *due = members->owner.contents_due(members->daemon);
    operations[0] = (struct etcd_operation){
        .kind = ETCD_PUT, .key = key, .value = {members->packed.bytes, members->packed.size}};
    size_t count = self->leads ? members_seen_forget(&members->seen, key, operations, 1) : 1;
    if (due[0] != '\0') {
        operations[count++] = (struct etcd_operation){
            .kind = ETCD_PUT, .key = CONTENTS_FOLDER_KEY, .value = {due, strlen(due)}};
    }
    return count;
}

static void begin(struct shared_members *members)
{
    struct leader_response own;
    struct cadre_error error;
    char key[ETCD_KEY_BYTES];
    members->owner.describe(members->daemon, &own);
    wire_buffer_clear(&members->packed);
    members->again = false;
    if (!own_key(own.self.name, key) ||
        wire_pack_leader_response(&own, &members->packed, &error) != CADRE_OK) {
        return;
    }
    if (members->may_write && !members->is_noted) {
        note_process(members);
    }
    static const struct etcd_operation contents = {.kind = ETCD_GET, .key = CONTENTS_FOLDER_KEY};
    static const struct etcd_operation all = {
        .kind = ETCD_GET, .key = FOLDER, .end = FOLDER_END, .limit = LIMIT_COORDINATORS};
    const struct etcd_operation read[] = {{.kind = ETCD_GET, .key = key}, contents, all};
    const struct etcd_comparison as_found[] = {
        {.key = key, .what = ETCD_MOD_REVISION, .number = members->name.revision},
        {.key = CONTENTS_FOLDER_KEY,
            .what = ETCD_MOD_REVISION,
            .number = members->contents_revision}};
    struct etcd_operation written[LIMIT_COORDINATORS + 4];
    size_t count = write_own(members, &own.self, key, written);
    written[count++] = contents;
    written[count++] = all;
    const struct etcd_transaction write = {.comparisons = as_found,
        .comparison_count = CADRE_COUNT_OF(as_found),
        .then = written,
        .then_count = count,
        .otherwise = read,
        .otherwise_count = CADRE_COUNT_OF(read)};
    const struct etcd_transaction look = {.then = read, .then_count = CADRE_COUNT_OF(read)};
    const struct etcd_then then = {.deadline_us = clock_monotonic_us() + members->period_us,
        .handler = on_answer,
        .user = members};
    members->writes = members->may_write;
    members->in_flight =
        etcd_transact(members->etcd, members->writes ? &write : &look, &then, &error) == CADRE_OK;
}

void shared_members_changed(struct shared_members *members)
{
    if (members == NULL || members->closed || !members->is_named || members->is_refused) {
        return;
    }
    if (members->in_flight) {
        members->again = true;
    } else {
        begin(members);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct shared_members *members = timer->data;
    if (!members->in_flight) {
        begin(members);
    }
}

/* ---- begin and end ---- */

/* The last two processes on this state directory are known by the file. */
static cadre_status open_name(struct shared_members *members, struct cadre_error *error)
{
    struct member_name *name = &members->name;
    struct log_nonce processes;
    CADRE_TRY(
        nonce_file_read(members->daemon->options.state_dir, NONCE_FILE_PROCESS, &processes, error));
    *name = (struct member_name){
        .known = {processes.high, processes.low}, .away_us = AWAY_PERIODS * members->period_us};
    while (name->process == 0) {
        if (RAND_bytes((unsigned char *)&name->process, sizeof name->process) != 1) {
            return cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
        }
    }
    return CADRE_OK;
}

cadre_status shared_members_open(struct daemon *daemon, struct etcd *etcd,
    const struct shared_members_owner *owner, struct shared_members **ret_members,
    struct cadre_error *error)
{
    struct shared_members *members = calloc(1, sizeof *members);
    if (members == NULL || !members_seen_init(&members->seen)) {
        free(members);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of coordinators");
    }
    uint64_t period_us = daemon->options.ha.lease_us;
    members->daemon = daemon;
    members->etcd = etcd;
    members->owner = *owner;
    members->period_us = period_us < PERIOD_MIN_US   ? PERIOD_MIN_US
                         : period_us > PERIOD_MAX_US ? PERIOD_MAX_US
                                                     : period_us;
    cadre_status status = open_name(members, error);
    if (status != CADRE_OK) {
        members_seen_free(&members->seen);
        free(members);
        return status;
    }
    uv_timer_init(rpc_loop_uv(daemon->loop), &members->timer);
    members->timer.data = members;
    start_timer(members, 0);
    *ret_members = members;
    return CADRE_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct shared_members *members = handle->data;
    members->timer_closed = true;
    free_when_idle(members);
}

void shared_members_close(struct shared_members *members)
{
    if (members != NULL) {
        members->closed = true;
        uv_close((uv_handle_t *)&members->timer, on_timer_closed);
    }
}

/* ---- what is known ---- */

uint64_t shared_members_process(const struct shared_members *members)
{
    return members != NULL ? members->name.process : 0;
}

const char *shared_members_waiting(const struct shared_members *members)
{
    return members != NULL ? members->waiting : "";
}

uint32_t shared_members_format(const struct shared_members *members, uint64_t for_us)
{
    bool known = members != NULL && members->is_named && members->seen.format > 0 &&
                 clock_boot_us() - members->seen.format_us >= for_us;
    return known ? members->seen.format : 0;
}

size_t shared_members_list(const struct shared_members *members,
    const struct coordinator_info *self, const char *leader, struct wire_arena *arena,
    struct coordinator_info ret_infos[LIMIT_COORDINATORS])
{
    static const struct members_seen none;
    uint64_t away_us = members != NULL ? AWAY_PERIODS * members->period_us : 0;
    return members_seen_list(
        members != NULL ? &members->seen : &none, self, leader, away_us, arena, ret_infos);
}
