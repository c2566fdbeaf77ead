"""The life cycle of a cluster: connect to one, or start one on this machine and end it."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bgd.runs.errors import RunError
from bgd.runs.executors.ray.head import cluster_folder, watched

STORE = 100 * 2**20  # bytes of shared memory of a cluster that we start: jobs and results are small

logger = logging.getLogger(__name__)


def load_ray() -> Any:
    """Ray, which is an extra.

    Raises:
        RunError: if it is not installed; names the command that installs it.

    >>> import pytest
    >>> _ = pytest.importorskip("ray")
    >>> callable(load_ray().init)
    True
    """
    try:
        importlib.import_module("ray.util.scheduling_strategies")
        return importlib.import_module("ray")
    except ImportError as error:
        raise RunError(
            f'Ray is not installed ({error}): pip install "bgd[ray]", or choose another --executor'
        ) from error


@contextmanager
def connected(ray: Any, address: str, cores: int) -> Iterator[None]:
    """Inside, this process is connected to the cluster at ``address``.

    Args:
        ray: the module.
        address: of a running cluster, ``auto``, or ``local`` for a cluster of this machine, ended afterwards.
        cores: to offer on a local cluster.

    Raises:
        RunError: if there is no cluster at the address.
    """
    if ray.is_initialized():  # by the calling program: it stays as it is
        yield
        return
    # for clusters that we start: neither report usage, nor hide GPUs from tasks that request none, nor run at nice 15,
    # which beside any other program is hardly at all
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    with ExitStack() as stack:
        stack.enter_context(_sigterm_handler_kept())
        # messages about failed nodes would go to stdout, which is for results
        stack.enter_context(_replaced("ray._private.worker", "print_to_stdstream", _log))
        if address == "local":
            _start(ray, cores, stack)
        else:
            stack.callback(ray.shutdown)
            _connect(ray, address)
        yield


QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


def _start(ray: Any, cores: int, stack: ExitStack) -> None:
    # short, since its sockets are in there, and the system limits the length of their names
    short = "/tmp" if Path("/tmp").is_dir() else None
    folder = stack.enter_context(cluster_folder(short))
    stack.callback(ray.shutdown)
    # Ray's switch for systems with a strict firewall; a single node needs no other address on any system
    with _replaced("ray._private.ray_constants", "ENABLE_RAY_CLUSTER", False):
        ray.init(
            address="local",
            num_cpus=cores,
            object_store_memory=STORE,
            include_dashboard=False,
            _temp_dir=str(folder),
            **QUIET,
        )
    stack.enter_context(watched(ray, folder))


def _connect(ray: Any, address: str) -> None:
    try:
        if address != "auto":
            check_reachable(address)
        ray.init(address=address, **QUIET)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise RunError(
            f"no Ray cluster at {address!r} ({error}): start one with ray start --head, and give its "
            "address with --ray-address or RAY_ADDRESS; without either, one is started on this machine"
        ) from error


def check_reachable(address: str) -> None:
    """Check at once whether anything listens at an address; Ray itself would try for minutes.

    Raises:
        RunError: if it is no address of a cluster.
        OSError: if nothing answers.

    >>> check_reachable("localhost")
    Traceback (most recent call last):
    bgd.runs.errors.RunError: Ray address 'localhost': give an address such as 10.0.0.5:6379, or auto
    """
    if address.startswith("ray://"):
        raise RunError(
            f"Ray address {address!r}: the Ray Client is not supported; start bgd on a node of the cluster, and give "
            "the address of the cluster itself, or auto"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise RunError(f"Ray address {address!r}: give an address such as 10.0.0.5:6379, or auto")
    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


@contextmanager
def _replaced(module: str, name: str, value: Any) -> Iterator[None]:
    """Inside, a private name of Ray has another value, where Ray has no option for it. Unknown names are left alone."""
    owner = importlib.import_module(module)
    if not hasattr(owner, name):
        yield
        return
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _log(data: dict[str, Any], **_: Any) -> None:
    logger.info("Ray: %s", " ".join(data["lines"]))


@contextmanager
def _sigterm_handler_kept() -> Iterator[None]:
    # Ray replaces the handler of SIGTERM and does not restore it
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
