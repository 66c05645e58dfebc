/* SPDX-License-Identifier: Apache-2.0
 * The functions of each method: one table per method, in the named file, gathered by server.c. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_METHODS_H
#define CADRE_COORDINATOR_DAEMON_BASE_METHODS_H

#include "common/rpc/server.h"

/* agents.c */
extern const struct rpc_server_ops join_ops;
/* jobs.c */
extern const struct rpc_server_ops submit_ops;
extern const struct rpc_server_ops cancel_ops;
extern const struct rpc_server_ops checkpoint_ops;
extern const struct rpc_server_ops drain_ops;
extern const struct rpc_server_ops get_job_ops;
extern const struct rpc_server_ops verify_ops;
extern const struct rpc_server_ops history_ops;
extern const struct rpc_server_ops list_jobs_ops;
extern const struct rpc_server_ops list_workers_ops;
extern const struct rpc_server_ops version_ops;
/* job_metrics.c */
extern const struct rpc_server_ops metrics_ops;
/* job_trace.c */
extern const struct rpc_server_ops trace_ops;
/* login.c */
extern const struct rpc_server_ops login_ops;
/* coordinators.c */
extern const struct rpc_server_ops leader_ops;
extern const struct rpc_server_ops list_coordinators_ops;
/* watch.c */
extern const struct rpc_server_ops watch_ops;
/* logs.c */
extern const struct rpc_server_ops logs_ops;
/* file_store.c */
extern const struct rpc_server_ops missing_blobs_ops;
/* receive.c */
extern const struct rpc_server_ops put_blob_ops;
extern const struct rpc_server_ops put_output_ops;
/* transmit.c */
extern const struct rpc_server_ops get_blob_ops;
extern const struct rpc_server_ops get_output_ops;
/* settled_files.c */
extern const struct rpc_server_ops settle_file_ops;
/* outputs.c */
extern const struct rpc_server_ops list_outputs_ops;

#endif
