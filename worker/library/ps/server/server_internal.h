/* SPDX-License-Identifier: Apache-2.0
 * Inside of a parameter server: loop threads, and a state machine for each connection.
 *
 *     HEADER ──▶ COLLECT ──▶ (run) ──▶ VALUES, block by block ──▶ ANSWER ──▶ HEADER
 *        │       part, ids     │                                    ▲
 *        │                     ├──▶ PARKED until a push is applied  ├── UNSURE: backup_may_answer
 *        └─────────────────────┴──▶ DROP what is not wanted ────────┘
 *
 * A connection is its loop's; what loops share is the store, the pushes under way, and how many
 * connections are parked. */
#ifndef CADRE_PS_SERVER_SERVER_INTERNAL_H
#define CADRE_PS_SERVER_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/library/ps/link/link_internal.h"
#include "worker/library/ps/request.h"
#include "worker/library/ps/server/server.h"
#include "worker/library/ps/store/store.h"

#define SERVER_THREADS_MAX 4
/* What a connection reads before others have their turn. */
#define SERVER_TURN_BYTES ((size_t)4 << 20)
/* Values are received and applied in pieces of this size: they are still in the cache then. */
#define SERVER_BLOCK_BYTES ((size_t)128 << 10)

enum connection_state {
    CONNECTION_HEADER,
    CONNECTION_COLLECT,
    CONNECTION_PARKED,
    CONNECTION_VALUES,
    CONNECTION_DISCARD,
    CONNECTION_ANSWER,
    CONNECTION_UNCONFIRMED, /* its answer waits until the server knows that no other has its place
                             */
    CONNECTION_MOVE,        /* to the loop that keeps another server's copy */
    CONNECTION_COPY         /* a whole copy is taken or given, blocking: it is alone there */
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
    struct connection *next; /* of its loop, or on the way there */
    struct connection **back;
    struct connection *next_push; /* of the server's pushes under way */
    struct server_loop *loop;
    struct link *link;
    enum connection_state state;
    bool dead;        /* nothing of it is heard any more */
    uint32_t watched; /* what epoll looks for */
    struct frame frame;
    uint64_t left; /* bytes of the frame that were not read yet */
    /* COLLECT */
    struct growing_buffer collected;
    size_t got;
    uint64_t wanted;
    /* VALUES: of a push, or into an optimizer's memory */
    bool pushes;
    bool listed;         /* among the pushes under way */
    struct push_key key; /* under the server's lock */
    struct pushing pushing;
    uint64_t row_bytes;
    uint64_t skip; /* bytes of rows that were applied when they came first */
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
    uint8_t scratch[64 << 10]; /* what is dropped */
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
    _Atomic uint64_t forgotten; /* closures below are */
    pthread_mutex_t lock;       /* over the pushes under way */
    struct connection *pushes;
    struct backup *backup;       /* whom changes are told; NULL: nobody */
    struct link *blocked;        /* of a copy, under its lock: its loop waits for it */
    bool is_copy;                /* this one is, of another server's store */
    bool orderly;                /* it ends because the job is over */
    struct server *copy;         /* of another server: one loop, without a listener; NULL: none */
    uint64_t of_incarnation;     /* of a copy: the newest life of that other server that came */
    struct connection *attached; /* of a copy: the one that changes it; NULL: none */
    pthread_mutex_t notes;       /* a text is read as long as nobody notes another one */
};

/* ---- server.c ---- */

/* Opens its store, empty, once more: what a copy had begun to fill is nothing. */
cadre_status server_open_store(struct server *server, struct cadre_error *error);

/* ---- server_loop.c ---- */

cadre_status server_loop_start(struct server_loop *loop, struct cadre_error *error);
/* Its thread ends, since its server stops; of one that was not started too. */
void server_loop_join(struct server_loop *loop);
/* Ends its connections, behind the threads of all loops of its server. */
void server_loop_end(struct server_loop *loop);
/* Takes the link over. Any thread. */
void server_loop_add(struct server_loop *loop, struct link *link);
/* Of another loop, which has forgotten it. */
/* The other connections of this one's loop end, with what they have not done. */
void server_loop_end_others(struct connection *connection);
/* Something changed that a parked connection may wait for. */
void server_wake_parked(struct server *server);

/* ---- server_connection.c ---- */

enum next_step {
    NEXT_CONTINUE, /* there is more to do */
    NEXT_READ,     /* wait for bytes */
    NEXT_WRITE,    /* wait for room */
    NEXT_PARK,     /* wait for a version */
    NEXT_YIELD,    /* others are to have a turn */
    NEXT_MOVE,     /* to the copy's loop */
    NEXT_CLOSE
};

enum next_step connection_advance(struct connection *connection);
/* Leaves its push, if any, and frees it. */
void connection_free(struct connection *connection);
bool growing_buffer_reserve(struct growing_buffer *room, size_t size);

/* The answer in order: the words, and `bytes` bytes at `answer`, which stay until they are sent. */
void connection_answer(struct connection *connection, uint64_t version, uint64_t number,
    const void *answer, uint64_t bytes);
/* The answer is an error; what is left of the question is read and dropped first. */
void connection_refuse(struct connection *connection, const struct cadre_error *error);

/* ---- server_requests.c ---- */

/* The header is there: how much is to be collected before it can run, or a refusal. */
void request_begin(struct connection *connection);
/* Sets the next state. */
void request_run(struct connection *connection);

/* ---- server_push.c ---- */

void push_run(struct connection *connection);
/* A block of values is there. */
void push_block(struct connection *connection);
void push_abandon(struct connection *connection);
/* Ends the connections that push to the shard: who lives sends again. */
void push_disconnect_all(struct server *server, uint32_t shard);

/* Synchronous steps of parts of what LAMB updates: what one adds to the norms, and the ratio that
 * it is told. */
void step_norms_run(struct connection *connection);
void settle_run(struct connection *connection);

/* ---- server_backup.c: the same changes, in the same order, in another server's memory ---- */

/* Connects in a thread of its own, whenever the other server is here, and gives it the whole store
 * first. `link`: taken over; its copy has all that is here. NULL: nobody's has. */
cadre_status backup_open(struct server *server, const struct server_options *options,
    struct link *link, struct backup **ret_backup, struct cadre_error *error);
/* Its threads end, since the server stops: they wait for the lock of a change, which waits for the
 * other server no longer then. NULL: nothing. */
void backup_join(struct backup *backup);
/* Behind backup_join, and all loops. */
void backup_close(struct backup *backup);
/* It has all that is here. False: it is lost, or NULL. */
bool backup_in_sync(const struct backup *backup);
/* Whether what is here may be told: whatever may come in this server's place has it too. Without
 * that nothing is answered. server_wake_parked when it becomes true. Also of NULL. */
bool backup_may_answer(const struct backup *backup);
/* A change is made between the two. Any loop; they follow each other. */
void backup_begin(struct backup *backup);
/* `connection` has changed the store, all of its question was collected: it is told, and heard to
 * be there too, or the backup is lost, and the coordinator is told that. */
void backup_replicate(struct backup *backup, const struct connection *connection);
void backup_end(struct backup *backup);

/* Loads the copy that the coordinator says may be taken, however long it takes to get it.
 * *ret_link: its holder goes on keeping it. NOT_FOUND: it is gone, with its holder. */
cadre_status backup_fetch(
    struct server *server, uint32_t index, struct link **ret_link, struct cadre_error *error);

/* ---- server_copy.c: the other side ---- */

cadre_status copy_open(struct server *server, struct cadre_error *error);
void copy_close(struct server *copy);
/* CONNECTION_COPY: blocking. */
enum next_step copy_serve(struct connection *connection);
/* A life of the other server comes: an older one that is being waited for is cut off. Any loop. */
void copy_expect_newer(struct server *copy, const struct link *link);
/* It is in the copy's loop: no older one fills the copy from now on. */
void copy_admit_connection(struct connection *connection);
/* Whether the question may be asked: not by an older life, nor changes over a connection that
 * neither filled the copy nor took it. */
bool copy_admits(const struct connection *connection);
/* A struct copy_writer. */
store_sink copy_send_piece;
struct copy_writer {
    struct link *link;
    const struct link_wait *wait; /* NULL: as long as it takes */
};
store_source copy_receive_piece;
struct copy_reader {
    struct link *link;
    const struct link_wait *wait; /* as of a writer */
    uint64_t left;                /* of the piece */
    bool ended;
};

#endif
