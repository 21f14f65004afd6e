"""Fuzz targets for footers, pages and files: ``python -m support.fuzz footer --minutes 20``, from tests/."""
