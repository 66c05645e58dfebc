/* SPDX-License-Identifier: Apache-2.0
 * The messages that several files use, with their model structs and the file that has the rows.
 * Those of one file have a WIRE_MODEL there. Private to common/wire. */
#ifndef CADRE_WIRE_TABLES_H
#define CADRE_WIRE_TABLES_H

#include "common/wire/table.h"

#define WIRE_MODEL(m, model) typedef model model_##m
#define WIRE_TABLE(m, model)                                                                       \
    WIRE_MODEL(m, model);                                                                          \
    extern const struct wire_table wire_table_##m

/* table_common.c */
WIRE_TABLE(TaskRef, struct task_ref);
WIRE_TABLE(Term, struct term);
WIRE_TABLE(Generation, struct generation);
WIRE_TABLE(Cursor, struct cursor);
WIRE_TABLE(Consumption, struct consumption);
WIRE_TABLE(Verified, struct verified);
WIRE_TABLE(LogMark, struct log_mark);
WIRE_TABLE(TaskExit, struct task_exit);
WIRE_TABLE(Refused, struct task_refused);
WIRE_TABLE(Progress, struct progress);
WIRE_TABLE(TaskFetch, struct task_fetch);
WIRE_TABLE(ResourceUsage, struct resource_usage);
WIRE_TABLE(DatasetShards, struct shards_report);
WIRE_TABLE(Gpus, struct gpus);

/* table_trace.c */
WIRE_TABLE(TraceSpan, struct trace_span);
WIRE_TABLE(TaskSpans, struct task_spans);
WIRE_TABLE(TaskTrace, struct trace_order);
WIRE_TABLE(TraceRequest, struct trace_request);
WIRE_TABLE(TraceResponse, struct trace_response);

/* table_task_up.c, table_task_down.c, table_agent.c */
WIRE_TABLE(TaskUp, struct task_up);
WIRE_TABLE(TaskDown, struct task_down);
WIRE_TABLE(AgentUp, struct agent_up);
WIRE_TABLE(AgentDown, struct agent_down);

/* table_job.c */
WIRE_TABLE(PsJob, struct ps_job);
WIRE_TABLE(JobLimits, struct job_limits);
WIRE_TABLE(JobSpec, struct job_spec);
WIRE_TABLE(CheckpointRef, struct checkpoint_ref);
WIRE_TABLE(JobInfo, struct job_info);
WIRE_TABLE(ListJobsResponse, struct list_jobs_response);
WIRE_TABLE(SubmitResponse, struct submit_response);
WIRE_TABLE(JobRequest, struct job_request);

/* table_client.c */
WIRE_TABLE(LogsRequest, struct logs_request);
WIRE_TABLE(LogChunk, struct log_chunk);
WIRE_TABLE(BlobList, struct blob_list);
WIRE_TABLE(BlobChunk, struct blob_chunk);
WIRE_TABLE(GetBlobRequest, struct get_blob_request);
WIRE_TABLE(OutputChunk, struct output_chunk);
WIRE_TABLE(SettledFile, struct settled_file);
WIRE_TABLE(SettleFileRequest, struct settle_file_request);
WIRE_TABLE(ListOutputsResponse, struct list_outputs_response);
WIRE_TABLE(GetOutputRequest, struct get_output_request);
WIRE_TABLE(DrainRequest, struct drain_request);
WIRE_TABLE(ListWorkersRequest, struct list_workers_request);
WIRE_TABLE(ListWorkersResponse, struct list_workers_response);
WIRE_TABLE(LoginResponse, struct login_response);
WIRE_TABLE(VersionResponse, struct version_response);

/* table_coordinators.c */
WIRE_TABLE(LeaderResponse, struct leader_response);
WIRE_TABLE(ListCoordinatorsResponse, struct list_coordinators_response);

/* table_metrics.c */
WIRE_TABLE(MetricsRequest, struct metrics_request);
WIRE_TABLE(MetricsResponse, struct metrics_response);

/* table_history.c */
WIRE_TABLE(HistoryRequest, struct history_request);
WIRE_TABLE(HistoryResponse, struct history_response);

/* table_ledger.c */
WIRE_TABLE(LedgerEntry, struct ledger_entry);

/* table_verify.c */
WIRE_TABLE(VerifyRequest, struct verify_request);
WIRE_TABLE(VerifyResponse, struct verify_response);
WIRE_TABLE(VerifyGeneration, struct verify_generation);

#endif
