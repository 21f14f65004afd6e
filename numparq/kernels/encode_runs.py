"""The RLE / bit-packing hybrid, encoded."""
