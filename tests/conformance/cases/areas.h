/* SPDX-License-Identifier: Apache-2.0
 * One function for each area of cases that the library can be asked about. Each looks at
 * self->given and self->expect, and leaves the verdict in `self`. */
#ifndef CADRE_TESTS_CONFORMANCE_AREAS_H
#define CADRE_TESTS_CONFORMANCE_AREAS_H

#include "cadre/strategy.h"
#include "case.h"
#include "cadre/dataset.h"

/* area_rebatch.c: numbers and single pipelines */
void area_batch_sizes(struct conformance_case *self);
void area_compute_batch_size(struct conformance_case *self);
void area_rebatch_sizes(struct conformance_case *self);
void area_rebatch_split(struct conformance_case *self);
void area_auto_shard(struct conformance_case *self);
void area_input_context(struct conformance_case *self);

/* area_distribute.c: all workers of a cluster */
void area_distribute_dataset(struct conformance_case *self);
void area_dataset_from_function(struct conformance_case *self);
void area_iteration_end(struct conformance_case *self);
void area_element_spec(struct conformance_case *self);

/* area_late_variable.c */
void area_late_variable(struct conformance_case *self);

/* area_iterators.c */
void area_iterators(struct conformance_case *self);

/* area_strategy.c: through the public functions alone */
void area_input_options(struct conformance_case *self);
void area_values_from_function(struct conformance_case *self);
void area_lookup(struct conformance_case *self);
void area_preprocessing(struct conformance_case *self);

/* area_reduce.c: values of replicas made one */
void area_reduce(struct conformance_case *self);
void area_all_reduce(struct conformance_case *self);
void area_gather(struct conformance_case *self);
void area_cross_device_ops(struct conformance_case *self);
void area_loss_scaling(struct conformance_case *self);

/* area_context.c: scopes, and what functions of replicas take and return */
void area_scope(struct conformance_case *self);
void area_device_name(struct conformance_case *self);
void area_run(struct conformance_case *self);
void area_local_results(struct conformance_case *self);

/* area_devices.c */
void area_strategy_setup(struct conformance_case *self);
void area_logical_devices(struct conformance_case *self);

/* area_checkpoint.c */
void area_checkpoint(struct conformance_case *self);

/* This program, started again: "save" or "restore" the case in the file, or "phase0", ... of an
 * optimizer's; its exit status. */
int checkpoint_process(const char *what, const char *path);

/* Starts that, with the case in a file of the folder: what it printed. NULL: the case has failed.
 */
json_t *checkpoint_run(struct conformance_case *self, const char *what, const char *folder);

/* checkpoint_sharded.c: what was saved of a sharded variable, and the shards restored; new
 * references, NULL: the case has the reason. */
json_t *sharded_save(struct conformance_case *self);
json_t *sharded_restore(struct conformance_case *self);

/* area_restore.c */
void area_restore(struct conformance_case *self);

/* area_cluster.c */
void area_cluster_spec(struct conformance_case *self);
void area_resolver(struct conformance_case *self);

/* area_loop.c */
void area_training_loop(struct conformance_case *self);

/* area_structures.c */
void area_structures(struct conformance_case *self);

/* area_optimizer.c */
void area_optimizer(struct conformance_case *self);

/* The script with variables of this strategy: their values then. NULL: the case says why not. */
json_t *optimizer_values(struct conformance_case *self, cadre_strategy *strategy);

/* optimizer_moved.c: one script in several processes, each of which goes on from the checkpoint of
 * the one before, wherever that had the variables. */
void area_optimizer_moved(struct conformance_case *self);

/* What is printed by the process of one phase; NULL: the case says why not. */
json_t *optimizer_phase(struct conformance_case *self, const char *what);
void area_learning_rate_schedule(struct conformance_case *self);

/* area_variable.c */
void area_variable(struct conformance_case *self);

/* "AUTO", ... under `key`; AUTO when it is not there. */
bool case_policy(struct conformance_case *self, const char *key, cadre_shard_policy *ret_policy);

/* area_servers.c: parameter servers */
void area_partitioner(struct conformance_case *self);
void area_ps_placement(struct conformance_case *self);
void area_closure_queue(struct conformance_case *self);

/* area_coordinator.c: closures on workers of this process, also such that are lost */
void area_coordinator(struct conformance_case *self);
/* area_closures.c: closures on the replicas of their worker */
void area_in_closure(struct conformance_case *self);
void area_per_worker_dataset(struct conformance_case *self);

/* main.c: the area of that name, whose cases look like this one. */
void case_run_area(struct conformance_case *self, const char *area);

/* area_sharded.c: variables that they hold */
void area_sharded_variable(struct conformance_case *self);

#endif
