"""``python -m support.fuzz {footer,page,whole_file}``, from tests/: exit status 1 on any problem."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .runner import run
from .worker import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m support.fuzz", description="Read files that were changed in all ways."
    )
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--count", type=int, default=0, help="cases at most")
    parser.add_argument("--found", type=Path, default=Path("found"), help="folder for the files that make problems")
    given = parser.parse_args()
    found = given.found.resolve()
    report = run(given.target, given.seed, given.minutes * 60, given.count, found, given.first)
    print(f"{given.target}, seed {given.seed}: {report.done} cases")
    for outcome, times in report.outcomes.most_common():
        print(f"{times:8} {outcome}")
    for kind, numbers in report.problems.items():
        print(f"PROBLEM, {len(numbers)} times, cases {numbers[:5]}: {kind}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
