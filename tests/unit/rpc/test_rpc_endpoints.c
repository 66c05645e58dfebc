/* SPDX-License-Identifier: Apache-2.0
 * Several addresses of one service: which one is used, after which fault, and in which order. */
#include "rpc_fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/rpc/endpoints.h"

#define SERVERS 3

/* A server that answers each call with its name, or names another one as the leader. */
struct peer {
    struct rpc_server *server;
    char address[64];
    const char *leader; /* NULL: it answers */
    bool is_lost;       /* UNAVAILABLE, and it knows no leader */
    bool leads_next;    /* `leader` counts for one call */
    int asked;
};

struct rig {
    struct rpc_loop *loop;
    struct rpc_endpoints *endpoints;
    struct rpc_attempt attempt;
    struct peer peers[SERVERS];
    char list[512];
    /* The last call. */
    struct rpc_channel *channel;
    bool ended, again;
    cadre_status status;
    char text[512], answer[64];
};

static void peer_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct peer *peer = user;
    (void)data;
    (void)length;
    peer->asked++;
    if (peer->leader != NULL) {
        rpc_call_set_trailer(call, RPC_LEADER_KEY, peer->leader);
    }
    if (peer->leader != NULL || peer->is_lost) {
        rpc_call_finish(call, CADRE_UNAVAILABLE, "this one does not lead");
        peer->leader = peer->leads_next ? NULL : peer->leader;
        return;
    }
    send_text(call, peer->address);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static const struct rpc_server_ops peer_ops = {.on_message = peer_message};

static void peer_start(struct rig *rig, struct peer *peer)
{
    const struct rpc_method method = {UNARY, false, false, REQUEST_BYTES_MAX, &peer_ops, peer};
    const struct rpc_server_options options = {.methods = &method, .method_count = 1};
    int port = 0;
    assert_int_equal(rpc_server_open(rig->loop, &options, &peer->server, NULL), CADRE_OK);
    assert_int_equal(
        rpc_server_listen(peer->server, peer->address[0] != '\0' ? peer->address : "127.0.0.1:0",
            NULL, &port, NULL),
        CADRE_OK);
    rpc_server_start(peer->server);
    snprintf(peer->address, sizeof peer->address, "127.0.0.1:%d", port);
}

static void peer_stop(struct peer *peer)
{
    rpc_server_close(peer->server);
    peer->server = NULL;
}

static int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    assert_int_equal(rpc_loop_open(&rig->loop, NULL), CADRE_OK);
    for (size_t i = 0; i < SERVERS; i++) {
        peer_start(rig, &rig->peers[i]);
    }
    *state = rig;
    return 0;
}

static int rig_close(void **state)
{
    struct rig *rig = *state;
    rpc_endpoints_close(rig->endpoints);
    for (size_t i = 0; i < SERVERS; i++) {
        if (rig->peers[i].server != NULL) {
            peer_stop(&rig->peers[i]);
        }
    }
    rpc_loop_close(rig->loop);
    free(rig);
    return 0;
}

static void use_list(struct rig *rig, const char *list)
{
    struct cadre_error error = {0};
    if (rpc_endpoints_open(rig->loop, list, NULL, &rig->endpoints, &error) != CADRE_OK) {
        fail_msg("%s", error.text);
    }
}

static void use_all(struct rig *rig)
{
    snprintf(rig->list, sizeof rig->list, "%s,%s,%s", rig->peers[0].address, rig->peers[1].address,
        rig->peers[2].address);
    use_list(rig, rig->list);
}

/* ---- one call ---- */

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct rig *rig = user;
    (void)call;
    snprintf(rig->answer, sizeof rig->answer, "%.*s", (int)length, (const char *)data);
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct rig *rig = user;
    rig->ended = true;
    rig->status = status;
    snprintf(rig->text, sizeof rig->text, "%s", text);
    if (status == CADRE_UNAVAILABLE) {
        rig->again = rpc_endpoints_failed(rig->endpoints, &rig->attempt, rig->channel, call);
    } else {
        rpc_endpoints_answered(rig->endpoints, rig->channel);
        rig->attempt = (struct rpc_attempt){0};
    }
}

static const struct rpc_client_ops ops = {.on_message = on_message, .on_status = on_status};

static void one_call(struct rig *rig)
{
    const struct rpc_call_options options = {
        .path = UNARY,
        .ops = &ops,
        .user = rig,
    };
    struct rpc_call *call = NULL;
    rig->ended = false;
    rig->again = false;
    rig->answer[0] = '\0';
    rig->channel = rpc_endpoints_channel(rig->endpoints);
    assert_int_equal(rpc_channel_call(rig->channel, &options, &call, NULL), CADRE_OK);
    assert_int_equal(rpc_call_send(call, "who", 3, NULL), CADRE_OK);
    assert_int_equal(rpc_loop_run_until(rig->loop, &rig->ended, CADRE_TIME_NEVER), CADRE_OK);
}

/* Calls until there is an answer, or all failed; returns how many calls that took. */
static int call_round(struct rig *rig)
{
    int calls = 0;
    do {
        one_call(rig);
        calls++;
        assert_true(calls <= 3 * RPC_ENDPOINTS_MAX);
    } while (rig->again);
    return calls;
}

/* ---- tests ---- */

static void the_first_that_answers_is_used_and_stays(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    peer_stop(&rig->peers[0]);
    assert_int_equal(call_round(rig), 2);
    assert_int_equal(rig->status, CADRE_OK);
    assert_string_equal(rig->answer, rig->peers[1].address);
    assert_int_equal(call_round(rig), 1);
    assert_string_equal(rig->answer, rig->peers[1].address);
    assert_string_equal(rpc_endpoints_address(rig->endpoints), rig->peers[1].address);
    assert_int_equal(rig->peers[2].asked, 0);
}

static void the_one_that_answered_is_tried_first_again(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    assert_int_equal(call_round(rig), 1);
    rig->peers[0].is_lost = true;
    rig->peers[1].is_lost = true;
    assert_int_equal(call_round(rig), 4); /* the first twice, because it has answered */
    assert_string_equal(rig->answer, rig->peers[2].address);
    assert_int_equal(rig->peers[0].asked, 3);
}

static void when_all_failed_it_says_so_and_goes_round_again(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    for (size_t i = 0; i < SERVERS; i++) {
        peer_stop(&rig->peers[i]);
    }
    assert_int_equal(call_round(rig), 3);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
    assert_int_equal(call_round(rig), 3);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
}

static void one_address_is_not_tried_again(void **state)
{
    struct rig *rig = *state;
    use_list(rig, rig->peers[0].address);
    assert_int_equal(call_round(rig), 1);
    assert_int_equal(rig->status, CADRE_OK);
    rig->peers[0].is_lost = true;
    assert_int_equal(call_round(rig), 1);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
}

static void a_silent_one_is_passed_over(void **state)
{
    struct rig *rig = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0); /* and no connection is accepted */
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    snprintf(rig->list, sizeof rig->list, "127.0.0.1:%d,%s", ntohs(address.sin_port),
        rig->peers[0].address);
    use_list(rig, rig->list);
    one_call(rig);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
    char sentence[128];
    snprintf(sentence, sizeof sentence, "127.0.0.1:%d took no connection within 2000 ms",
        ntohs(address.sin_port));
    assert_string_equal(rig->text, sentence);
    assert_true(rig->again);
    assert_true(call_round(rig) >= 1); /* more where the machine is so busy that this one is late */
    assert_int_equal(rig->status, CADRE_OK);
    assert_string_equal(rig->answer, rig->peers[0].address);
    close(fd);
}

static void count_end(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    assert_int_equal(status, CADRE_UNAVAILABLE);
    assert_string_equal(text, "another one leads");
    *(int *)user += 1;
}

static void another_one_is_taken_by_index(void **state)
{
    struct rig *rig = *state;
    static const struct rpc_client_ops counting = {.on_status = count_end};
    int ends = 0;
    use_all(rig);
    assert_int_equal(rpc_endpoints_count(rig->endpoints), SERVERS);
    one_call(rig);
    assert_string_equal(rig->answer, rig->peers[0].address);
    /* Calls that the first one has not answered end, and its channel goes on. */
    struct rpc_channel *first = rpc_endpoints_channel_at(rig->endpoints, 0);
    const struct rpc_call_options options = {.path = UNARY, .ops = &counting, .user = &ends};
    struct rpc_call *calls[2];
    assert_int_equal(rpc_channel_call(first, &options, &calls[0], NULL), CADRE_OK);
    assert_int_equal(rpc_channel_call(first, &options, &calls[1], NULL), CADRE_OK);
    rpc_endpoints_use(rig->endpoints, 2);
    rpc_channel_abort_calls(first, CADRE_UNAVAILABLE, "another one leads");
    one_call(rig);
    assert_string_equal(rig->answer, rig->peers[2].address);
    assert_int_equal(ends, 2);
    rpc_endpoints_use(rig->endpoints, 0);
    one_call(rig);
    assert_string_equal(rig->answer, rig->peers[0].address);
}

static void a_leader_in_the_list_is_followed(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    rig->peers[0].leader = rig->peers[2].address;
    assert_int_equal(call_round(rig), 2);
    assert_string_equal(rig->answer, rig->peers[2].address);
    assert_int_equal(rig->peers[1].asked, 0);
}

static void a_leader_outside_the_list_is_added(void **state)
{
    struct rig *rig = *state;
    use_list(rig, rig->peers[0].address);
    rig->peers[0].leader = rig->peers[2].address;
    assert_int_equal(call_round(rig), 2);
    assert_string_equal(rig->answer, rig->peers[2].address);
    rig->peers[0].leader = NULL;
    rig->peers[2].is_lost = true;
    assert_int_equal(call_round(rig), 3); /* the leader twice, because it has answered */
    assert_string_equal(rig->answer, rig->peers[0].address);
}

static void a_leader_that_failed_is_not_followed_again(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    rig->peers[0].leader = rig->peers[2].address;
    rig->peers[1].leader = rig->peers[2].address;
    peer_stop(&rig->peers[2]);
    assert_int_equal(call_round(rig), 3);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
    assert_int_equal(rig->peers[1].asked, 1);
    /* Two that name each other are asked once each. */
    rig->peers[0].leader = rig->peers[1].address;
    rig->peers[1].leader = rig->peers[0].address;
    assert_int_equal(call_round(rig), 3);
}

/* A coordinator that let calls wait until it led. */
static void one_that_names_itself_is_asked_once_more(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    rig->peers[0].leader = rig->peers[0].address;
    rig->peers[0].leads_next = true;
    assert_int_equal(call_round(rig), 2);
    assert_string_equal(rig->answer, rig->peers[0].address);
    rig->peers[0].leader = rig->peers[0].address;
    rig->peers[0].leads_next = false;
    assert_int_equal(call_round(rig), 4); /* once more, because it has answered, and once more */
    assert_string_equal(rig->answer, rig->peers[1].address);
}

static void one_that_knew_no_leader_is_asked_once_more_when_it_is_named(void **state)
{
    struct rig *rig = *state;
    use_all(rig);
    rig->peers[0].leader = "";
    rig->peers[0].leads_next = true;
    rig->peers[1].leader = rig->peers[0].address;
    assert_int_equal(call_round(rig), 3);
    assert_string_equal(rig->answer, rig->peers[0].address);
    rpc_endpoints_close(rig->endpoints);
    use_all(rig);
    rig->peers[0].leader = "";
    rig->peers[0].leads_next = false;
    peer_stop(&rig->peers[2]);
    assert_int_equal(call_round(rig), 4); /* itself, who names it, itself, the one that is away */
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
}

static void a_leader_of_no_use_is_passed_over(void **state)
{
    struct rig *rig = *state;
    static const char *const useless[] = {
        "unix:/tmp/other.sock", "h9:7070", "nonsense", "127.0.0.1:0"};
    use_all(rig);
    for (size_t i = 0; i < sizeof useless / sizeof useless[0]; i++) {
        rig->peers[0].leader = useless[i];
        rig->peers[1].leader = NULL;
        rpc_endpoints_close(rig->endpoints);
        use_all(rig);
        assert_int_equal(call_round(rig), 2);
        assert_string_equal(rig->answer, rig->peers[1].address);
    }
}

static void a_full_list_takes_no_leader(void **state)
{
    struct rig *rig = *state;
    char list[1024];
    int length = snprintf(list, sizeof list, "%s", rig->peers[0].address);
    for (int i = 1; i < RPC_ENDPOINTS_MAX; i++) {
        /* Port 1 of other loopback addresses: no server listens. */
        length += snprintf(list + length, sizeof list - (size_t)length, ",127.7.7.%d:1", i);
    }
    use_list(rig, list);
    rig->peers[0].leader = rig->peers[1].address;
    assert_int_equal(call_round(rig), RPC_ENDPOINTS_MAX);
    assert_int_equal(rig->status, CADRE_UNAVAILABLE);
    assert_int_equal(rig->peers[1].asked, 0);
    length += snprintf(list + length, sizeof list - (size_t)length, ",127.7.7.99:1");
    struct rpc_endpoints *endpoints = NULL;
    struct cadre_error error = {0};
    assert_int_equal(
        rpc_endpoints_open(rig->loop, list, NULL, &endpoints, &error), CADRE_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "address \"127.7.7.99:1\": the list has more than 16 addresses");
}

static void bad_lists_have_a_sentence(void **state)
{
    struct rig *rig = *state;
    static const struct {
        const char *list;
        const char *sentence;
    } bad[] = {
        {"127.0.0.1:1,,127.0.0.1:2",
            "addresses \"127.0.0.1:1,,127.0.0.1:2\": one of them is empty; separate addresses by "
            "single commas"},
        {",127.0.0.1:1", "addresses \",127.0.0.1:1\": one of them is empty; separate addresses by "
                         "single commas"},
        {"127.0.0.1:1,", "addresses \"127.0.0.1:1,\": one of them is empty; separate addresses by "
                         "single commas"},
        {"127.0.0.1:1,localhost:1", "address \"localhost:1\": the list names it twice"},
        {"unix:/tmp/a,127.0.0.1:1", "address \"127.0.0.1:1\": a list is of Unix sockets or of "
                                    "HOST:PORT, and this one begins with \"unix:/tmp/a\""},
        {"127.0.0.1:1,127.0.0.1:0", "address 127.0.0.1:0: a client needs a port"},
        {"127.0.0.1:1,h2:7070",
            "address \"h2:7070\" is not a loopback address: connections between machines need "
            "TLS; give --tls-dir (`cadre pki --help` shows how to make one), or use unix:/path, "
            "127.0.0.1:PORT or [::1]:PORT"},
        {"127.0.0.1:1, 127.0.0.1:2", "address \" 127.0.0.1:2\" is not"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct cadre_error error = {0};
        assert_int_equal(rpc_endpoints_open(rig->loop, bad[i].list, NULL, &rig->endpoints, &error),
            CADRE_INVALID_ARGUMENT);
        error.text[strlen(bad[i].sentence)] = '\0';
        assert_string_equal(error.text, bad[i].sentence);
        assert_null(rig->endpoints);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
    const struct CMUnitTest tests[] = {
        TEST(the_first_that_answers_is_used_and_stays),
        TEST(the_one_that_answered_is_tried_first_again),
        TEST(when_all_failed_it_says_so_and_goes_round_again),
        TEST(one_address_is_not_tried_again),
        TEST(a_silent_one_is_passed_over),
        TEST(another_one_is_taken_by_index),
        TEST(a_leader_in_the_list_is_followed),
        TEST(a_leader_outside_the_list_is_added),
        TEST(a_leader_that_failed_is_not_followed_again),
        TEST(one_that_names_itself_is_asked_once_more),
        TEST(one_that_knew_no_leader_is_asked_once_more_when_it_is_named),
        TEST(a_leader_of_no_use_is_passed_over),
        TEST(a_full_list_takes_no_leader),
        TEST(bad_lists_have_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
