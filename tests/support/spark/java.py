"""Classes in Java for the session's JVM, and Hadoop options of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest


@contextmanager
def hadoop_options(spark, options):
    """Set Hadoop options of a session, and unset them at the end."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in options.items():
        configuration.set(name, value)
    try:
        yield
    finally:
        for name in options:
            configuration.unset(name)


def compile_class(name, text, folder, classes):
    """Compile a public class into the folder of classes; its source lies in another one."""
    if not shutil.which("javac"):
        pytest.skip("there is no Java compiler")
    source = folder / f"{name}.java"
    source.write_text(text)
    libraries = Path(pyspark.__file__).parent / "jars" / "*"
    quiet = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    command = ["javac", "-nowarn", "-cp", str(libraries), "-d", str(classes), str(source)]
    subprocess.run(command, check=True, env=quiet)
