"""The differential matrix: files over all axes, and selections that must equal a full read followed by take."""
