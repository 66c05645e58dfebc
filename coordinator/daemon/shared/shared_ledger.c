/* SPDX-License-Identifier: Apache-2.0
 * Options, opening and closing. */
#include "coordinator/daemon/shared/shared_ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/daemon/shared/contents_mark.h"
#include "coordinator/daemon/shared/nonce_file.h"
#include "coordinator/daemon/shared/shared_state.h"

/* A leader that is beyond its time to send is suspended, so what waits for the log is what came
 * within a lease. */
#define TICKETS_MAX 65536
/* That no host's clock gains or loses against another one's, and what a look at it may be late. */
#define DRIFT_PPM 10000
#define MARGIN_US (50 * CADRE_US_PER_MS)
/* What may lag was kept back by the engine already. */
#define LAG_US (100 * CADRE_US_PER_MS)

/* It is printed, and compared by people. */
static cadre_status check_name(const char *name, struct cadre_error *error)
{
    size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return good > 0 && name[good] == '\0'
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "--name %.80s: a name has letters, digits, '-', '_' and '.'", name);
}

/* With TLS or without, because there may be a tunnel in between. */
static cadre_status check_advertised(const char *list, struct cadre_error *error)
{
    for (const char *at = list; at != NULL;) {
        char one[RPC_ADDRESS_TEXT_BYTES];
        struct rpc_address address;
        struct cadre_error why;
        size_t length = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)length, at);
        if (rpc_address_parse(one, RPC_ADDRESS_DIAL, true, &address, &why) != CADRE_OK) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "--advertise: %s", why.text);
        }
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return CADRE_OK;
}

/* Of an address that is served; a Unix socket is of use on this host, for tests. */
static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", strlen("unix:")) == 0;
}

/* Every address of this host, which names none. */
static bool is_wildcard(const char *address)
{
    static const char *const hosts[] = {"0.0.0.0:", "[::]:", "[::0]:", "[0::0]:", ":"};
    for (size_t i = 0; i < CADRE_COUNT_OF(hosts); i++) {
        if (strncmp(address, hosts[i], strlen(hosts[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Without --advertise one of these addresses is named to workers and clients. */
static cadre_status check_listened(const struct option_list *listen, struct cadre_error *error)
{
    const char *wildcard = NULL;
    for (size_t i = 0; i < listen->count; i++) {
        if (is_wildcard(listen->items[i])) {
            wildcard = listen->items[i];
        } else if (!is_unix(listen->items[i])) {
            return CADRE_OK;
        }
    }
    if (wildcard == NULL) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "--listen %s names no host, and workers, clients and the other coordinators have to know "
        "where this one is: give it --advertise HOST:PORT, an address of this host that they reach",

        wildcard);
}

cadre_status shared_ledger_check_options(
    const struct coordinator_options *options, struct cadre_error *error)
{
    const struct ha_options *ha = &options->ha;
    struct etcd_address address;
    if (ha->address == NULL) {
        return CADRE_OK;
    }
    if (options->contents_dir == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--ha needs --contents: a folder that all coordinators share or s3://BUCKET/PREFIX, "
            "because programs, checkpoints, outputs and logs of jobs are not in etcd");
    }
    if (options->supersede) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--supersede is for a coordinator that leads alone: with --ha the log in etcd says "
            "which ledger counts");
    }
    if ((ha->tls.cert != NULL || ha->tls.key != NULL) && ha->tls.ca == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--ha-cert and --ha-key need --ha-ca FILE: without the CA of etcd's certificates there "
            "is no TLS to it");
    }
    if ((ha->user != NULL) != (ha->password_file != NULL)) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "--ha-user and --ha-password-file are given together");
    }
    if (ha->password_file != NULL && access(ha->password_file, R_OK) != 0) {
        return cadre_error_errno(
            error, errno, "--ha-password-file %s: cannot read this file", ha->password_file);
    }
    CADRE_TRY(ha->name != NULL ? check_name(ha->name, error) : CADRE_OK);
    CADRE_TRY(check_advertised(ha->advertise, error));
    CADRE_TRY(ha->advertise == NULL ? check_listened(&options->listen, error) : CADRE_OK);
    struct cadre_error why = {0};
    return etcd_address_parse(ha->address, ha->tls.ca != NULL, &address, &why) == CADRE_OK
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT, "--ha: %s", why.text);
}

/* Of several addresses that are served the first one that other hosts can use, else a socket. */
static const char *find_served(const struct daemon *daemon)
{
    for (const char *at = daemon->addresses; at != NULL;) {
        if (!is_unix(at) && !is_wildcard(at)) {
            return at;
        }
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    return daemon->addresses;
}

static void find_name(struct shared_ledger *shared)
{
    const struct daemon *daemon = shared->daemon;
    const char *name = daemon->options.ha.name;
    const char *all =
        daemon->options.ha.advertise != NULL ? daemon->options.ha.advertise : find_served(daemon);
    snprintf(shared->own, sizeof shared->own, "%.*s", (int)strcspn(all, ","), all);
    if (name != NULL) {
        snprintf(shared->name, sizeof shared->name, "%s", name);
    } else if (gethostname(shared->name, sizeof shared->name - 1) != 0) {
        snprintf(shared->name, sizeof shared->name, "coordinator");
    }
}

static cadre_status open_replica(struct shared_ledger *shared, struct cadre_error *error)
{
    struct daemon *daemon = shared->daemon;
    const struct ha_options *ha = &daemon->options.ha;
    struct replica_options options = {.etcd = shared->etcd.etcd,
        .name = shared->name,
        .addresses = ha->advertise != NULL ? ha->advertise : shared->own,
        .version = CADRE_VERSION,
        .waits = true,
        .format_max = ledger_format_newest(),
        .accept_restored = ha->accept_restored,
        .lease_us = ha->lease_us,
        .drift_ppm = DRIFT_PPM,
        .margin_us = MARGIN_US,
        .lag_us = LAG_US,
        .tickets_max = TICKETS_MAX,
        .snapshot_bytes = ha->snapshot_bytes,
        .snapshot_us = ha->snapshot_us,
        .keep_us = ha->keep_us,
        .ops = &shared_replica_ops,
        .user = shared};
    CADRE_TRY(ledger_copy_describe(&shared->copy, &options, error));
    ledger_copy_known(&shared->copy, &shared->known);
    const char *contents = daemon->options.contents_dir;
    cadre_status status = options.has_cluster
                              ? contents_mark_check(contents, options.cluster_id, error)
                              : contents_mark_read(contents, &options.contents_id, error);
    if (!options.has_cluster || !shared_contents_away(daemon, status)) {
        CADRE_TRY(status); /* else it follows, and is no candidate before it has looked */
    }
    return replica_open(daemon->loop, &options, &shared->replica, error);
}

static cadre_status open_snapshots(struct shared_ledger *shared, struct cadre_error *error)
{
    struct daemon *daemon = shared->daemon;
    const struct snapshot_files_owner owner = shared_snapshot_owner(shared);
    return snapshot_files_open(daemon->options.contents_dir, daemon->options.state_dir,
        &daemon->file_pool, &owner, &shared->snapshots, error);
}

static void on_resigned(void *user, cadre_status status, const char *text)
{
    const struct shared_ledger *shared = user;
    log_event(LOG_LEVEL_INFO, "ledger", text, LOG_END);
    if (status == CADRE_OK) {
        nonce_file_remove(shared->daemon->options.state_dir, NONCE_FILE_LEADS);
    }
}

/* The process that led on this state directory is dead, because its lock is ours. */
static cadre_status resign_for_dead(struct shared_ledger *shared, struct cadre_error *error)
{
    const struct daemon *daemon = shared->daemon;
    struct resign_options options = {.etcd = shared->etcd.etcd,
        .lease_us = daemon->options.ha.lease_us,
        .patience_us = daemon->options.ha.lease_us,
        .done = on_resigned,
        .user = shared};
    CADRE_TRY(nonce_file_read(daemon->options.state_dir, NONCE_FILE_LEADS, &options.nonce, error));
    bool led = !log_nonce_equal(options.nonce, (struct log_nonce){0});
    return led ? resign_open(daemon->loop, &options, &shared->resign, error) : CADRE_OK;
}

static void close_shared(struct shared_ledger *shared)
{
    waiting_joins_close(&shared->joins);
    shared_members_close(shared->members);
    snapshot_files_close(shared->snapshots);
    resign_close(shared->resign);
    replica_close(shared->replica);
    shared_etcd_close(&shared->etcd);
    ledger_copy_close(&shared->copy);
    wire_buffer_free(&shared->packed);
}

/* The memory of a timer and of the joins' timer is used until the loop has run again. */
static void free_deferred(uv_handle_t *handle)
{
    free(handle->data);
}

cadre_status shared_ledger_open(struct daemon *daemon, struct store *store,
    const struct shared_ledger_owner *owner, struct cadre_error *error)
{
    struct shared_ledger *shared = calloc(1, sizeof *shared);
    if (shared == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a shared ledger");
    }
    shared->daemon = daemon;
    shared->owner = *owner;
    shared_note_leading(shared, false);
    shared->copy = (struct ledger_copy){.path = daemon->ledger_path, .store = store};
    find_name(shared);
    waiting_joins_open(&shared->joins, rpc_loop_uv(daemon->loop));
    cadre_status status = shared_etcd_open(daemon->loop, &daemon->options.ha, &shared->etcd, error);
    if (status == CADRE_OK) {
        status = open_replica(shared, error);
    }
    if (status == CADRE_OK) {
        status = open_snapshots(shared, error);
    }
    if (status == CADRE_OK) {
        status = resign_for_dead(shared, error);
    }
    if (status == CADRE_OK) {
        status = shared_members_open(
            daemon, shared->etcd.etcd, &shared_members_table, &shared->members, error);
    }
    shared_calls_begin(shared);
    daemon->shared = shared;
    daemon->refuse_page = shared_refuse_page;
    if (status != CADRE_OK) {
        shared->copy.store = NULL; /* stays the caller's */
        shared_ledger_close(daemon);
        return status;
    }
    log_event(LOG_LEVEL_INFO, "ledger", "the ledger is in etcd, and this coordinator follows",
        LOG_STR("etcd", daemon->options.ha.address), LOG_STR("name", shared->name));
    return CADRE_OK;
}

void shared_ledger_close(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    if (shared == NULL) {
        return;
    }
    /* libuv ends handles in reverse order, so this one frees the memory of all. */
    uv_close((uv_handle_t *)&shared->look, free_deferred);
    snapshot_files_close(shared->snapshots); /* before the store that it copies */
    shared->snapshots = NULL;
    shared_reader_close(shared);
    if (daemon->engine == NULL && shared->copy.store != NULL) {
        shared->copy.store->ops->close(shared->copy.store);
    }
    close_shared(shared);
    daemon->shared = NULL;
}
