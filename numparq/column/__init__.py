"""One column chunk: from pages to buffers."""
