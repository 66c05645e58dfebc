/* SPDX-License-Identifier: Apache-2.0
 * The usual barrier over Redis: INCR a counter of the round; the last to come pushes a token for
 * each of the others, who wait in BLPOP. redis_barrier N ROUNDS FILE PORT */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <pthread.h>

#include "tests/bench/barrier/times.h"

static long long command(redisContext *redis, int argc, const char **argv)
{
    redisReply *reply = redisCommandArgv(redis, argc, argv, NULL);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        _exit(4);
    }
    long long integer = reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
    freeReplyObject(reply);
    return integer;
}

struct client {
    redisContext *redis;
    int participants;
    const char **push; /* RPUSH, the list, a token for each of the others */
    char list[32];
};

static void one_round(struct client *client, uint32_t round)
{
    char counter[32];
    snprintf(counter, sizeof counter, "c:%u", round);
    snprintf(client->list, sizeof client->list, "l:%u", round);
    const char *increment[] = {"INCR", counter};
    if (command(client->redis, 2, increment) != client->participants) {
        const char *wait_for[] = {"BLPOP", client->list, "0"};
        command(client->redis, 3, wait_for);
    } else if (client->participants > 1) {
        command(client->redis, client->participants + 1, client->push);
    }
}

static void participate(int port, int participants, pthread_barrier_t *start, struct times times)
{
    struct client client = {.redis = redisConnect("127.0.0.1", port), .participants = participants};
    client.push = calloc((size_t)participants + 2, sizeof *client.push);
    if (client.redis == NULL || client.redis->err != 0 || client.push == NULL) {
        _exit(5);
    }
    client.push[0] = "RPUSH";
    client.push[1] = client.list;
    for (int i = 2; i < participants + 1; i++) {
        client.push[i] = "1";
    }
    pthread_barrier_wait(start);
    for (uint32_t round = 0; round < times.rounds; round++) {
        times.stamps[2 * round] = times_now();
        one_round(&client, round);
        times.stamps[2 * round + 1] = times_now();
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: redis_barrier N ROUNDS FILE PORT\n");
        return 2;
    }
    int participants = (int)strtol(argv[1], NULL, 10);
    uint32_t rounds = (uint32_t)strtoul(argv[2], NULL, 10);
    pthread_barrier_t *start =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(start, &shared, (unsigned)participants);
    for (int i = 0; i < participants; i++) {
        if (fork() == 0) {
            participate((int)strtol(argv[4], NULL, 10), participants, start,
                times_open(argv[3], (uint32_t)participants, rounds, (uint32_t)i));
        }
    }
    int status;
    int failed = 0;
    while (wait(&status) > 0) {
        failed |= status != 0;
    }
    return failed;
}
