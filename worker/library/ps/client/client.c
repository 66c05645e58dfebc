/* SPDX-License-Identifier: Apache-2.0
 * client_call: takes a connection from the free list for each server, sends the requests, receives
 * the answers. Owns the list of connections. Callers: the runtime's served/, closures/ and
 * ps_job/. */
#include "worker/library/ps/client/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "worker/library/ps/client/client_internal.h"

cadre_status client_open(
    const struct client_options *options, struct client **ret_client, struct cadre_error *error)
{
    *ret_client = NULL;
    const struct ps_job *ps_job = &directory_self(options->directory)->ps_job;
    struct client *client = calloc(1, sizeof *client);
    struct client_server *servers = calloc(ps_job->servers, sizeof *servers);
    if (client == NULL || servers == NULL) {
        free(client);
        free(servers);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a client of %" PRIu32 " parameter servers", ps_job->servers);
    }
    client->options = *options;
    client->server_count = ps_job->servers;
    client->servers = servers;
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->idle, NULL);
    *ret_client = client;
    return CADRE_OK;
}

void client_close(struct client *client)
{
    if (client == NULL) {
        return;
    }
    pthread_mutex_lock(&client->lock);
    client->closing = true;
    atomic_store(&client->look, true);
    for (struct exchange *each = client->all; each != NULL; each = each->next_all) {
        if (each->link != NULL) {
            link_shutdown(each->link);
        }
    }
    while (client->active > 0) {
        pthread_cond_wait(&client->idle, &client->lock);
    }
    pthread_mutex_unlock(&client->lock);
    while (client->all != NULL) {
        struct exchange *next = client->all->next_all;
        link_free(client->all->link);
        free(client->all);
        client->all = next;
    }
    pthread_cond_destroy(&client->idle);
    pthread_mutex_destroy(&client->lock);
    free(client->servers);
    free(client);
}

cadre_status client_check(struct client *client, struct cadre_error *error)
{
    CADRE_TRY(directory_ended(client->options.directory, error));
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&client->lock);
    if (client->closing) {
        status = cadre_error_set(
            error, CADRE_CANCELLED, "the client of the parameter servers was closed");
    } else if (client->lost.code != CADRE_OK) {
        status = cadre_error_set(error, client->lost.code, "%s", client->lost.text);
    }
    pthread_mutex_unlock(&client->lock);
    return status;
}

/* ---- free connections ---- */

/* NULL: no memory. The caller holds the lock. */
static struct exchange *client_call_lease(struct client *client, uint32_t server)
{
    struct exchange *exchange = client->servers[server].free;
    if (exchange != NULL) {
        client->servers[server].free = exchange->next;
        return exchange;
    }
    exchange = calloc(1, sizeof *exchange);
    if (exchange != NULL) {
        exchange->client = client;
        exchange->server = server;
        exchange->next_all = client->all;
        client->all = exchange;
    }
    return exchange;
}

static struct exchange *exchange_of(const struct call *call, uint32_t server)
{
    struct exchange *exchange = call->exchanges;
    while (exchange != NULL && exchange->server != server) {
        exchange = exchange->next;
    }
    return exchange;
}

static cadre_status lease_all(struct call *call, struct cadre_error *error)
{
    struct client *client = call->client;
    for (size_t i = 0; i < call->count; i++) {
        uint32_t server = call->requests[i].server;
        if (server >= client->server_count) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a request for ps %" PRIu32 "; this job has %" PRIu32 " parameter servers", server,
                client->server_count);
        }
        if (exchange_of(call, server) == NULL) {
            struct exchange *exchange = client_call_lease(client, server);
            if (exchange == NULL) {
                return cadre_error_set(
                    error, CADRE_RESOURCE_EXHAUSTED, "no memory for a connection");
            }
            exchange->call = call;
            exchange->next = call->exchanges;
            call->exchanges = exchange;
        }
    }
    return CADRE_OK;
}

static cadre_status client_call_enter(struct call *call, struct cadre_error *error)
{
    struct client *client = call->client;
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&client->lock);
    client->active++;
    if (client->closing) {
        status = cadre_error_set(
            error, CADRE_CANCELLED, "the client of the parameter servers was closed");
    } else if (client->lost.code != CADRE_OK) {
        status = cadre_error_set(error, client->lost.code, "%s", client->lost.text);
    } else {
        status = lease_all(call, error);
    }
    pthread_mutex_unlock(&client->lock);
    return status;
}

static void client_call_leave(struct call *call)
{
    struct client *client = call->client;
    pthread_mutex_lock(&client->lock);
    while (call->exchanges != NULL) {
        struct exchange *exchange = call->exchanges;
        call->exchanges = exchange->next;
        exchange->call = NULL;
        exchange->next = client->servers[exchange->server].free;
        client->servers[exchange->server].free = exchange;
    }
    client->active--;
    if (client->active == 0) {
        pthread_cond_broadcast(&client->idle);
    }
    pthread_mutex_unlock(&client->lock);
}

/* ---- a call ---- */

void call_failed(struct call *call, size_t i, const struct cadre_error *error)
{
    call->requests[i].code = error->code;
    free(call->requests[i].ret_text);
    call->requests[i].ret_text = NULL;
    if (i < call->failed) {
        call->failed = i;
        (void)cadre_error_set(call->error, error->code, "%s", error->text);
    }
}

void client_drop_link(struct exchange *exchange)
{
    pthread_mutex_lock(&exchange->client->lock);
    struct link *link = exchange->link;
    exchange->link = NULL;
    pthread_mutex_unlock(&exchange->client->lock);
    link_free(link);
}

/* Its connection was lost or is not there yet: a new connection sends all requests without an
 * answer. */
static void client_call_restart(struct exchange *exchange)
{
    struct cadre_error error = {0};
    client_drop_link(exchange);
    if (client_reach(exchange, &error) == CADRE_OK) {
        client_exchange_begin(exchange);
    } else {
        exchange_fail(exchange, &error);
    }
}

static void client_call_settle(struct exchange *exchange, enum exchange_step received)
{
    if (received == EXCHANGE_DONE) {
        exchange->over = true;
    } else if (received == EXCHANGE_LOST) {
        client_call_restart(exchange);
    }
}

static cadre_status check_call(const struct call *call, struct cadre_error *error)
{
    bool (*unwanted)(void) = call->client->options.unwanted;
    CADRE_TRY(client_check(call->client, error));
    return call->steps && unwanted != NULL && unwanted()
               ? cadre_error_set(error, CADRE_CANCELLED,
                     "a synchronous step is not waited for any more: another closure has failed")
               : CADRE_OK;
}

/* Nothing moved for a while: checks whether the call still has to wait. */
static void client_call_look(struct exchange *exchange)
{
    struct cadre_error error = {0};
    if (check_call(exchange->call, &error) != CADRE_OK) {
        exchange_fail(exchange, &error);
        client_drop_link(exchange); /* with an answer that may still arrive */
    } else if (!client_is_reachable(exchange)) {
        client_call_restart(exchange);
    }
}

/* Sends what the sockets take now. True: all requests were sent. */
static bool send_all(struct call *call)
{
    bool all = true;
    for (struct exchange *each = call->exchanges; each != NULL; each = each->next) {
        while (!each->over) {
            enum exchange_step step = exchange_send(each);
            if (step != EXCHANGE_LOST) {
                all = all && step == EXCHANGE_DONE;
                break;
            }
            client_call_restart(each);
        }
    }
    return all;
}

#define POLLED_MAX 64

/* A server's socket is full: receives its answers meanwhile, because a server whose answers are not
 * received does not read. */
static void exchange_both_ways(struct call *call)
{
    struct pollfd pollers[POLLED_MAX];
    struct exchange *polled[POLLED_MAX];
    nfds_t count = 0;
    for (struct exchange *each = call->exchanges; each != NULL && count < POLLED_MAX;
         each = each->next) {
        if (!each->over) {
            short out = each->out < call->count ? POLLOUT : 0;
            pollers[count] =
                (struct pollfd){.fd = link_fd(each->link), .events = (short)(POLLIN | out)};
            polled[count++] = each;
        }
    }
    int ready = poll(pollers, count, (int)(CLIENT_POLL_US / CADRE_US_PER_MS));
    for (nfds_t i = 0; i < count; i++) {
        if (ready == 0) {
            client_call_look(polled[i]);
        } else if ((pollers[i].revents & ~POLLOUT) != 0) {
            client_call_settle(polled[i], exchange_receive(polled[i], false));
        }
    }
}

static void client_call_run(struct call *call)
{
    for (struct exchange *each = call->exchanges; each != NULL; each = each->next) {
        each->over = false;
        if (each->link == NULL || client_is_replaced(each)) {
            client_call_restart(each);
        } else {
            client_exchange_begin(each);
        }
    }
    for (struct exchange *each = call->exchanges; each != NULL;) {
        /* Also when one of them was restarted: it sends again. */
        while (!send_all(call)) {
            exchange_both_ways(call);
        }
        if (each->over) {
            each = each->next;
            continue;
        }
        enum exchange_step step = exchange_receive(each, true);
        if (step == EXCHANGE_WAITS) {
            client_call_look(each);
        } else {
            client_call_settle(each, step);
        }
    }
}

cadre_status client_call(struct client *client, struct request *requests, size_t count,
    uint64_t done_watermark, struct cadre_error *error)
{
    struct cadre_error own = {0};
    struct call call = {
        .client = client,
        .requests = requests,
        .count = count,
        .done_watermark = done_watermark,
        .failed = count,
        .error = error != NULL ? error : &own,
    };
    for (size_t i = 0; i < count; i++) {
        bool push = requests[i].kind == REQUEST_PUSH || requests[i].kind == REQUEST_PUSH_PULL;
        bool pull = requests[i].kind == REQUEST_PULL || requests[i].kind == REQUEST_GATHER;
        call.steps = call.steps || (push && requests[i].push.contributions > 0) ||
                     (pull && requests[i].min_steps > 0);
        requests[i].code = CADRE_PENDING;
        requests[i].ret_text = NULL;
        requests[i].ret_text_bytes = 0;
    }
    cadre_status status = client_call_enter(&call, call.error);
    if (status == CADRE_OK) {
        client_call_run(&call);
        status = call.failed < count ? requests[call.failed].code : CADRE_OK;
    } else {
        for (size_t i = 0; i < count; i++) {
            requests[i].code = status;
        }
    }
    client_call_leave(&call);
    return status;
}
