"""Reports: the data (`model`), and one file for each form of output."""
