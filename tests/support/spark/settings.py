"""Settings of Spark sessions in tests: on this machine alone, quiet, and quick with little data."""

from __future__ import annotations

SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    # To compile a whole stage takes longer than to run it in parts for some hundred rows.
    "spark.sql.codegen.wholeStage": "false",
}
