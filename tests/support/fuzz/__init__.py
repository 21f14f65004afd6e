"""Fuzz targets of footers, pages and files: ``python -m support.fuzz footer --minutes 20``, from tests/."""
