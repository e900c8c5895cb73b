"""Real clusters on this machine: Ray with two nodes, Dask with three workers. `LONG=1` repeats each kill 20 times."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RUNS = 20 if os.environ.get("LONG") else 1
# Of the time without a stopped worker; on a machine that does other things, times of seconds differ by more.
STOPPED_FACTOR, STOPPED_SECONDS = (1.5, 0.1) if os.environ.get("LONG") else (3, 0.03)
# Workers import the source that these tests build from.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # without it, Ray warns that this will change
os.environ["RAY_raylet_start_wait_time_s"] = "180"  # noqa: SIM112 - a node takes a minute on a busy machine
sys.path[:0] = [str(HERE), str(HERE.parent / "remote")]
# Workers have the keys of the bucket in their environment; tasks never have them.
SECRET = "0123456789-secret-of-the-bucket"
# Verbs of `tfr.tools` that write files, with options.
WRITING_VERBS = [
    ("convert", {"compression": "gzip", "drop": ["name"]}),
    ("reshard", {"shards": 7}),
    ("shuffle", {"seed": 5, "shards": 5}),
    ("export_csv", {}),
]
os.environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def ray_nodes():
    """A cluster whose head runs no tasks, and two nodes with one processor each."""
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="session")
def dask_client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=True) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    """A moto with an empty bucket."""
    from servers import start_moto

    with start_moto(tmp_path_factory.mktemp("moto")) as server:
        server.request("PUT", "/bucket")
        yield server


@pytest.fixture(scope="session")
def client(bucket):
    import boto3

    return boto3.client("s3", endpoint_url=bucket.url)


@pytest.fixture(params=["ray", "dask"])
def engine(request):
    """The name of an engine to which this process is connected."""
    request.getfixturevalue({"ray": "ray_nodes", "dask": "dask_client"}[request.param])
    return request.param


@pytest.fixture
def digest():
    """Digests of all files of a dataset but locks, and the report, which holds a duration."""

    def digest_tree(folder):
        left_out = ("report.json", ".lock")
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name not in left_out)
        return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    return digest_tree
