/* SPDX-License-Identifier: Apache-2.0
 * All of Cadre for a training program. deploy/examples has whole programs to start from,
 * tests/documents shows what they do not need. */
#ifndef CADRE_CADRE_H
#define CADRE_CADRE_H

#include "cadre/assign.h"
#include "cadre/at_exit.h"
#include "cadre/buckets.h"
#include "cadre/checkpoint.h"
#include "cadre/cluster_coordinator.h"
#include "cadre/cluster_resolver.h"
#include "cadre/collective.h"
#include "cadre/cross_device.h"
#include "cadre/dataset.h"
#include "cadre/device.h"
#include "cadre/example.h"
#include "cadre/gpu.h"
#include "cadre/input.h"
#include "cadre/logical_device.h"
#include "cadre/loss.h"
#include "cadre/metric.h"
#include "cadre/parameter.h"
#include "cadre/parameter_server.h"
#include "cadre/plain.h"
#include "cadre/preemption.h"
#include "cadre/preprocessing.h"
#include "cadre/program.h"
#include "cadre/random.h"
#include "cadre/reduce.h"
#include "cadre/replica.h"
#include "cadre/scatter.h"
#include "cadre/sources.h"
#include "cadre/sparse.h"
#include "cadre/status.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"
#include "cadre/tfrecord.h"
#include "cadre/transformations.h"
#include "cadre/values.h"
#include "cadre/variable.h"
#include "cadre/version.h"

#endif
