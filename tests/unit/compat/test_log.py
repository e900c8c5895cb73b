"""Messages of scripts."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from tfrkit.compat import tensorflow as tf


def run_script(*lines: str) -> tuple[str, str]:
    """What a script prints to stdout and stderr. A process of its own: here pytest has set up logging."""
    code = "\n".join(["from tfrkit.compat import tensorflow as tf", *lines])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_messages_go_to_stderr_from_the_level_on_that_was_set() -> None:
    out, err = run_script(
        "tf.logging.info('not shown')",
        "tf.logging.warn('shown %d', 1)",
        "tf.logging.set_verbosity(tf.logging.INFO)",
        "tf.compat.v1.logging.info('shown %d', 2)",
        "tf.logging.debug('not shown')",
        "tf.get_logger().error('shown 3')",
        "tf.logging.set_verbosity('error')",
        "tf.logging.warning('not shown')",
        "print(tf.logging.get_verbosity() == tf.logging.ERROR)",
    )
    assert out == "True\n"
    assert err == "WARNING:tensorflow:shown 1\nINFO:tensorflow:shown 2\nERROR:tensorflow:shown 3\n"


def test_pythons_own_set_up_is_used_where_there_is_one(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tensorflow"):
        tf.logging.info("read %d", 3)
        tf.logging.log(tf.logging.WARN, "more")
    assert caplog.messages == ["read 3", "more"]
    assert not any(isinstance(handler, logging.StreamHandler) for handler in tf.get_logger().handlers)


def test_repeated_messages_are_counted_by_line() -> None:
    _, err = run_script(
        "for number in range(5):",
        "    tf.logging.log_every_n(tf.logging.ERROR, 'every %d', 2, number)",
        "    tf.logging.log_first_n(tf.logging.ERROR, 'first %d', 1, number)",
        "    tf.logging.log_if(tf.logging.FATAL, 'if %d', number == 3, number)",
    )
    shown = [line.split(":")[2] for line in err.splitlines()]
    assert shown == ["every 0", "first 0", "every 2", "if 3", "every 4"]
