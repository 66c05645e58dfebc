/* SPDX-License-Identifier: Apache-2.0 */
#include "stub.h"

#include <stdio.h>
#include <string.h>

#include "common/model/ledger_position.h"

/* One of several coordinators: each call says from what its client was answered before. */
static cadre_status note_metadata(
    struct rpc_call *call, const char *method, void *user, struct cadre_error *error)
{
    struct stub *stub = user;
    size_t length = 0;
    (void)method;
    (void)error;
    pthread_mutex_lock(&stub->lock);
    const char *ledger = rpc_call_metadata(call, LEDGER_POSITION_KEY, &length);
    snprintf(stub->seen.ledger, sizeof stub->seen.ledger, "%.*s", (int)length,
        ledger != NULL ? ledger : "");
    stub->seen.stale = rpc_call_metadata(call, LEDGER_STALE_KEY, &length) != NULL;
    pthread_mutex_unlock(&stub->lock);
    return CADRE_OK;
}

static void mark_answer(struct rpc_call *call, const char *path, void *user)
{
    struct stub *stub = user;
    (void)path;
    pthread_mutex_lock(&stub->lock);
    if (stub->ledger != NULL) {
        rpc_call_set_trailer(call, LEDGER_POSITION_KEY, stub->ledger);
    }
    if (stub->age != NULL) {
        rpc_call_set_trailer(call, LEDGER_AGE_KEY, stub->age);
    }
    pthread_mutex_unlock(&stub->lock);
}

static void *serve(void *user)
{
    struct stub *stub = user;
    struct rpc_method methods[STUB_METHODS_MAX];
    struct rpc_server_options options = {.methods = methods,
        .authorize = note_metadata,
        .authorize_user = stub,
        .on_finish = mark_answer,
        .on_finish_user = stub};
    options.method_count = stub_methods(stub, methods);
    struct cadre_error error = {0};
    cadre_status status = rpc_loop_open(&stub->loop, &error);
    if (status == CADRE_OK) {
        status = rpc_server_open(stub->loop, &options, &stub->server, &error);
    }
    if (status == CADRE_OK) {
        status = rpc_server_listen(stub->server, stub->address, NULL, NULL, &error);
    }
    if (status != CADRE_OK) {
        print_error("the stub cannot start: %s\n", error.text);
    }
    rpc_server_start(stub->server);
    pthread_mutex_lock(&stub->lock);
    stub->ready = true;
    pthread_cond_signal(&stub->changed);
    pthread_mutex_unlock(&stub->lock);
    rpc_loop_run(stub->loop);
    rpc_server_close(stub->server);
    rpc_loop_close(stub->loop);
    return NULL;
}

void stub_open(struct stub *stub, const char *address)
{
    *stub = (struct stub){.arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    pthread_mutex_init(&stub->lock, NULL);
    pthread_cond_init(&stub->changed, NULL);
    if (address != NULL) {
        snprintf(stub->address, sizeof stub->address, "%s", address);
    } else {
        snprintf(stub->address, sizeof stub->address, "unix:%s/stub.sock", test_temp_dir());
    }
    assert_int_equal(pthread_create(&stub->thread, NULL, serve, stub), 0);
    pthread_mutex_lock(&stub->lock);
    while (!stub->ready) {
        pthread_cond_wait(&stub->changed, &stub->lock);
    }
    pthread_mutex_unlock(&stub->lock);
}

void stub_close(struct stub *stub)
{
    rpc_loop_stop(stub->loop);
    pthread_join(stub->thread, NULL);
    wire_arena_free(stub->arena);
    wire_buffer_free(&stub->packed);
    pthread_mutex_destroy(&stub->lock);
    pthread_cond_destroy(&stub->changed);
}

struct stub_seen stub_seen(struct stub *stub)
{
    pthread_mutex_lock(&stub->lock);
    struct stub_seen seen = stub->seen;
    pthread_mutex_unlock(&stub->lock);
    return seen;
}
