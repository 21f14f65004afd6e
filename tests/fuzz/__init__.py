"""Fuzz targets for footers, pages and whole files: ``python -m fuzz footer --minutes 20``, from the folder of tests."""
