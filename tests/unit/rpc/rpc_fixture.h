/* SPDX-License-Identifier: Apache-2.0
 * A server with one method of each shape, and a client, on one loop. What the handlers see is
 * counted. */
#ifndef CADRE_TESTS_RPC_FIXTURE_H
#define CADRE_TESTS_RPC_FIXTURE_H

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/loop.h"
#include "common/rpc/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define REQUEST_BYTES_MAX 4096
#define WAIT_TIMEOUT_US   (20 * CADRE_US_PER_S)

/* What the server's handlers saw. */
struct server_seen {
    int opens, messages, half_closes, drains, shutdowns, closes;
    bool cancelled;               /* of the last close */
    struct rpc_call *call;        /* the last one that was opened, while it is open */
    char metadata[64], peer[128]; /* of the last one */
};

/* What a call of the client saw. `ended` is for rpc_loop_run_until(). */
struct client_seen {
    int messages, ends, drains;
    size_t bytes;
    char last[256];
    bool got_message, ended;
    cadre_status status;
    char text[512];
};

struct fixture {
    struct rpc_loop *loop;
    struct rpc_server *server;
    struct rpc_channel *channel;
    struct server_seen seen;
    char folder[64], address[96];
    bool server_gone;
};

/* The methods, all under "/test.Echo/": Unary and Chat echo; Upload counts until the half close;
 * Download answers "N" with N messages; Flood sends until its queue is full; Fail fails; Hold
 * stays; Bye ends itself at shutdown. */
#define UNARY           "/test.Echo/Unary"
#define UPLOAD          "/test.Echo/Upload"
#define DOWNLOAD        "/test.Echo/Download"
#define CHAT            "/test.Echo/Chat"
#define FLOOD           "/test.Echo/Flood"
#define FAIL            "/test.Echo/Fail"
#define HOLD            "/test.Echo/Hold"
#define END_AT_SHUTDOWN "/test.Echo/Bye"

/* cmocka's setup and teardown: a server on a Unix socket in a new folder, started, and a channel to
 * it. The teardown closes what a test left (a pointer that a test closed itself must be NULL) and
 * the folder must be empty then. */
int fixture_open(void **state);
int fixture_close(void **state);

/* The server alone, with other options; the method table is filled in. */
void fixture_server(struct fixture *fixture, struct rpc_server_options options);

/* Starts a call of the given shape whose handlers fill `seen`. */
struct rpc_call *fixture_call(
    struct fixture *fixture, const char *path, bool up, bool down, struct client_seen *seen);

/* Runs the loop until *done; fails the test when that takes too long. */
void fixture_until(struct fixture *fixture, const bool *done);

/* Runs the loop until check(user). */
void fixture_until_check(struct fixture *fixture, bool (*check)(void *user), void *user);

/* One unary call from beginning to end. */
void fixture_unary(struct fixture *fixture, const char *path, const void *data, size_t length,
    struct client_seen *seen);

void send_text(struct rpc_call *call, const char *text);

extern const struct rpc_client_ops client_ops;

#endif
