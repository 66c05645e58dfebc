/* SPDX-License-Identifier: Apache-2.0
 * A C++ program includes the headers, and trains with the shared library. */
#include <cadre/cadre.h>

#include <cstdio>

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const *, cadre_tensor **outputs, void *)
{
    return cadre_tensor_from_f64(1.0 + cadre_replica_id(replica), &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_per_replica *value;
    cadre_tensor *sum;
    cadre_cluster_resolver *resolver;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_cluster_resolver_tf_config("{}", &resolver));
    cadre_cluster_resolver_release(resolver);
    CADRE_CHECK(cadre_strategy_mirrored(3, &strategy));
    CADRE_CHECK(cadre_run(strategy, step, nullptr, nullptr, 1, &value));
    CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum));
    double total = *static_cast<const double *>(cadre_tensor_const_data(sum));
    std::printf("sum %g\n", total);
    cadre_tensor_release(sum);
    int status = cadre_finish(strategy);
    return total == 6 ? status : 1;
}
