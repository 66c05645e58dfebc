/* SPDX-License-Identifier: Apache-2.0
 * coordinator/replication as a test of real etcd uses it: a replica whose copy of the ledger is a
 * list in memory. While it leads it appends numbered entries.
 *
 *   replica_driver ADDRESS NAME LEASE_MS [FOLDER SNAPSHOT_BYTES]
 *
 * With a folder for snapshots, which all replicas share, entries are trimmed as soon as may be.
 *
 *   append BYTES      one entry of so many bytes, if it leads
 *   leave             it ends in order
 *
 * A line for each thing that happens, with tabs between; times are CLOCK_BOOTTIME in microseconds:
 *
 *   applied INDEX TERM HASH TEXT      the first bytes of the entry
 *   lead TERM NOW NONCE  logged TEXT         may NOW UNTIL (0: it may send nothing)
 *   suspend              resume              leader NAME TERM LEFT
 *   known ID TERM SECRET                     of the cluster
 *   installed INDEX                          a snapshot; its entries are printed as applied
 *   stored INDEX TERM HASH SHA256 SIZE       a snapshot
 *   step_down TEXT       refused TEXT        and it exits, with 3 or 4 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/pure/assert.h"
#include "coordinator/replication/replica.h"

#define APPEND_EVERY_MS 10
#define TICKETS_MAX     64
#define TEXT_BYTES      48
#define COMMAND_BYTES   256
#define LINE_BYTES      128
#define PATH_BYTES      1024

static struct {
    struct rpc_loop *loop;
    struct replica *replica;
    const char *name;
    const char *folder; /* of snapshots; NULL: none are made */
    /* The copy of the ledger: a line for each entry, as it is printed. */
    char (*lines)[LINE_BYTES];
    uint64_t line_count, lines_max;
    struct replica_snapshot made; /* the newest snapshot */
    uv_pipe_t input;
    uv_timer_t timer;
    char command[COMMAND_BYTES];
    size_t filled;
    uint64_t term; /* that it leads; 0: it does not */
    bool suspended;
    uint64_t count, logged;
    char texts[TICKETS_MAX][TEXT_BYTES]; /* of tickets that are not logged */
    uint64_t may_until_us;
    uint64_t might_us; /* the last end of a turn at which it might send */
    int status;
} driver;

/* ---- the copy of the ledger ---- */

static void print_hex(const uint8_t *bytes, size_t size)
{
    printf("\t");
    for (size_t i = 0; i < size; i++) {
        printf("%02x", bytes[i]);
    }
}

/* Adds and prints the line of the next entry. */
static void add_line(const char *line)
{
    if (driver.line_count == driver.lines_max) {
        driver.lines_max = driver.lines_max * 2 + 1024;
        driver.lines = realloc(driver.lines, driver.lines_max * LINE_BYTES);
        CADRE_ASSERT(driver.lines != NULL);
    }
    memset(driver.lines[driver.line_count], 0, LINE_BYTES);
    snprintf(driver.lines[driver.line_count++], LINE_BYTES, "%s", line);
    printf("%s\n", line);
}

static int open_snapshot(uint64_t index, int flags)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%" PRIu64, driver.folder, index);
    return open(path, flags, 0600);
}

/* What the file holds; false: it could not be read. */
static bool read_back(int fd, struct replica_snapshot *ret_snapshot)
{
    struct sha256 hash;
    if (lseek(fd, 0, SEEK_SET) != 0 ||
        sha256_of_fd(fd, &hash, &ret_snapshot->size, NULL) != CADRE_OK) {
        return false;
    }
    memcpy(ret_snapshot->sha256, hash.bytes, sizeof ret_snapshot->sha256);
    return true;
}

static void on_make(void *user, const struct leadership_position *at)
{
    (void)user;
    struct replica_snapshot snapshot = {.at = *at};
    size_t size = driver.line_count * LINE_BYTES;
    int fd = open_snapshot(at->index, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC);
    CADRE_ASSERT(fd >= 0 && at->index == driver.line_count);
    bool whole = write(fd, driver.lines, size) == (ssize_t)size && fsync(fd) == 0 &&
                 read_back(fd, &snapshot);
    close(fd);
    CADRE_ASSERT(whole);
    driver.made = snapshot;
    replica_snapshot_held(driver.replica, &snapshot);
}

static void on_fetch(void *user, const struct replica_snapshot *wanted)
{
    (void)user;
    struct replica_snapshot found = {.at = wanted->at};
    int fd = open_snapshot(wanted->at.index, O_RDONLY | O_CLOEXEC);
    CADRE_ASSERT(fd >= 0 && read_back(fd, &found));
    CADRE_ASSERT(found.size == wanted->size && lseek(fd, 0, SEEK_SET) == 0);
    CADRE_ASSERT(memcmp(found.sha256, wanted->sha256, sizeof found.sha256) == 0);
    char line[LINE_BYTES];
    for (uint64_t i = 0; i < wanted->at.index; i++) {
        ssize_t got = read(fd, line, sizeof line);
        CADRE_ASSERT(got == (ssize_t)sizeof line);
        if (i >= driver.line_count) {
            add_line(line);
        }
    }
    close(fd);
    printf("installed\t%" PRIu64 "\n", wanted->at.index);
    replica_snapshot_installed(driver.replica, &wanted->at);
}

static void on_stored(void *user, uint64_t index, uint64_t before)
{
    (void)user;
    (void)before;
    const struct replica_snapshot *made = &driver.made;
    CADRE_ASSERT(made->at.index == index);
    printf("stored\t%" PRIu64 "\t%" PRIu64, index, made->at.term);
    print_hex(made->at.hash.bytes, sizeof made->at.hash.bytes);
    print_hex(made->sha256, sizeof made->sha256);
    printf("\t%" PRIu64 "\n", made->size);
}

/* ---- the owner's table ---- */

static cadre_status on_apply(void *user, const struct replica_entry *entries, size_t count,
    size_t *ret_applied, struct cadre_error *error)
{
    *ret_applied = count;
    (void)user;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        const struct replica_entry *entry = &entries[i];
        uint64_t hash = 0;
        memcpy(&hash, entry->at.hash.bytes, sizeof hash);
        size_t shown = entry->size < TEXT_BYTES - 1 ? entry->size : TEXT_BYTES - 1;
        const char *end = entry->is_term ? NULL : memchr(entry->bytes, ' ', shown);
        shown = end != NULL ? (size_t)(end - (const char *)entry->bytes) : shown;
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "applied\t%" PRIu64 "\t%" PRIu64 "\t%016" PRIx64 "\t%.*s",
            entry->at.index, entry->at.term, hash, entry->is_term ? 4 : (int)shown,
            entry->is_term ? "TERM" : (const char *)entry->bytes);
        add_line(line);
    }
    return CADRE_OK;
}

static void on_known(void *user, const struct replica_known *known)
{
    (void)user;
    printf("known\t%016" PRIx64 "%016" PRIx64 "\t%" PRIu64, known->cluster_id.high,
        known->cluster_id.low, known->term);
    print_hex(known->secret, sizeof known->secret);
    printf("\n");
}

static cadre_status on_discard(void *user, struct cadre_error *error)
{
    (void)user;
    return cadre_error_set(error, CADRE_INTERNAL, "no option asked for it");
}

static void on_lead(void *user, uint64_t term)
{
    (void)user;
    struct replica_view view;
    driver.term = term;
    replica_show(driver.replica, &view);
    printf("lead\t%" PRIu64 "\t%" PRIu64 "\t%016" PRIx64 "%016" PRIx64 "\n", term, clock_boot_us(),
        view.core.nonce.high, view.core.nonce.low);
}

static void on_logged(void *user, uint64_t ticket)
{
    (void)user;
    while (driver.logged < ticket) {
        driver.logged++;
        printf("logged\t%s\n", driver.texts[driver.logged % TICKETS_MAX]);
    }
}

static void on_suspend(void *user)
{
    (void)user;
    driver.suspended = true;
    printf("suspend\n");
}

static void on_resume(void *user)
{
    (void)user;
    driver.suspended = false;
    printf("resume\n");
}

static void end_with(const char *what, const char *text, int status)
{
    driver.term = 0;
    driver.status = status;
    printf("%s\t%s\n", what, text);
    rpc_loop_stop(driver.loop);
}

static void on_step_down(void *user, const char *text)
{
    (void)user;
    end_with("step_down", text, 3);
}

static void on_refuse(void *user, const char *text)
{
    (void)user;
    end_with("refused", text, 4);
}

static void on_leader(void *user, const struct leader_value *leader)
{
    (void)user;
    printf("leader\t%s\t%" PRIu64 "\t%d\n", leader->name, leader->leader.term, leader->leader.left);
}

static const struct replica_ops ops = {.apply = on_apply,
    .store_known = on_known,
    .discard = on_discard,
    .fetch_snapshot = on_fetch,
    .make_snapshot = on_make,
    .snapshot_stored = on_stored,
    .lead = on_lead,
    .logged = on_logged,
    .suspend = on_suspend,
    .resume = on_resume,
    .step_down = on_step_down,
    .refuse = on_refuse,
    .leader_changed = on_leader};

/* ---- what it appends ---- */

/* An entry that begins with its name; each seventh one is only a confirmation. */
static void append(size_t size)
{
    char text[TEXT_BYTES];
    uint64_t ticket = 0;
    if (driver.term == 0) {
        return;
    }
    bool confirms = size == 0 && driver.count % 7 == 6;
    int length = snprintf(text, sizeof text, "%s-%" PRIu64 "-%" PRIu64 "%s", driver.name,
        driver.term, driver.count + 1, confirms ? "-confirmed" : "");
    size = size > (size_t)length ? size : (size_t)length;
    char *bytes = malloc(size);
    CADRE_ASSERT(bytes != NULL);
    memset(bytes, ' ', size);
    memcpy(bytes, text, (size_t)length);
    enum leadership_ticket_kind kind = confirms                ? LEADERSHIP_CONFIRM
                                       : driver.count % 3 == 2 ? LEADERSHIP_LAGGING
                                                               : LEADERSHIP_SYNC;
    if (driver.count - driver.logged < TICKETS_MAX - 1) {
        snprintf(driver.texts[(driver.count + 1) % TICKETS_MAX], TEXT_BYTES, "%s", text);
        driver.count++; /* it may be logged before replica_append() returns */
        struct cadre_error error;
        if (replica_append(driver.replica, bytes, confirms ? 0 : size, kind, &ticket, &error) !=
            CADRE_OK) {
            driver.count--; /* it has left */
        } else {
            CADRE_ASSERT(ticket == driver.count);
        }
    }
    free(bytes);
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
    if (!driver.suspended) {
        append(0);
    }
}

/* ---- commands ---- */

static void run_command(const char *text)
{
    if (strcmp(text, "leave") == 0) {
        replica_leave(driver.replica);
    } else if (strncmp(text, "append ", 7) == 0) {
        append(strtoul(text + 7, NULL, 10));
    }
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    (void)handle;
    (void)wanted;
    *buffer = uv_buf_init(
        driver.command + driver.filled, (unsigned)(sizeof driver.command - driver.filled));
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    (void)buffer;
    if (count < 0) {
        uv_read_stop(stream);
        rpc_loop_stop(driver.loop);
        return;
    }
    driver.filled += (size_t)count;
    char *newline;
    while ((newline = memchr(driver.command, '\n', driver.filled)) != NULL) {
        size_t length = (size_t)(newline + 1 - driver.command);
        *newline = '\0';
        run_command(driver.command);
        driver.filled -= length;
        memmove(driver.command, driver.command + length, driver.filled);
    }
}

/* ---- begin and end ---- */

static void on_turn_end(void *user)
{
    (void)user;
    uint64_t now_us = clock_boot_us();
    uint64_t until_us = replica_may_send_until_us(driver.replica);
    if (until_us != driver.may_until_us) {
        driver.may_until_us = until_us;
        /* An owner sends at the ends of turns, so the last time at which it could was the turn
         * before this one. */
        printf(
            "may\t%" PRIu64 "\t%" PRIu64 "\n", until_us > 0 ? now_us : driver.might_us, until_us);
    }
    driver.might_us = now_us < until_us ? now_us : driver.might_us;
    fflush(stdout);
}

static cadre_status open_all(char **argv, struct etcd **ret_etcd, struct cadre_error *error)
{
    struct etcd_address address;
    CADRE_TRY(rpc_loop_open(&driver.loop, error));
    CADRE_TRY(etcd_address_parse(argv[1], false, &address, error));
    const struct etcd_options etcd_options = {.address = &address};
    CADRE_TRY(etcd_open(driver.loop, &etcd_options, ret_etcd, error));
    driver.name = argv[2];
    driver.folder = argv[4]; /* NULL at the end of the list */
    struct replica_options options = {.etcd = *ret_etcd,
        .name = driver.name,
        .addresses = "127.0.0.1:7000",
        .version = "1",
        .format_max = 1,
        .lease_us = strtoull(argv[3], NULL, 10) * CADRE_US_PER_MS,
        .drift_ppm = 10000,
        .margin_us = 50 * CADRE_US_PER_MS,
        .lag_us = 100 * CADRE_US_PER_MS,
        .tickets_max = TICKETS_MAX,
        .snapshot_bytes = driver.folder != NULL ? strtoull(argv[5], NULL, 10) : UINT64_MAX,
        .snapshot_us = UINT64_MAX,
        .ops = &ops};
    if (getrandom(options.secret, sizeof options.secret, 0) != (ssize_t)sizeof options.secret) {
        return cadre_error_set(error, CADRE_INTERNAL, "no random numbers");
    }
    return replica_open(driver.loop, &options, &driver.replica, error);
}

int main(int argc, char **argv)
{
    struct cadre_error error = {0};
    struct etcd *etcd = NULL;
    bool is_used_well = argc == 4 || argc == 6;
    if (!is_used_well || open_all(argv, &etcd, &error) != CADRE_OK) {
        fprintf(stderr, "replica_driver: %s\n",
            is_used_well ? error.text : "ADDRESS NAME LEASE_MS [FOLDER SNAPSHOT_BYTES]");
        return 1;
    }
    struct uv_loop_s *uv = rpc_loop_uv(driver.loop);
    uv_pipe_init(uv, &driver.input, 0);
    uv_pipe_open(&driver.input, 0);
    uv_read_start((uv_stream_t *)&driver.input, give_room, on_input);
    uv_timer_init(uv, &driver.timer);
    uv_timer_start(&driver.timer, on_timer, APPEND_EVERY_MS, APPEND_EVERY_MS);
    rpc_loop_on_turn_end(driver.loop, on_turn_end, NULL);
    rpc_loop_run(driver.loop);
    rpc_loop_on_turn_end(driver.loop, NULL, NULL);
    fflush(stdout);
    uv_close((uv_handle_t *)&driver.input, NULL);
    uv_close((uv_handle_t *)&driver.timer, NULL);
    replica_close(driver.replica);
    etcd_close(etcd);
    rpc_loop_close(driver.loop);
    free(driver.lines);
    return driver.status;
}
