"""A job with numparq in a zip file only, as a program: ``python zipped_job.py MASTER FOLDER numparq.zip``."""

from __future__ import annotations

import sys
from typing import Any


def main(master: str, folder: str, archive: str) -> None:
    from pyspark.sql import SparkSession

    import numparq

    assert numparq.__file__.startswith(archive), numparq.__file__
    builder = numparq.spark.configure(SparkSession.builder.master(master))
    settings = {
        "spark.submit.pyFiles": archive,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    numparq.spark.register(spark)
    spark.range(0, 1000, 1, 2).write.format("numparq").mode("append").save(folder)

    def imported_from(frame: Any) -> Any:
        return frame.iloc[:1].assign(place=numparq.__file__)[["place"]]

    assert spark.read.format("numparq").load(folder).where("id > 900").count() == 99
    found = numparq.spark.map_pandas(spark, folder, imported_from, "place string", split_bytes=1).collect()
    assert all(row["place"].endswith("numparq.zip/numparq/__init__.py") for row in found), found
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
