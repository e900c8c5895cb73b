"""Each fault of the fault server does what its name says; the bare client of obstore survives the transient ones."""

from __future__ import annotations

import http.client
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from clients import make_gcs, make_http, make_s3
from obstore.exceptions import PreconditionError
from servers import FaultServer

DATA = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def server(fault_server: FaultServer) -> FaultServer:
    fault_server.request("PUT", "/bucket/a", body=DATA)
    fault_server.clear_log()
    return fault_server


def test_log_lists_requests_with_ranges_and_sizes(server: FaultServer) -> None:
    server.request("GET", "/bucket/a", headers={"Range": "bytes=5-9", "If-Match": '"x"'})
    server.request("GET", "/bucket/a?x=1", headers={"Range": "bytes=5-9"})
    first, second = server.read_log()
    assert (first["request"], first["range"], first["status"], first["if_match"]) == (
        "GET /bucket/a",
        "bytes=5-9",
        412,
        '"x"',
    )
    assert (second["request"], second["status"], second["nbytes"]) == ("GET /bucket/a?x=1", 206, 5)


@pytest.mark.resources
def test_latency_delays_each_answer_and_requests_wait_side_by_side(server: FaultServer) -> None:
    server.set_faults(latency=0.2)
    start = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: server.request("HEAD", "/bucket/a"), range(16)))
    taken = time.monotonic() - start
    assert [reply.status for reply in replies] == [200] * 16
    assert 0.2 <= taken < 1.6


@pytest.mark.resources
def test_bandwidth_limits_each_connection(server: FaultServer) -> None:
    server.set_faults(bandwidth=4e6)
    start = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        bodies = list(pool.map(lambda _: server.request("GET", "/bucket/a").body, range(4)))
    taken = time.monotonic() - start
    assert bodies == [DATA] * 4
    assert 0.22 <= taken < 0.8  # 1 MiB at 4 MB/s is 0.26 s, and four connections take no longer


def test_slow_down_is_503_for_the_requests_of_only(server: FaultServer) -> None:
    server.set_faults(slow_down=1, only="^GET")
    assert server.request("GET", "/bucket/a").status == 503
    assert b"<Code>SlowDown</Code>" in server.request("GET", "/bucket/a").body
    assert server.request("HEAD", "/bucket/a").status == 200


def test_deny_is_403(server: FaultServer) -> None:
    server.set_faults(deny=1)
    assert server.request("GET", "/bucket/a").status == 403


def test_cut_closes_the_connection_in_the_body(server: FaultServer) -> None:
    server.set_faults(cut=1)
    with pytest.raises(http.client.IncompleteRead):
        server.request("GET", "/bucket/a")


def test_stall_stops_in_the_body(server: FaultServer) -> None:
    server.set_faults(stall=1, stall_seconds=0.3)
    start = time.monotonic()
    with pytest.raises(http.client.IncompleteRead):
        server.request("GET", "/bucket/a")
    assert time.monotonic() - start >= 0.3


def test_flip_changes_one_bit_of_the_body_and_not_of_the_object(server: FaultServer) -> None:
    server.set_faults(flip=1)
    body = server.request("GET", "/bucket/a").body
    assert sum((a ^ b).bit_count() for a, b in zip(body, DATA, strict=True)) == 1
    server.set_faults()
    assert server.request("GET", "/bucket/a").body == DATA


def test_lost_answer_is_carried_out(server: FaultServer) -> None:
    server.set_faults(lost=1, only="^PUT")
    with pytest.raises(http.client.RemoteDisconnected):
        server.request("PUT", "/bucket/b", body=b"stored")
    assert server.request("GET", "/bucket/b").body == b"stored"


def test_ignored_conditions_have_no_effect(server: FaultServer) -> None:
    server.set_faults(ignores_conditions=True)
    assert server.request("GET", "/bucket/a", headers={"If-Match": '"other"'}).status == 200
    assert server.request("PUT", "/bucket/a", headers={"If-None-Match": "*"}, body=b"x").status == 200


def test_ignored_ranges_give_the_whole_object(server: FaultServer) -> None:
    server.set_faults(ignores_ranges=True)
    reply = server.request("GET", "/bucket/a", headers={"Range": "bytes=0-4"})
    assert (reply.status, len(reply.body)) == (200, len(DATA))


def test_swapped_object_has_another_etag_after_the_given_number_of_requests(server: FaultServer) -> None:
    server.request("PUT", "/bucket/b", body=DATA[::-1])
    server.set_faults(swaps={"bucket/a": [2, "bucket/b"]})
    bodies = [server.request("GET", "/bucket/a") for _ in range(3)]
    assert [reply.body for reply in bodies] == [DATA, DATA, DATA[::-1]]
    assert bodies[1].headers["etag"] != bodies[2].headers["etag"]


def test_shares_of_faults_are_as_given_and_the_same_for_the_same_seed(server: FaultServer) -> None:
    seen = []
    for _ in range(2):
        server.set_faults(slow_down=0.3, seed=7)
        seen.append([server.request("HEAD", "/bucket/a").status for _ in range(200)])
    assert seen[0] == seen[1]
    assert 35 <= seen[0].count(503) <= 85


def test_mounted_folder_is_a_bucket(server: FaultServer, tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "deep").mkdir()
    (folder / "deep" / "x").write_bytes(b"12345")
    (folder / "empty").write_bytes(b"")
    assert server.mount("disk", folder) == 2
    assert server.request("GET", "/disk/deep/x", headers={"Range": "bytes=1-2"}).body == b"23"
    assert server.read_keys() == {"bucket/a": len(DATA), "disk/deep/x": 5, "disk/empty": 0}


# --- what the bare client does: the ground that ours stands on


@pytest.mark.parametrize("make", [make_s3, make_gcs, make_http])
def test_client_survives_slow_down_cut_bodies_and_stalls(server: FaultServer, make: object) -> None:
    store = make(server)  # type: ignore[operator]
    etag = server.request("HEAD", "/bucket/a").headers["etag"]
    server.set_faults(slow_down=0.05, cut=0.02, stall=0.01, seed=1)

    def read(number: int) -> bool:
        start = number * 1000
        got = obstore.get(store, "a", options={"range": (start, start + 5000), "if_match": etag}).bytes()
        return bytes(got) == DATA[start : start + 5000]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(500)))
    assert {entry["fault"] for entry in server.read_log()} == {"", "slow_down", "cut", "stall"}


def test_client_pinned_to_an_etag_sees_one_version_or_an_error(server: FaultServer) -> None:
    """200 replacements in the middle of a read: every piece is of the first version, or the read fails."""
    store = make_s3(server)
    server.request("PUT", "/bucket/one", body=b"1" * 100_000)
    server.request("PUT", "/bucket/two", body=b"2" * 100_000)
    num_failed = 0
    for number in range(200):
        server.request("PUT", "/bucket/x", body=b"1" * 100_000)
        server.set_faults(swaps={"bucket/x": [number % 12, "bucket/two"]})
        etag = server.request("HEAD", "/bucket/x").headers["etag"]
        pieces = []
        try:
            for start in range(0, 100_000, 10_000):
                options = {"range": (start, start + 10_000), "if_match": etag}
                pieces.append(bytes(obstore.get(store, "x", options=options).bytes()))
        except PreconditionError:
            num_failed += 1
        assert set(b"".join(pieces)) <= {ord("1")}
    assert 150 <= num_failed < 200


def test_unfinished_upload_is_listed_until_it_is_aborted(server: FaultServer) -> None:
    reply = server.request("POST", "/bucket/u?uploads")
    upload = re.search(rb"<UploadId>(.*?)<", reply.body)
    assert upload is not None
    assert server.uploads() == ["bucket/u"]
    assert b"<Key>u</Key>" in server.request("GET", "/bucket?uploads").body
    server.request("DELETE", f"/bucket/u?uploadId={upload[1].decode()}")
    assert server.uploads() == []
