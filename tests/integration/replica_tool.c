/* SPDX-License-Identifier: Apache-2.0
 * What coordinator/replication does with a log in etcd once, as a test of real etcd uses it:
 *
 *   replica_tool ADDRESS resign NONCE      takes the lead from a process that is dead
 *   replica_tool ADDRESS reseed ID TERM SECRET INDEX TERM HASH SHA256 SIZE
 *   replica_tool ADDRESS import ...        likewise: writes a new log from a snapshot
 *
 * It prints a sentence and exits with 0, or with 1 if it failed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/replication/reseed.h"
#include "coordinator/replication/resign.h"

#define LEASE_US    (2 * CADRE_US_PER_S)
#define PATIENCE_US (60 * CADRE_US_PER_S)

static struct {
    struct rpc_loop *loop;
    struct etcd *etcd;
    cadre_status status;
} tool;

static void end_with(cadre_status status, const char *text)
{
    tool.status = status;
    printf("%s\n", text);
    if (tool.loop != NULL) {
        rpc_loop_stop(tool.loop);
    }
}

static void on_resigned(void *user, cadre_status status, const char *text)
{
    (void)user;
    end_with(status, text);
}

static bool take_nonce(const char *text, struct log_nonce *ret_nonce)
{
    return sscanf(text, "%16" SCNx64 "%16" SCNx64, &ret_nonce->high, &ret_nonce->low) == 2;
}

static cadre_status resign(char **argv, struct cadre_error *error)
{
    struct resign *resign = NULL;
    struct resign_options options = {
        .etcd = tool.etcd, .lease_us = LEASE_US, .patience_us = PATIENCE_US, .done = on_resigned};
    if (!take_nonce(argv[3], &options.nonce)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s is no nonce", argv[3]);
    }
    CADRE_TRY(resign_open(tool.loop, &options, &resign, error));
    rpc_loop_run(tool.loop);
    resign_close(resign);
    return CADRE_OK;
}

static void on_reseeded(
    void *user, cadre_status status, const char *text, const struct replica_known *known)
{
    (void)user;
    (void)known;
    end_with(status, text);
}

static bool take_hex(const char *text, uint8_t *ret_bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (sscanf(text + 2 * i, "%2" SCNx8, &ret_bytes[i]) != 1) {
            return false;
        }
    }
    return text[2 * size] == '\0';
}

static cadre_status reseed(char **argv, struct cadre_error *error)
{
    struct reseed *reseed = NULL;
    struct reseed_options options = {.etcd = tool.etcd,
        .imports = strcmp(argv[2], "import") == 0,
        .term = strtoull(argv[4], NULL, 10),
        .format = 1,
        .attempt_us = LEASE_US,
        .patience_us = PATIENCE_US,
        .done = on_reseeded};
    struct leadership_position *at = &options.snapshot.at;
    at->index = strtoull(argv[6], NULL, 10);
    at->term = strtoull(argv[7], NULL, 10);
    options.snapshot.size = strtoull(argv[10], NULL, 10);
    if (!take_nonce(argv[3], &options.cluster_id) ||
        !take_hex(argv[5], options.secret, sizeof options.secret) ||
        !take_hex(argv[8], at->hash.bytes, sizeof at->hash.bytes) ||
        !take_hex(argv[9], options.snapshot.sha256, sizeof options.snapshot.sha256)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "a number or hash is none");
    }
    CADRE_TRY(reseed_open(tool.loop, &options, &reseed, error));
    rpc_loop_run(tool.loop);
    reseed_close(reseed);
    return CADRE_OK;
}

static cadre_status run(int argc, char **argv, struct cadre_error *error)
{
    struct etcd_address address;
    bool resigns = argc == 4 && strcmp(argv[2], "resign") == 0;
    bool reseeds = argc == 11 && (strcmp(argv[2], "reseed") == 0 || strcmp(argv[2], "import") == 0);
    if (!resigns && !reseeds) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "ADDRESS resign|reseed|import ...");
    }
    CADRE_TRY(rpc_loop_open(&tool.loop, error));
    CADRE_TRY(etcd_address_parse(argv[1], false, &address, error));
    const struct etcd_options etcd_options = {.address = &address};
    CADRE_TRY(etcd_open(tool.loop, &etcd_options, &tool.etcd, error));
    return resigns ? resign(argv, error) : reseed(argv, error);
}

int main(int argc, char **argv)
{
    struct cadre_error error = {0};
    cadre_status status = run(argc, argv, &error);
    if (status != CADRE_OK) {
        end_with(status, error.text);
    }
    etcd_close(tool.etcd);
    rpc_loop_close(tool.loop);
    return tool.status == CADRE_OK ? 0 : 1;
}
