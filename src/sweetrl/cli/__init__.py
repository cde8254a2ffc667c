"""The command line: the only place that opens files and prints."""
