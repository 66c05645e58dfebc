/* SPDX-License-Identifier: Apache-2.0
 * Inside of a parameter server: loop threads, and a state machine for each connection.
 *
 *     HEADER ──▶ COLLECT ──▶ (run) ──▶ VALUES, block by block ──▶ ANSWER ──▶ HEADER
 *        │      header, ids    │                                    ▲
 *        │                     ├──▶ PARKED until a push is applied  ├── UNCONFIRMED
 *        └─────────────────────┴──▶ DISCARD after an error ─────────┘   until backup_may_answer
 *
 * A connection belongs to its loop; loops share the store, the pushes in progress, and the number
 * of parked connections. */
#ifndef CADRE_PS_SERVER_SERVER_INTERNAL_H
#define CADRE_PS_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/library/ps/link/link_internal.h"
#include "worker/library/ps/request.h"
#include "worker/library/ps/server/server.h"
#include "worker/library/ps/store/store.h"

#define SERVER_THREADS_MAX 4
/* Bytes that a connection reads before the others have their turn. */
#define SERVER_TURN_BYTES ((size_t)4 << 20)
/* Values are received and applied in blocks of this size, which are still in the cache then. */
#define SERVER_BLOCK_BYTES ((size_t)128 << 10)
/* With a backup in larger ones: each wakes the backup. Smaller pushes are forwarded whole. */
#define SERVER_FORWARD_BYTES ((size_t)1 << 20)

enum connection_state {
    CONNECTION_HEADER,
    CONNECTION_COLLECT,
    CONNECTION_PARKED,
    CONNECTION_VALUES,
    CONNECTION_DISCARD,
    CONNECTION_ANSWER,
    CONNECTION_UNCONFIRMED, /* the answer waits until backup_may_answer */
    CONNECTION_MOVE,        /* to the loop that keeps another server's copy */
    CONNECTION_COPY         /* a whole copy is received or sent, blocking: the connection is alone
                             * in that loop */
};

/* Memory of a connection that grows and is kept. */
struct growing_buffer {
    uint8_t *bytes;
    size_t size;
};

struct push_key {
    uint64_t closure;
    uint32_t ordinal;
    uint32_t shard;
};

struct connection {
    struct connection *next; /* of its loop, or of the loop that it moves to */
    struct connection **back;
    struct connection *next_push; /* of the server's pushes in progress */
    struct server_loop *loop;
    struct link *link;
    enum connection_state state;
    bool dead;        /* it is not read any more */
    uint32_t watched; /* the events that epoll reports */
    struct frame frame;
    uint64_t left; /* bytes of the frame that were not read yet */
    /* COLLECT */
    struct growing_buffer collected;
    size_t got;
    uint64_t wanted;
    /* VALUES: of a push, or into an optimizer's slot */
    bool pushes;
    bool listed;         /* among the pushes in progress */
    struct push_key key; /* under the server's lock */
    struct pushing pushing;
    uint64_t row_bytes;
    uint64_t skip;      /* bytes of rows that were applied when they came first */
    uint64_t forwarded; /* the backup's connection over which this push was begun; 0: none */
    uint8_t *direct;
    struct growing_buffer block;
    size_t block_got;
    size_t block_wanted;
    /* ANSWER */
    uint8_t header[FRAME_BYTES];
    const uint8_t *answer;
    uint64_t answer_bytes;
    uint64_t sent; /* of header and answer */
    struct growing_buffer out;
};

struct server_loop {
    struct server *server;
    uint32_t index; /* the store's thread */
    int epoll_fd;
    int wake_fd;
    bool started;
    pthread_t thread;
    struct connection *connections;
    pthread_mutex_t lock; /* over what follows */
    struct connection *incoming;
    uint8_t scratch[64 << 10]; /* for bytes that are discarded */
};

struct server {
    struct directory *directory;
    struct link_listener *listener;
    struct link_terms terms;
    struct store_options memory;
    struct store *store;
    bool kept;
    atomic_bool stopping;
    uint32_t loop_count;
    atomic_uint next_loop;
    struct server_loop *loops;
    atomic_uint parked;
    _Atomic uint64_t forgotten; /* closures with smaller numbers were forgotten */
    pthread_mutex_t lock;       /* over the pushes in progress */
    struct connection *pushes;
    struct backup *backup;       /* the backup that receives changes; NULL: none */
    struct link *blocked;        /* of a copy, under its lock: the link on which its loop blocks */
    bool is_copy;                /* this server is a copy of another server's store */
    bool orderly;                /* it ends because the job is over */
    struct server *copy;         /* of another server: one loop, without a listener; NULL: none */
    uint64_t of_incarnation;     /* of a copy: the newest incarnation of that other server that
                                  * connected */
    struct connection *attached; /* of a copy: the connection that may change it; NULL: none */
    struct forwarded_push *forwarded_pushes; /* of a copy: in progress over that connection */
    pthread_mutex_t notes;                   /* held while a text is read or replaced */
};

/* ---- server.c ---- */

/* Opens the store once more, empty: a copy that was half loaded is dropped. */
cadre_status server_open_store(struct server *server, struct cadre_error *error);

/* ---- server_loop.c ---- */

/* Starts the loop's thread with its epoll and event descriptors. */
cadre_status server_loop_start(struct server_loop *loop, struct cadre_error *error);
/* Waits until its thread has ended, which it does when its server stops; of a loop that was not
 * started too. */
void server_loop_join(struct server_loop *loop);
/* Ends its connections; the threads of all loops of its server have ended. */
void server_loop_end(struct server_loop *loop);
/* Owns the link. Any thread. */
void server_loop_add(struct server_loop *loop, struct link *link);
/* The other connections of this one's loop end, with what they have not done. */
void server_loop_end_others(struct connection *connection);
/* Called after a change for which a parked connection may wait. */
void server_wake_parked(struct server *server);

/* ---- server_connection.c ---- */

enum next_step {
    NEXT_CONTINUE, /* there is more to do */
    NEXT_READ,     /* wait for bytes */
    NEXT_WRITE,    /* wait for room */
    NEXT_PARK,     /* wait for a version */
    NEXT_YIELD,    /* the others have their turn */
    NEXT_MOVE,     /* to the copy's loop */
    NEXT_CLOSE
};

/* Runs the connection's state machine until it has to wait. */
enum next_step connection_advance(struct connection *connection);
/* Abandons its push, if any, and frees it. */
void connection_free(struct connection *connection);
/* At least `size` bytes; false: no memory. */
bool growing_buffer_reserve(struct growing_buffer *room, size_t size);

/* Answers with these arguments and the `bytes` bytes at `answer`, which stay until they are
 * sent. */
void connection_answer(struct connection *connection, uint64_t version, uint64_t number,
    const void *answer, uint64_t bytes);
/* Answers with an error; the rest of the request is read and discarded first. */
void connection_refuse(struct connection *connection, const struct cadre_error *error);

/* ---- server_requests.c ---- */

/* The header was read: sets how much is to be collected, or refuses the request. */
void request_begin(struct connection *connection);
/* Runs the collected request and sets the next state. */
void request_run(struct connection *connection);

/* ---- server_push.c ---- */

/* The header and ids of a push were collected: begins it in the store. */
void push_run(struct connection *connection);
/* A block of values was received: applies it. */
void push_block(struct connection *connection);
/* The connection ends in the middle of its push, if any: the store keeps what was done of it. */
void push_abandon(struct connection *connection);
/* Ends the connections that push to the shard: a client that still runs sends again. */
void push_disconnect_all(struct server *server, uint32_t shard);

/* REQUEST_STEP_NORMS: what the shard's synchronous step adds to the norms of LAMB. */
void step_norms_run(struct connection *connection);
/* REQUEST_SETTLE: the ratio for the shard's synchronous step. */
void settle_run(struct connection *connection);

/* ---- server_backup.c: the same changes, in the same order, in another server's memory ---- */

/* Connects in a thread of its own whenever the other server is here, and sends it the whole store
 * first. `link`: owned, its copy has all that is here; NULL: no copy has. */
cadre_status backup_open(struct server *server, const struct server_options *options,
    struct link *link, struct backup **ret_backup, struct cadre_error *error);
/* Waits for its threads, which end when the server stops: a change then waits no longer for the
 * other server. NULL: nothing. */
void backup_join(struct backup *backup);
/* Frees it, after backup_join and the end of all loops. */
void backup_close(struct backup *backup);
/* The backup has all that is here. False: it is lost, or NULL. */
bool backup_in_sync(const struct backup *backup);
/* Whether the state here may be sent to a client: whatever replaces this server has it too.
 * Otherwise nothing is answered; server_wake_parked is called when it becomes true. NULL: true. */
bool backup_may_answer(const struct backup *backup);
/* Takes the lock of a change; loops follow each other. backup_end releases it. */
void backup_begin(struct backup *backup);
/* All of the request of `connection` was collected: sends it to the backup, which changes the copy
 * while this server changes its store. backup_await has to follow in the same change. */
void backup_send(struct backup *backup, const struct connection *connection);
/* A push that is received in blocks: sends `rows` more of its rows to the backup, after its header
 * if the backup has not got that over this connection; that all of them came (backup_await has to
 * follow in the same change); or that no more come. */
void backup_send_rows(
    struct backup *backup, struct connection *connection, const void *values, uint64_t rows);
void backup_send_end(struct backup *backup, struct connection *connection);
void backup_send_abandon(struct backup *backup, struct connection *connection);
/* Waits until the backup has made the change that was sent. Without an answer the backup counts as
 * lost, and that is reported to the coordinator. */
void backup_await(struct backup *backup);
/* Of a change that was made here already: backup_send, backup_await. */
void backup_replicate(struct backup *backup, const struct connection *connection);
/* Ends the change. */
void backup_end(struct backup *backup);

/* Loads the copy that the coordinator has recorded, however long it takes to get it. *ret_link: the
 * connection over which the server continues to replicate. NOT_FOUND: the copy was lost with its
 * server. */
cadre_status backup_fetch(
    struct server *server, uint32_t index, struct link **ret_link, struct cadre_error *error);

/* ---- server_copy.c: the other side ---- */

/* Opens the copy that `server` keeps of another one: a server with one loop. */
cadre_status copy_open(struct server *server, struct cadre_error *error);
/* Ends its loop and frees it. */
void copy_close(struct server *copy);
/* CONNECTION_COPY: receives or sends a whole store, blocking. */
enum next_step copy_serve(struct connection *connection);
/* An incarnation of the other server connected: cuts off an older one on which the loop blocks. Any
 * loop. */
void copy_expect_newer(struct server *copy, const struct link *link);
/* The connection is in the copy's loop: no older incarnation changes the copy from now on. */
void copy_admit_connection(struct connection *connection);
/* Whether a request is accepted: not from an older incarnation, and changes only over the
 * connection that filled the copy or received it. */
bool copy_admits(const struct connection *connection);
/* FRAME_PUSH_*, collected: a push that the other server receives at the same time. */
void copy_forwarded_run(struct connection *connection);
/* The pushes in progress end, with what was done of them. */
void copy_forwarded_abandon(struct server *copy);
/* Sends a piece; `user` is a struct copy_writer. */
store_sink copy_send_piece;
struct copy_writer {
    struct link *link;
    const struct link_wait *wait; /* NULL: no limit */
};
/* Receives from pieces; `user` is a struct copy_reader. */
store_source copy_receive_piece;
struct copy_reader {
    struct link *link;
    const struct link_wait *wait; /* as of a writer */
    uint64_t left;                /* bytes of the piece */
    bool ended;
};

#endif
