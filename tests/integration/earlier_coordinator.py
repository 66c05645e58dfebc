# SPDX-License-Identifier: Apache-2.0
"""A coordinator of an earlier version, as far as a client asks one before it submits a job."""
from concurrent import futures

from client import grpc, jobs_pb2

VERSION = "0.1.0"


class EarlierCoordinator(grpc.GenericRpcHandler):
    """with EarlierCoordinator(folder) as it: ... it.address; it.asked: the methods, in order. It answers Version alone.
    """

    def __init__(self, folder):
        self.address = f"unix:{folder}/earlier.sock"
        self.asked = []
        self.server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self])
        self.server.add_insecure_port(self.address)

    def service(self, handler_call_details):
        method = handler_call_details.method.rsplit("/", 1)[-1]
        self.asked.append(method)
        if method != "Version":
            return None
        answer = jobs_pb2.VersionResponse(version=VERSION, agent_protocol=8, task_frame=1, request_ids=True)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer.SerializeToString())

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *error):
        self.server.stop(None).wait()
