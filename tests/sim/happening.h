/* SPDX-License-Identifier: Apache-2.0
 * The kinds of events of a run; what their numbers are. sim.c and replicas/ dispatch them. */
#ifndef CADRE_SIM_HAPPENING_H
#define CADRE_SIM_HAPPENING_H

enum happening_type {
    ON_SUBMIT = 1,            /* a: job */
    ON_CANCEL,                /* a: job */
    ON_FAULT,                 /* a: fault */
    ON_SYNC,                  /* the store's owner fsyncs what may lag; b: coordinator's start */
    ON_COORDINATOR_UP,        /* a: link, message */
    ON_COORDINATOR_LINK_DOWN, /* a: link */
    ON_COORDINATOR_TICK,      /* b: its start */
    ON_TURN_END,              /* b: its start */
    ON_UNMUTE,                /* a: link, b: whether it breaks */
    ON_AGENT_CONNECT,         /* a: agent, b: incarnation */
    ON_AGENT_DOWN,            /* a: link, message */
    ON_AGENT_LINK_DOWN,       /* a: link */
    ON_AGENT_TICK,            /* a: agent, b: incarnation */
    ON_AGENT_BOOT,            /* a: agent, b: the incarnation that ended */
    ON_AGENT_SIGTERM,         /* a: agent, b: incarnation: it drains */
    ON_LIE,                   /* a: enum lie; b: of CANCELS, the job */
    ON_UNDRAIN,               /* a: agent: the client that drained it ends that */
    ON_MESH_STALL,            /* a: mesh, n: key of the collective */
    /* Of a process (n), whose agent has to be in incarnation b still: */
    ON_PREPARED,
    ON_SPAWNED,
    ON_EXITED,
    ON_COLLECTED,
    ON_PUBLISHED, /* a: attempt */
    ON_FRAME_UP,
    /* Of a process (n), by itself; a process that is stopped does none of these. */
    ON_FRAME_DOWN,      /* a: socket */
    ON_PROGRAM,         /* a: doing. Goes on: starts, has computed, has ended */
    ON_SYNCED,          /* a: doing */
    ON_COLLECTIVE_DONE, /* a: doing */
    ON_PEER_LEFT,       /* a: doing */
    ON_APPLIED,         /* a: doing */
    ON_WAITS,           /* a: doing. Has waited for a release for long */
    ON_WRITTEN,         /* a checkpoint is on its host's disk; a: 1: it was compared */
    ON_RECONNECT,
    ON_TASK_TICK,
    ON_DEATH, /* a: signal; 0: by itself */
    ON_CONTINUE,
    ON_RESUME,    /* a: agent, SIM_NONE: the coordinator; b: its pause */
    ON_SECOND,    /* the second coordinator is started, or ends */
    ON_SUPERSEDE, /* the copy that is to serve the workers is started, or it is too late */
    /* Of several coordinators: a: which, b: its process. */
    ON_REPLICA_START,
    ON_REPLICA_WAKE, /* n: number of the wake */
    ON_REPLICA_CHANGED,
    ON_REPLICA_APPLIED,
    ON_LOG_REQUEST,      /* a: request; b: 1: the second half of look-then-put */
    ON_LOG_ANSWER,       /* a: request; n: 0, or why there is none */
    ON_AGENT_ASKS,       /* a: agent, b: incarnation: who leads */
    ON_LOG_SNAPSHOT,     /* it asks the store which snapshot there is */
    ON_REPLICA_SNAPSHOT, /* the answer, or a file is made or fetched; n: which */
    ON_RESTORE           /* of the store, or people write a new log; b: which */
};

#endif
