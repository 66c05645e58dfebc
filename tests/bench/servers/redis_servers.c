/* SPDX-License-Identifier: Apache-2.0
 * SET and GET of the same sizes, a key for each client and size.
 * `redis_servers PORT CLIENTS [PART]` */
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "tests/bench/servers/rounds_servers.h"

static const char *const names[] = {"push", "pull", NULL};
static int port;

struct client {
    redisContext *redis;
    int number;
};

static void *connect_client(int number)
{
    static struct client client;
    client = (struct client){.redis = redisConnect("127.0.0.1", port), .number = number};
    return client.redis != NULL && client.redis->err == 0 ? &client : NULL;
}

static bool run(void *opened, size_t operation, size_t size_index)
{
    const struct client *client = opened;
    size_t size = servers_sizes[size_index];
    char key[32];
    int length = snprintf(key, sizeof key, "k%d.%zu", client->number, size);
    const char *set[] = {operation == 0 ? "SET" : "GET", key, servers_bytes()};
    const size_t lengths[] = {3, (size_t)length, size};
    redisReply *reply = redisCommandArgv(client->redis, operation == 0 ? 3 : 2, set, lengths);
    bool good =
        reply != NULL && reply->type != REDIS_REPLY_ERROR && (operation == 0 || reply->len == size);
    freeReplyObject(reply);
    return good;
}

int main(int argc, char **argv)
{
    static const struct servers_kind kind = {connect_client, run, names};
    if (argc < 3) {
        return 2;
    }
    port = (int)strtol(argv[1], NULL, 10);
    return servers_rounds(&kind, argv[2], argc > 3 ? argv[3] : NULL);
}
